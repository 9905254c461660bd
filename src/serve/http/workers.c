/* serve/http/workers.c - see workers.h. */
#include "serve/http/workers.h"

#include <pthread.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/os.h"

enum { IDLE_MS = 10000, KEPT = 2 };

struct job {
	void (*fn)(void *arg);
	void *arg;
	struct job *next;
};

struct workers {
	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t work, ended;
	struct job *first, **last;
	unsigned max, threads, idle, waiting; /* waiting: jobs in the list */
	bool is_over;
};

/* Called with the lock held. NULL: this thread is not needed any more. */
static struct job *next_job(struct workers *w)
{
	deadline_ns until = deadline_after_ms(IDLE_MS);

	while (!w->first) {
		if (w->is_over)
			return NULL;
		w->idle++;
		os_thread_name("idle worker"); /* so that those that stay can be told from others */
		bool is_woken = condvar_wait(&w->work, &w->lock, until);
		os_thread_name("worker");
		w->idle--;
		if (!is_woken && !w->first && w->threads > KEPT)
			return NULL;
		if (!is_woken)
			until = deadline_after_ms(IDLE_MS);
	}
	struct job *j = w->first;
	w->first = j->next;
	if (!w->first)
		w->last = &w->first;
	w->waiting--;
	return j;
}

static void *work(void *arg)
{
	struct workers *w = arg;
	struct job *j;

	pthread_mutex_lock(&w->lock);
	while ((j = next_job(w))) {
		pthread_mutex_unlock(&w->lock);
		j->fn(j->arg);
		free(j);
		pthread_mutex_lock(&w->lock);
	}
	w->threads--;
	pthread_cond_broadcast(&w->ended);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int workers_new(unsigned max, struct workers **ret, struct cordon_error **reterr)
{
	struct workers *w = mem_alloc(sizeof(*w));

	if (!w)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	w->max = max;
	w->last = &w->first;
	pthread_mutex_init(&w->lock, NULL);
	condvar_init(&w->work);
	condvar_init(&w->ended);
	*ret = w;
	return 0;
}

struct workers *workers_free(struct workers *w)
{
	if (!w)
		return NULL;
	pthread_mutex_lock(&w->lock);
	w->is_over = true;
	pthread_cond_broadcast(&w->work);
	while (w->threads > 0)
		pthread_cond_wait(&w->ended, &w->lock);
	pthread_mutex_unlock(&w->lock);
	pthread_cond_destroy(&w->work);
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return NULL;
}

/* Called with the lock held. */
static void start_thread(struct workers *w)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, work, w) == 0)
		w->threads++;
	pthread_attr_destroy(&attr);
}

bool workers_run(struct workers *w, void (*fn)(void *arg), void *arg)
{
	struct job *j = mem_alloc(sizeof(*j));

	if (!j)
		return false;
	*j = (struct job){ .fn = fn, .arg = arg };
	pthread_mutex_lock(&w->lock);
	if (w->waiting >= w->idle && w->threads < w->max)
		start_thread(w);
	bool good = w->threads > 0;
	if (good) {
		*w->last = j;
		w->last = &j->next;
		w->waiting++;
		pthread_cond_signal(&w->work);
	}
	pthread_mutex_unlock(&w->lock);
	if (!good)
		free(j);
	return good;
}
