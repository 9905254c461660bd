/* tests/behaviour/pool_load.c - pools under sustained load: from eight threads, with few
 * descriptors, with sessions that are killed. The number of live sessions stays bounded, and
 * nothing is left behind. */
#include "belongings.h"
#include "dialect.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/json.h"
#include "harness/test.h"
#include "session/pool.h"
#include "session/template.h"

enum { CALLERS = 8, MAX_SIZE = 4, CLOSING_MAX = 2, DESCRIPTORS = 1024, WAIT_MS = 60000 };

/* Of the pool's audit: a session is there from its start event to its close event, and longer. */
static atomic_int alive, most_alive;

static void on_audit(const char *line, size_t len, void *arg)
{
	(void)len;
	(void)arg;
	if (strstr(line, "\"session_start\"")) {
		int now = atomic_fetch_add(&alive, 1) + 1, most = atomic_load(&most_alive);

		while (now > most && !atomic_compare_exchange_weak(&most_alive, &most, now))
			;
	} else if (strstr(line, "\"session_close\"")) {
		atomic_fetch_sub(&alive, 1);
	}
}

static struct cordon_pool *open_pool(uint32_t size, uint32_t max_size, bool reuse)
{
	struct cordon_pool_options o = { .session = { .guest = "python", .audit = on_audit },
					 .size = size,
					 .max_size = max_size,
					 .reuse = reuse };
	struct cordon_pool *p = NULL;

	ASSERT_EQ(cordon_pool_new(&o, &p, NULL), 0);
	return p;
}

static void kill_session(struct cordon_session *s)
{
	char *text = cordon_session_describe(s);
	json_t *j = NULL;

	ASSERT(text && json_parse(text, strlen(text), 0, &j, NULL) == 0);
	pid_t pid = (pid_t)json_integer_value(json_object_get(j, "pid"));
	if (pid > 0)
		(void)kill(pid, SIGKILL);
	json_decref(j);
	free(text);
}

struct caller {
	struct cordon_pool *pool;
	unsigned executions, good, failed;
};

static void use_pool(struct caller *c, unsigned i)
{
	struct cordon_execute_options o = { .code = "1" };
	struct cordon_session *s = NULL;
	struct cordon_result *r = NULL;

	if (i % 50 != 0) {
		int e = cordon_pool_execute(c->pool, &o, WAIT_MS, &r, NULL);
		c->good += e == 0 && cordon_result_success(r);
		c->failed += e != 0;
		cordon_result_free(r);
		return;
	}
	if (cordon_pool_acquire(c->pool, WAIT_MS, &s, NULL) != 0) {
		c->failed++;
		return;
	}
	if (i % 100 == 0)
		kill_session(s);
	if (cordon_session_execute(s, &o, &r, NULL) == 0)
		cordon_result_free(r);
	if (i % 200 == 50)
		kill_session(s); /* it is dying while it is given back */
	cordon_pool_release(c->pool, s);
}

static void *call(void *arg)
{
	struct caller *c = arg;

	for (unsigned i = 1; i <= c->executions; i++)
		use_pool(c, i);
	return NULL;
}

static void load(struct cordon_pool *p, unsigned callers, unsigned executions)
{
	struct caller c[CALLERS];
	pthread_t threads[CALLERS];

	for (unsigned i = 0; i < callers; i++) {
		c[i] = (struct caller){ .pool = p, .executions = executions / callers };
		ASSERT_EQ(pthread_create(&threads[i], NULL, call, &c[i]), 0);
	}
	for (unsigned i = 0; i < callers; i++) {
		pthread_join(threads[i], NULL);
		ASSERT_EQ(c[i].failed, 0);
		ASSERT(c[i].good >= c[i].executions * 9 / 10);
	}
}

static unsigned executions(unsigned count)
{
	const char *more = getenv("CORDON_TEST_LOAD"); /* by hand: so many times as many */

	return count * (more ? (unsigned)atoi(more) : 1);
}

static void limit_descriptors(rlim_t count)
{
	struct rlimit l;

	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &l), 0);
	l.rlim_cur = count;
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &l), 0);
}

static void *do_nothing(void *arg)
{
	return arg;
}

/* With the first thread of a process a sanitizer starts one of its own. */
static void make_a_thread(void)
{
	pthread_t thread;

	ASSERT_EQ(pthread_create(&thread, NULL, do_nothing, NULL), 0);
	pthread_join(thread, NULL);
}

static void load_pool(unsigned callers, unsigned count, bool reuse)
{
	limit_descriptors(DESCRIPTORS);
	make_a_thread();
	template_release_all();
	struct belongings before = count_belongings();
	struct cordon_pool *p = open_pool(MAX_SIZE, MAX_SIZE, reuse);

	load(p, callers, executions(count));
	struct cordon_pool_status st = cordon_pool_get_status(p);
	ASSERT_EQ(st.busy, 0);
	ASSERT(st.total <= MAX_SIZE);
	cordon_pool_free(p);
	ASSERT_EQ(atomic_load(&alive), 0);
	ASSERT(atomic_load(&most_alive) <= MAX_SIZE + CLOSING_MAX);
	must_be_as_before(&before);
}

/* 201 of them were the end of the process, and 193 sessions were alive. */
TEST_WITHIN(a_pool_lasts_with_one_caller, 600)
{
	load_pool(1, 500, false);
}

TEST_WITHIN(a_pool_lasts_with_eight_callers, 600)
{
	load_pool(CALLERS, 2000, false);
}

TEST_WITHIN(a_pool_that_reuses_lasts_with_eight_callers, 600)
{
	load_pool(CALLERS, 2000, true);
}

/* While there are no descriptors nothing can be made; afterwards the pool is as it was. */
TEST(a_pool_recovers_from_a_lack_of_descriptors)
{
	enum { TAKEN = 512 };
	struct cordon_execute_options o = { .code = "1" };
	struct cordon_result *r = NULL;
	int taken[TAKEN], count = 0, refused = 0;

	limit_descriptors(TAKEN);
	struct cordon_pool *p = open_pool(2, 2, false);
	while (count < TAKEN && (taken[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		count++;
	for (int i = 0; i < 6; i++) {
		struct cordon_session *s = NULL;

		if (cordon_pool_acquire(p, 0, &s, NULL) != 0)
			refused++;
		cordon_pool_release(p, s);
	}
	ASSERT(refused > 0);
	while (count > 0)
		close(taken[--count]);
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(cordon_pool_execute(p, &o, WAIT_MS, &r, NULL), 0);
		ASSERT(cordon_result_success(r));
		cordon_result_free(r);
	}
	cordon_pool_free(p);
}

/* Waiters without a thread. */
struct waiting {
	struct pool_waiter waiter;
	sem_t done;
};

static void on_done(struct pool_waiter *w)
{
	sem_post(&((struct waiting *)w)->done);
}

static void wait_for(struct waiting *w, struct cordon_pool *p, deadline_ns deadline)
{
	*w = (struct waiting){ .waiter = { .deadline = deadline, .wake = on_done } };
	sem_init(&w->done, 0, 0);
	pool_queue(p, &w->waiter);
}

static void must_be_refused(struct waiting *w, int code)
{
	ASSERT(w->waiter.is_done && !w->waiter.session);
	ASSERT_EQ(cordon_error_code(w->waiter.error), code);
	cordon_error_free(w->waiter.error);
}

TEST(who_waits_is_served_in_turn_or_told)
{
	struct cordon_pool *p = open_pool(1, 1, false);
	struct cordon_session *s = NULL;
	struct waiting first, second, third, late;

	ASSERT_EQ(cordon_pool_acquire(p, 0, &s, NULL), 0);
	wait_for(&first, p, 0);
	wait_for(&second, p, deadline_after_ms(3600000));
	wait_for(&third, p, 0);
	wait_for(&late, p, 1);
	must_be_refused(&late, CORDON_LIMIT);
	ASSERT(!first.waiter.is_done && !second.waiter.is_done && !third.waiter.is_done);
	cordon_pool_release(p, s);
	sem_wait(&first.done);
	ASSERT(first.waiter.session && !second.waiter.is_done && !third.waiter.is_done);
	pool_leave(p, &second.waiter, false);
	pool_leave(p, &first.waiter, true);
	sem_wait(&third.done);
	ASSERT(third.waiter.session && !second.waiter.is_done);
	wait_for(&second, p, clock_now_ns() + 1000);
	while (!deadline_is_over(second.waiter.deadline))
		;
	pool_check_waiters(p);
	must_be_refused(&second, CORDON_LIMIT);
	wait_for(&first, p, 0);
	wait_for(&second, p, 0);
	cordon_pool_free(p);
	must_be_refused(&first, CORDON_STATE);
	must_be_refused(&second, CORDON_STATE);
	cordon_session_close(third.waiter.session);
}
