/* files/autosave.c - see autosave.h. */
#include "files/autosave.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/condvar.h"
#include "base/mem.h"
#include "base/str.h"

enum { DEFAULT_MS = 1000, MAX_DELAYS = 10 };

struct autosave {
	autosave_fn save;
	void *arg;
	uint64_t delay_ns;
	pthread_t thread;
	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t wake;
	bool is_ending;
	uint64_t first_ns, last_ns; /* first and last change that is not saved yet; 0: none */
	bool is_unsaved;            /* the last save failed */
	char *failure;              /* why; NULL: it did not fail, or no memory */

	pthread_mutex_t saving; /* one save at a time; taken before the lock */
};

/* Called with the lock held. */
static void note(struct autosave *a, const struct cordon_error *e, int r)
{
	free(a->failure);
	a->is_unsaved = r < 0;
	a->failure = r < 0 ? err_text(e) : NULL;
}

/* Saves if there is anything to save. A failed save is retried after the next change, and by a
 * flush (retries). */
static int save_now(struct autosave *a, bool retries, struct cordon_error **reterr)
{
	struct cordon_error *e = NULL;

	(void)pthread_mutex_lock(&a->saving);
	(void)pthread_mutex_lock(&a->lock);
	bool is_due = a->first_ns != 0 || (retries && a->is_unsaved);
	a->first_ns = a->last_ns = 0;
	(void)pthread_mutex_unlock(&a->lock);
	int r = is_due ? a->save(a->arg, &e) : 0;
	(void)pthread_mutex_lock(&a->lock);
	if (is_due)
		note(a, e, r);
	(void)pthread_mutex_unlock(&a->lock);
	(void)pthread_mutex_unlock(&a->saving);
	if (reterr && e)
		*reterr = e;
	else
		cordon_error_free(e);
	return r;
}

static uint64_t due_ns(const struct autosave *a)
{
	uint64_t after_last = a->last_ns + a->delay_ns,
		 latest = a->first_ns + MAX_DELAYS * a->delay_ns;
	return after_last < latest ? after_last : latest;
}

static void *work(void *arg)
{
	struct autosave *a = arg;
	(void)pthread_mutex_lock(&a->lock);
	while (!a->is_ending) {
		if (!a->first_ns) {
			(void)pthread_cond_wait(&a->wake, &a->lock);
			continue;
		}
		uint64_t due = due_ns(a);
		if (clock_now_ns() < due) {
			(void)condvar_wait(&a->wake, &a->lock, due);
			continue;
		}
		(void)pthread_mutex_unlock(&a->lock);
		(void)save_now(a, false,
			       NULL); /* a failure is kept for autosave_failure and flush */
		(void)pthread_mutex_lock(&a->lock);
	}
	(void)pthread_mutex_unlock(&a->lock);
	return NULL;
}

int autosave_new(uint64_t delay_ms, autosave_fn save, void *arg, struct autosave **ret,
		 struct cordon_error **reterr)
{
	struct autosave *a = mem_alloc(sizeof(*a));
	if (!a)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	a->save = save;
	a->arg = arg;
	a->delay_ns = (delay_ms ? delay_ms : DEFAULT_MS) * 1000000;
	condvar_init(&a->wake);
	(void)pthread_mutex_init(&a->lock, NULL);
	(void)pthread_mutex_init(&a->saving, NULL);
	int e = pthread_create(&a->thread, NULL, work, a);
	if (e) {
		free(a);
		return err_errno(reterr, e, "start the thread that saves");
	}
	*ret = a;
	return 0;
}

void autosave_touch(struct autosave *a)
{
	(void)pthread_mutex_lock(&a->lock);
	a->last_ns = clock_now_ns();
	if (!a->first_ns)
		a->first_ns = a->last_ns;
	(void)pthread_cond_signal(&a->wake);
	(void)pthread_mutex_unlock(&a->lock);
}

int autosave_flush(struct autosave *a, struct cordon_error **reterr)
{
	return save_now(a, true, reterr);
}

char *autosave_failure(struct autosave *a)
{
	(void)pthread_mutex_lock(&a->lock);
	char *text = a->is_unsaved ? str_dup(a->failure ? a->failure : "out of memory") : NULL;
	(void)pthread_mutex_unlock(&a->lock);
	return text;
}

struct autosave *autosave_free(struct autosave *a)
{
	if (!a)
		return NULL;
	(void)pthread_mutex_lock(&a->lock);
	a->is_ending = true;
	(void)pthread_cond_signal(&a->wake);
	(void)pthread_mutex_unlock(&a->lock);
	(void)pthread_join(a->thread, NULL);
	(void)save_now(a, false, NULL);
	(void)pthread_mutex_destroy(&a->lock);
	(void)pthread_mutex_destroy(&a->saving);
	(void)pthread_cond_destroy(&a->wake);
	free(a->failure);
	free(a);
	return NULL;
}
