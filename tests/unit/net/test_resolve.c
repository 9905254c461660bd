/* unit/net/test_resolve.c - lookups that wait, and lookups that were cancelled. */
#include "net/gateway/resolve.h"

#include <semaphore.h>
#include <stdio.h>

#include "harness/test.h"

static sem_t begun, may_end;
static unsigned answers;

/* A resolver that says nothing until it is let. */
static void silent(const struct host *name, struct resolve_result *ret)
{
	(void)name;
	sem_post(&begun);
	sem_wait(&may_end);
	ret->count = 0;
	snprintf(ret->problem, sizeof(ret->problem), "silent");
}

static void on_answer(const struct resolve_result *result, void *arg)
{
	struct loop *l = arg;

	ASSERT_STREQ(result->problem, "silent");
	if (++answers == RESOLVE_THREADS)
		loop_stop(l);
}

static int ask(struct resolver *r, struct loop *l, unsigned n, struct resolve_job **ret)
{
	struct host h = { 0 };

	snprintf(h.name, sizeof(h.name), "n%u.test", n);
	return resolver_start(r, &h, on_answer, l, ret, NULL);
}

TEST(cancelled_lookups_do_not_wait)
{
	struct resolve_job *jobs[RESOLVE_WAITING], *job;
	struct resolver *r = NULL;
	struct loop *l = NULL;

	sem_init(&begun, 0, 0);
	sem_init(&may_end, 0, 0);
	ASSERT_EQ(loop_new(&l, NULL), 0);
	ASSERT_EQ(resolver_new(l, &r, NULL), 0);
	resolver_set_lookup(r, silent);
	for (unsigned i = 0; i < RESOLVE_THREADS; i++) { /* every thread is busy */
		ASSERT_EQ(ask(r, l, i, &job), 0);
		sem_wait(&begun);
	}
	for (unsigned i = 0; i < 30000; i++) {
		ASSERT_EQ(ask(r, l, i + 100, &job), 0);
		resolver_cancel(job);
	}
	ASSERT_EQ(resolver_waiting(r), 0);
	for (unsigned i = 0; i < RESOLVE_WAITING; i++)
		ASSERT_EQ(ask(r, l, i + 100, &jobs[i]), 0);
	ASSERT_EQ(ask(r, l, 1, &job), -CORDON_LIMIT);
	/* From the middle, the ends, and the rest. */
	resolver_cancel(jobs[RESOLVE_WAITING / 2]);
	ASSERT_EQ(ask(r, l, 1, &jobs[RESOLVE_WAITING / 2]), 0);
	for (unsigned i = RESOLVE_WAITING; i > 0; i--)
		resolver_cancel(jobs[i - 1]);
	ASSERT_EQ(resolver_waiting(r), 0);
	ASSERT_EQ(ask(r, l, 1, &job), 0);
	resolver_cancel(job);
	for (unsigned i = 0; i < RESOLVE_THREADS; i++)
		sem_post(&may_end);
	ASSERT_EQ(loop_run(l, NULL), 0);
	ASSERT_EQ(answers, RESOLVE_THREADS);
	resolver_free(r);
	loop_free(l);
}
