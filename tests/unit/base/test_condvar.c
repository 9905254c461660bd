/* tests/unit/base/test_condvar.c - waits with a deadline of the monotonic clock. */
#include "base/condvar.h"

#include "harness/test.h"

struct light {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_on;
};

static void *switch_on(void *arg)
{
	struct light *l = arg;

	pthread_mutex_lock(&l->lock);
	l->is_on = true;
	pthread_cond_signal(&l->changed);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static void set_up(struct light *l)
{
	*l = (struct light){ .is_on = false };
	pthread_mutex_init(&l->lock, NULL);
	condvar_init(&l->changed);
}

/* By the wall clock these moments are fifty years ago: no wait would last. */
static void wait_for(struct light *l, deadline_ns deadline)
{
	pthread_t thread;

	set_up(l);
	pthread_mutex_lock(&l->lock);
	ASSERT_EQ(pthread_create(&thread, NULL, switch_on, l), 0);
	while (!l->is_on)
		ASSERT(condvar_wait(&l->changed, &l->lock, deadline));
	pthread_mutex_unlock(&l->lock);
	pthread_join(thread, NULL);
}

TEST(a_wait_lasts_until_the_deadline_of_the_monotonic_clock)
{
	struct light l;

	wait_for(&l, deadline_after_ms(3600000));
	wait_for(&l, deadline_after_ms(UINT64_MAX));
	wait_for(&l, 0);
}

TEST(a_wait_ends_at_its_deadline)
{
	struct light l;

	set_up(&l);
	pthread_mutex_lock(&l.lock);
	while (condvar_wait(&l.changed, &l.lock, clock_now_ns() + 1000))
		; /* woken for nothing */
	ASSERT(!condvar_wait(&l.changed, &l.lock, 1));
	pthread_mutex_unlock(&l.lock);
}
