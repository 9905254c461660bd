/* serve/e2b/e2b_pause.c - the end of a sandbox's time: it is paused or ended. A paused one keeps
 * its processes, stopped, or only its files. Its time does not run. */
#include <string.h>

#include "base/str.h"
#include "serve/e2b/e2b_context.h"
#include "serve/e2b/e2b_process.h"
#include "serve/e2b/e2b_state.h"
#include "serve/e2b/e2b_watch.h"
#include "session/place.h"

static int enter(struct e2b_sandbox *b, enum e2b_state from, enum e2b_state to,
		 struct cordon_error **reterr)
{
	pthread_mutex_lock(&b->lock);
	bool good = b->state == from;
	if (good)
		b->state = to;
	pthread_mutex_unlock(&b->lock);
	return good ? 0
		    : err_set(reterr, CORDON_STATE, "the sandbox is %s",
			      from == E2B_RUNNING ? "paused already" : "not paused");
}

/* What runs, ends; the files stay. */
static void drop_memory(struct e2b_sandbox *b)
{
	e2b_process_end_all(b);
	e2b_context_end_all(b);
	e2b_watch_end_all(b);
}

int e2b_sandbox_pause(struct e2b_sandbox *b, bool keeps_memory, struct cordon_error **reterr)
{
	int r = enter(b, E2B_RUNNING, E2B_PAUSED, reterr);

	if (r < 0)
		return r;
	b->has_memory = keeps_memory;
	if (!keeps_memory) {
		drop_memory(b);
		return 0;
	}
	e2b_process_cut_all(b);
	r = place_freeze(b->session, true, reterr);
	if (r < 0) {
		(void)place_freeze(b->session, false, NULL);
		(void)enter(b, E2B_PAUSED, E2B_RUNNING, NULL);
	}
	return r;
}

int e2b_sandbox_resume(struct e2b_sandbox *b, bool reboot, struct cordon_error **reterr)
{
	int r = 0;

	if (b->has_memory)
		r = place_freeze(b->session, false, reterr);
	if (r == 0 && b->has_memory && reboot)
		drop_memory(b);
	if (r == 0 && (reboot || !b->has_memory))
		r = e2b_context_restart_all(b, reterr);
	return r < 0 ? r : enter(b, E2B_PAUSED, E2B_RUNNING, reterr);
}

/* In a thread of its own. */
static void end_one(void *arg)
{
	struct e2b_sandbox *b = arg;

	pthread_mutex_lock(&b->tenant->lock);
	bool is_closing = b->tenant->is_closing;
	pthread_mutex_unlock(&b->tenant->lock);
	if (b->auto_pause && !is_closing) {
		(void)e2b_sandbox_pause(b, b->keeps_memory, NULL);
		pthread_mutex_lock(&b->lock);
		b->is_due = false;
		pthread_mutex_unlock(&b->lock);
		e2b_sandbox_put(b);
	} else {
		(void)e2b_sandbox_kill(b);
	}
}

struct due {
	struct e2b_sandbox *first; /* with a reference */
};

static bool find_due(struct e2b_sandbox *b, void *arg)
{
	struct due *d = arg;

	pthread_mutex_lock(&b->tenant->lock);
	bool is_closing = b->tenant->is_closing; /* its key is gone */
	pthread_mutex_unlock(&b->tenant->lock);
	pthread_mutex_lock(&b->lock);
	bool is =
		!b->is_due && (is_closing || (b->state == E2B_RUNNING && deadline_is_over(b->end)));
	if (is) {
		b->is_due = true;
		b->refs++;
		d->first = b;
	}
	pthread_mutex_unlock(&b->lock);
	return !is;
}

void e2b_sandbox_expire(struct e2b *e)
{
	for (;;) {
		struct due d = { 0 };

		e2b_sandbox_visit(e, find_due, &d);
		if (!d.first)
			return;
		if (!workers_run(e->enders, end_one, d.first))
			end_one(d.first);
	}
}
