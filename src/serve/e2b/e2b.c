/* serve/e2b/e2b.c - see e2b.h. */
#include "serve/e2b/e2b.h"

#include <string.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "serve/e2b/e2b_context.h"
#include "serve/e2b/e2b_process.h"
#include "serve/e2b/e2b_spares.h"
#include "serve/e2b/e2b_state.h"
#include "serve/e2b/e2b_watch.h"

enum { TICK_MS = 250 };

static bool ping(struct e2b_sandbox *b, void *arg)
{
	(void)arg;
	e2b_process_ping_all(b);
	e2b_context_cancel_all(b);
	return true;
}

/* The end of a sandbox may take a while; it is another thread's. */
static void *tick(void *arg)
{
	struct e2b *e = arg;
	bool is_watching = false;

	pthread_mutex_lock(&e->lock);
	while (!e->is_shut) {
		(void)condvar_wait(
			&e->changed, &e->lock,
			!e->first ? 0
				  : deadline_after_ms(is_watching ? (unsigned)E2B_WATCH_POLL_MS
								  : (unsigned)TICK_MS));
		if (e->is_shut || !e->first)
			continue;
		pthread_mutex_unlock(&e->lock);
		e2b_sandbox_expire(e);
		e2b_sandbox_visit(e, ping, NULL);
		is_watching = e2b_watch_poll(e);
		pthread_mutex_lock(&e->lock);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

int e2b_new(struct server *s, const char *templates, struct e2b **ret, struct cordon_error **reterr)
{
	struct e2b *e = mem_alloc(sizeof(*e));

	if (!e)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	pthread_mutex_init(&e->lock, NULL);
	condvar_init(&e->changed);
	random_bytes(e->secret, sizeof(e->secret));
	e->server = s;
	e->templates = str_dup(templates);
	int r = workers_new(ENDERS, &e->enders, reterr);
	if (r == 0)
		r = e2b_spares_new(&e->spares, reterr);
	if (r == 0) {
		int code = pthread_create(&e->ticker, NULL, tick, e);
		e->has_ticker = code == 0;
		if (code != 0)
			r = err_errno(reterr, code, "start a thread");
	}
	if (r < 0) {
		(void)e2b_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

void e2b_shut(struct e2b *e)
{
	pthread_mutex_lock(&e->lock);
	e->is_shut = true;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
	if (e->has_ticker)
		(void)pthread_join(e->ticker, NULL);
	e->has_ticker = false;
	for (;;) {
		struct e2b_sandbox *b = e2b_sandbox_any(e);

		if (!b)
			break;
		(void)e2b_sandbox_kill(b);
	}
	pthread_mutex_lock(&e->lock);
	while (e->count > 0) /* those that other threads end */
		pthread_cond_wait(&e->changed, &e->lock);
	pthread_mutex_unlock(&e->lock);
}

struct e2b *e2b_free(struct e2b *e)
{
	if (!e)
		return NULL;
	e2b_shut(e);
	workers_free(e->enders);
	e2b_spares_free(e->spares);
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
	free(e->templates);
	free(e);
	return NULL;
}
