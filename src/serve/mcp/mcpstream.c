/* serve/mcp/mcpstream.c - see mcpstream.h. */
#include "serve/mcp/mcpstream.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/os.h"

enum {
	NEWS_MAX = 1 << 20,     /* queued notifications for a slow reader; more are dropped */
	EVENTS_AFTER_MS = 1000, /* until then, an answer may still be sent as plain JSON */
	ALIVE_MS = 15000,       /* proxies close connections that are silent for longer */
};

struct stream {
	struct mcpstream_options o;
	struct mcp_sink sink;
	json_t *message;
	int event_fd;
	pthread_mutex_t lock; /* guards the fields below */
	struct buf news;      /* events not sent yet */
	json_t *answer;       /* NULL: none yet, or none at all */
	bool is_over;         /* the worker is done */
	bool has_told;        /* the answer was added to the events */
	bool has_left;        /* the client closed the connection */
	bool is_gone;         /* the same, and its code was told */
	unsigned refs;
};

static void wake(struct stream *s)
{
	(void)os_event_set(s->event_fd);
}

static void stream_put(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	bool is_last = --s->refs == 0;
	pthread_mutex_unlock(&s->lock);
	if (!is_last)
		return;
	mcpclient_put(s->o.clients, s->o.client);
	json_decref(s->message);
	json_decref(s->answer);
	buf_done(&s->news);
	close(s->event_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int add_event(struct stream *s, const json_t *message)
{
	size_t len = 0;
	cleanup_free char *text = json_text(message, &len);
	int r = text ? buf_add_str(&s->news, "event: message\ndata: ") : -CORDON_NOMEM;

	if (r == 0)
		r = buf_add(&s->news, text, len);
	return r < 0 ? r : buf_add_str(&s->news, "\n\n");
}

static bool send_news(const json_t *message, void *arg)
{
	struct stream *s = arg;

	pthread_mutex_lock(&s->lock);
	bool is_heard = s->o.accepts_events && !s->is_gone;
	size_t before = s->news.len;
	if (is_heard && before < NEWS_MAX && add_event(s, message) < 0)
		s->news.len = before;
	pthread_mutex_unlock(&s->lock);
	wake(s);
	return is_heard;
}

static void *work(void *arg)
{
	struct stream *s = arg;
	json_t *answer = mcp_handle(&s->o.client->mcp, s->message, &s->sink);

	pthread_mutex_lock(&s->lock);
	s->answer = answer;
	s->is_over = true;
	pthread_mutex_unlock(&s->lock);
	wake(s);
	stream_put(s);
	return NULL;
}

static void wait_event(struct stream *s, int ms)
{
	struct pollfd p = { .fd = s->event_fd, .events = POLLIN };

	if (poll(&p, 1, ms) > 0)
		os_event_clear(s->event_fd);
}

/* In the server's thread, which must not wait: the handler sees it and hangs up. */
static void on_left(void *arg)
{
	struct stream *s = arg;

	pthread_mutex_lock(&s->lock);
	s->has_left = true;
	pthread_mutex_unlock(&s->lock);
	wake(s);
}

static bool has_left(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	bool has = s->has_left;
	pthread_mutex_unlock(&s->lock);
	return has;
}

/* The client is gone. Whether its code continues depends on the protocol version. */
static void hang_up(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	bool is_news = !s->is_gone;
	s->is_gone = true;
	bool is_over = s->is_over;
	pthread_mutex_unlock(&s->lock);
	if (is_news && !is_over && s->o.dies_with_connection)
		mcp_abandon(&s->o.client->mcp, &s->sink);
}

/* Waits until the form of the answer is known. True: an event stream. */
static bool wait_shape(struct stream *s)
{
	deadline_ns until = deadline_after_ms(EVENTS_AFTER_MS);

	for (;;) {
		pthread_mutex_lock(&s->lock);
		bool is_over = s->is_over || s->is_gone, has_news = s->news.len > 0;
		pthread_mutex_unlock(&s->lock);
		if (has_news || is_over)
			return has_news;
		if (s->o.accepts_events && deadline_is_over(until))
			return true;
		wait_event(s, s->o.accepts_events ? deadline_poll_ms(until) : ALIVE_MS);
		if (has_left(s))
			hang_up(s);
	}
}

/* Takes what to send next; the answer comes last. */
static void take_news(struct stream *s, struct buf *ret, bool *ret_end)
{
	pthread_mutex_lock(&s->lock);
	if (s->news.len == 0 && s->is_over && !s->has_told) {
		s->has_told = true;
		if (s->answer)
			(void)add_event(s, s->answer);
	}
	*ret = s->news;
	*ret_end = s->has_told;
	buf_init(&s->news, SIZE_MAX / 2);
	pthread_mutex_unlock(&s->lock);
}

static void send_events(struct httpd_exchange *x, struct stream *s)
{
	static const char alive[] = ":\n\n";
	bool is_end = false, is_heard = true;

	httpd_stream_begin(x, 200, "text/event-stream");
	while (is_heard && !is_end) {
		cleanup_buf struct buf news = { 0 };
		take_news(s, &news, &is_end);
		if (news.len > 0) {
			is_heard = httpd_stream_write(x, news.data, news.len);
			continue;
		}
		uint64_t before = clock_now_ns();
		if (!is_end)
			wait_event(s, ALIVE_MS);
		if (clock_now_ns() - before >= (uint64_t)ALIVE_MS * 1000000)
			is_heard = httpd_stream_write(x, alive, sizeof(alive) - 1);
		is_heard = is_heard && !has_left(s);
	}
	if (!is_heard)
		hang_up(s);
	httpd_stream_end(x, is_heard);
}

static void answer_alone(struct httpd_exchange *x, struct stream *s)
{
	size_t len = 0;

	/* If the client has left, the call may end just now. */
	pthread_mutex_lock(&s->lock);
	cleanup_json json_t *answer = TAKE_PTR(s->answer);
	pthread_mutex_unlock(&s->lock);
	cleanup_free char *text = answer ? json_text(answer, &len) : NULL;
	if (text)
		httpd_answer(x, s->o.status(answer), "application/json", text, len);
	else if (answer)
		httpd_answer(x, 500, NULL, NULL, 0);
	else /* cancelled: no answer, which only a stream can express */
		httpd_answer(x, 200, "text/event-stream", NULL, 0);
}

static struct stream *stream_new(const struct httpd_exchange *x, const struct mcpstream_options *o)
{
	struct stream *s = mem_alloc(sizeof(*s));

	if (!s)
		return NULL;
	s->o = *o;
	s->event_fd = os_event_open();
	if (s->event_fd < 0) {
		free(s);
		return NULL;
	}
	s->message = o->message;
	s->sink = (struct mcp_sink){ .send = send_news, .arg = s, .trace = *httpd_trace(x) };
	s->refs = 2;
	(void)mcpclient_ref(o->clients, o->client);
	buf_init(&s->news, SIZE_MAX / 2);
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void mcpstream_serve(struct httpd_exchange *x, const struct mcpstream_options *o)
{
	struct stream *s = stream_new(x, o);
	pthread_t thread;

	if (!s) {
		json_decref(o->message);
		httpd_answer(x, 503, NULL, NULL, 0);
		return;
	}
	if (pthread_create(&thread, NULL, work, s) != 0) {
		httpd_answer(x, 503, NULL, NULL, 0);
		s->refs = 1; /* there is no worker to hold the other */
		stream_put(s);
		return;
	}
	(void)pthread_detach(thread);
	httpd_watch(x, on_left, s);
	if (wait_shape(s))
		send_events(x, s);
	else
		answer_alone(x, s);
	httpd_unwatch(x);
	stream_put(s);
}
