/* serve/trace/tracer.c - see tracer.h. */
#include "serve/trace/tracer.h"

#include <string.h>

#include "base/buf.h"
#include "base/condvar.h"
#include "base/mem.h"
#include "base/random.h"
#include "net/host/fetch.h"
#include "serve/trace/exporter.h"
#include "serve/trace/otlp.h"

enum {
	QUEUE = 2048,
	QUEUE_MAX = 1 << 16,
	BATCH = 512, /* spans of one request: less than FETCH_BODY_MAX */
	DELAY_MS = 5000,
	TIMEOUT_MS = 10000,
	END_MS = 5000,
	TRIES = 4,
	PAUSE_MS = 500, /* before the second try; then twice as long each time */
};

struct tracer {
	struct exporter exporter;
	char *resource;
	uint64_t delay_ms, timeout_ms, end_ms;
	void (*report)(const char *text, void *arg);
	void *report_arg;
	pthread_t thread;
	bool is_failing;    /* what was reported last; only the thread uses it */
	struct span *batch; /* the spans of one request; only the thread uses it */

	pthread_mutex_t lock; /* guards the fields below; held only for moments */
	pthread_cond_t changed;
	struct span *queue; /* a ring */
	size_t max, first, count;
	size_t enough; /* so many are sent without waiting for more */
	struct tracer_counts counts;
	deadline_ns end; /* while is_ending */
	bool is_ending, is_over;
};

void tracer_add(struct tracer *t, const struct span *s)
{
	pthread_mutex_lock(&t->lock);
	if (t->count == t->max) {
		t->counts.dropped++;
	} else {
		t->queue[(t->first + t->count) % t->max] = *s;
		t->count++;
		/* The first one starts the clock; a whole batch need not wait for it. */
		if (t->count == 1 || t->count == t->enough)
			pthread_cond_signal(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
}

void tracer_count(struct tracer *t, struct tracer_counts *ret)
{
	*ret = (struct tracer_counts){ 0 };
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	*ret = t->counts;
	pthread_mutex_unlock(&t->lock);
}

/* ---- the thread */

/* Waits for spans and takes them. 0: there are none, and none will come. */
static size_t take_batch(struct tracer *t)
{
	size_t n = 0;

	pthread_mutex_lock(&t->lock);
	while (t->count == 0 && !t->is_ending)
		pthread_cond_wait(&t->changed, &t->lock);
	deadline_ns until = deadline_after_ms(t->delay_ms);
	while (t->count < t->enough && !t->is_ending && condvar_wait(&t->changed, &t->lock, until))
		;
	for (; n < BATCH && t->count > 0; n++, t->count--) {
		t->batch[n] = t->queue[t->first];
		t->first = (t->first + 1) % t->max;
	}
	pthread_mutex_unlock(&t->lock);
	return n;
}

/* How long a request may take now; 0: there is no time left. */
static uint64_t time_left(struct tracer *t)
{
	uint64_t ms = t->timeout_ms;

	pthread_mutex_lock(&t->lock);
	if (t->is_ending) {
		int left = deadline_poll_ms(t->end);
		ms = left < 0 || (uint64_t)left > ms ? ms : (uint64_t)left;
	}
	pthread_mutex_unlock(&t->lock);
	return ms;
}

/* Waits before the next try; several servers must not come back in step. False: the tracer ends,
 * and there is no other try. */
static bool pause_for(struct tracer *t, unsigned tries, uint64_t asked_ms)
{
	unsigned char random;
	uint64_t ms = (uint64_t)PAUSE_MS << tries;

	random_bytes(&random, sizeof(random));
	ms = ms / 2 + ms * random / 255;
	deadline_ns until = deadline_after_ms(asked_ms > ms ? asked_ms : ms);
	pthread_mutex_lock(&t->lock);
	while (!t->is_ending && condvar_wait(&t->changed, &t->lock, until))
		;
	bool goes_on = !t->is_ending;
	pthread_mutex_unlock(&t->lock);
	return goes_on;
}

/* One request, again where that may help. */
static void deliver(struct tracer *t, const struct buf *body, struct exporter_answer *ret)
{
	for (unsigned tries = 0;; tries++) {
		uint64_t ms = time_left(t);

		*ret = (struct exporter_answer){ .outcome = EXPORTER_LOST };
		if (ms == 0)
			return;
		exporter_send(&t->exporter, body->data, body->len, ms, ret);
		if (ret->outcome != EXPORTER_AGAIN || tries + 1 == TRIES ||
		    !pause_for(t, tries, ret->wait_ms))
			return;
		free(ret->why);
	}
}

static void tell(struct tracer *t, const struct exporter_answer *a)
{
	cleanup_buf struct buf text = { 0 };
	bool is_failing = a->outcome != EXPORTER_SENT;

	if (is_failing == t->is_failing || !t->report)
		return;
	t->is_failing = is_failing;
	buf_init(&text, 1024);
	if (!is_failing)
		(void)buf_add_str(&text, "traces: the collector takes spans again");
	else if (buf_add_str(&text, "traces: spans are lost: ") == 0)
		(void)buf_add_printable(&text, a->why ? a->why : "there is no time left");
	t->report(buf_text(&text), t->report_arg);
}

static void send_batch(struct tracer *t, size_t count)
{
	struct exporter_answer a = { .outcome = EXPORTER_LOST };
	cleanup_buf struct buf body = { 0 };
	uint64_t failed = count;

	buf_init(&body, FETCH_BODY_MAX);
	if (otlp_write(t->resource, t->batch, count, &body) == 0)
		deliver(t, &body, &a);
	if (a.outcome == EXPORTER_SENT)
		failed = a.rejected < count ? a.rejected : count;
	tell(t, &a);
	free(a.why);
	pthread_mutex_lock(&t->lock);
	t->counts.failed += failed;
	t->counts.exported += count - failed;
	pthread_mutex_unlock(&t->lock);
}

static void *run(void *arg)
{
	struct tracer *t = arg;
	size_t n;

	while ((n = take_batch(t)) > 0)
		send_batch(t, n);
	pthread_mutex_lock(&t->lock);
	t->is_over = true;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* ---- start and end */

static void release(struct tracer *t)
{
	exporter_done(&t->exporter);
	free(t->resource);
	free(t->queue);
	free(t->batch);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static int make_room(struct tracer *t, const struct tracer_options *o, struct cordon_error **reterr)
{
	t->max = o->queue ? o->queue : (uint64_t)QUEUE;
	if (t->max > QUEUE_MAX)
		return err_set(reterr, CORDON_INVALID, "at most %d spans may wait", QUEUE_MAX);
	t->enough = t->max < BATCH ? t->max : (size_t)BATCH;
	t->queue = mem_alloc(t->max * sizeof(*t->queue));
	t->batch = mem_alloc(BATCH * sizeof(*t->batch));
	t->resource = otlp_resource(o->name ? o->name : "cordon");
	return t->queue && t->batch && t->resource ? 0
						   : err_set(reterr, CORDON_NOMEM, "out of memory");
}

int tracer_new(const struct tracer_options *o, struct tracer **ret, struct cordon_error **reterr)
{
	struct tracer *t = mem_alloc(sizeof(*t));

	if (!t)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	pthread_mutex_init(&t->lock, NULL);
	condvar_init(&t->changed);
	t->delay_ms = o->delay_ms ? o->delay_ms : (uint64_t)DELAY_MS;
	t->timeout_ms = o->timeout_ms ? o->timeout_ms : (uint64_t)TIMEOUT_MS;
	t->end_ms = o->end_ms ? o->end_ms : (uint64_t)END_MS;
	t->report = o->report;
	t->report_arg = o->report_arg;
	int r = exporter_init(&t->exporter, o, reterr);
	if (r == 0)
		r = make_room(t, o, reterr);
	if (r == 0 && pthread_create(&t->thread, NULL, run, t) != 0)
		r = err_set(reterr, CORDON_OS, "no thread could be started");
	if (r < 0) {
		release(t);
		return r;
	}
	*ret = t;
	return 0;
}

struct tracer *tracer_free(struct tracer *t)
{
	if (!t)
		return NULL;
	pthread_mutex_lock(&t->lock);
	t->end = deadline_after_ms(t->end_ms);
	t->is_ending = true;
	pthread_cond_broadcast(&t->changed);
	while (!t->is_over && condvar_wait(&t->changed, &t->lock, t->end))
		;
	pthread_mutex_unlock(&t->lock);
	exporter_stop(&t->exporter); /* what has not ended in time ends now */
	(void)pthread_join(t->thread, NULL);
	release(t);
	return NULL;
}
