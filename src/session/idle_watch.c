/* session/idle_watch.c - see idle_watch.h. The thread ends some time after the last session. */
#include "session/idle_watch.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "session/place.h"

/* Guards the list. It is not held while a session is checked, so opening or closing another one
 * does not wait. The session that is checked leaves the list only afterwards. */
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t looked = PTHREAD_COND_INITIALIZER;
static struct cordon_session *watched, *looked_at, *look_next;
static bool is_running;

/* The place is idle if no context and no command runs. */
static void look_at_place(struct cordon_session *s, uint64_t limit_us)
{
	if (s->is_busy || s->is_closed || s->active > 0 || s->idle_cpu_us == 0 || !s->place ||
	    box_has_ended(place_box(s->place)))
		return;
	if (box_cpu_us(place_box(s->place), BOX_CPU_ALL) > s->idle_cpu_us + limit_us)
		place_spend(s->place);
}

/* The session is idle and stays so while its lock is held, so its engine may be used here. */
static void look(struct cordon_session *s)
{
	uint64_t limit_us = s->policy.cpu_seconds * 1000000;

	pthread_mutex_lock(&s->lock);
	if (s->languages) {
		look_at_place(s, limit_us);
		pthread_mutex_unlock(&s->lock);
		return;
	}
	struct engine *e = s->is_busy || s->is_closed ? NULL : s->engine;
	/* Before the first execution, nothing of the guest is untrusted code. */
	if (e && e->cpu_us > 0 && !e->is_spent && !box_has_ended(e->box) &&
	    box_cpu_us(e->box, BOX_CPU_ALL) > e->cpu_us + limit_us) {
		e->is_spent = true;
		box_end(e->box);
	}
	pthread_mutex_unlock(&s->lock);
}

/* Called with the lock held; releases it during the check. */
static void look_unlocked(struct cordon_session *s)
{
	looked_at = s;
	look_next = s->watch_next;
	pthread_mutex_unlock(&watch_lock);
	look(s);
	pthread_mutex_lock(&watch_lock);
	looked_at = NULL;
	pthread_cond_broadcast(&looked);
}

static void *watch(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&watch_lock);
	while (watched) {
		look_next = watched;
		while (look_next)
			look_unlocked(look_next);
		pthread_mutex_unlock(&watch_lock);
		(void)nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
		pthread_mutex_lock(&watch_lock);
	}
	is_running = false;
	pthread_mutex_unlock(&watch_lock);
	return NULL;
}

/* Blocks all signals, so that they go to the host's own threads. */
static int start_thread(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int e = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (e == 0)
		(void)pthread_detach(thread);
	return e;
}

int idle_watch_add(struct cordon_session *s, struct cordon_error **reterr)
{
	int e = 0;

	if (s->policy.cpu_seconds == POLICY_UNLIMITED)
		return 0;
	pthread_mutex_lock(&watch_lock);
	s->watch_next = watched;
	watched = s;
	if (!is_running)
		e = start_thread();
	is_running = is_running || e == 0;
	pthread_mutex_unlock(&watch_lock);
	return e ? err_errno(reterr, e, "start the thread that counts CPU time") : 0;
}

void idle_watch_remove(struct cordon_session *s)
{
	pthread_mutex_lock(&watch_lock);
	while (looked_at == s)
		pthread_cond_wait(&looked, &watch_lock);
	if (look_next == s)
		look_next = s->watch_next;
	for (struct cordon_session **p = &watched; *p; p = &(*p)->watch_next)
		if (*p == s) {
			*p = s->watch_next;
			break;
		}
	pthread_mutex_unlock(&watch_lock);
}
