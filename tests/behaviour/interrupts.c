/* tests/behaviour/interrupts.c - an interrupt reaches the execution that runs when it is requested,
 * in every guest. A late one reaches none. */
#include "dialect.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cordon/files.h"
#include "harness/test.h"

enum { ROUNDS = 300, LATE_MS = 1500, PATIENCE_MS = 60000 };

/* Says that it is there, and goes on when it is told to; %d: its number. */
static const char *const waits[DIALECTS] = {
	"import os, time\nopen('/tmp/up%d', 'w').close()\n"
	"while not os.path.exists('/tmp/go%d'): time.sleep(0.005)",
	"invisible(file.create('/tmp/up%d')); while (!file.exists('/tmp/go%d')) Sys.sleep(0.005)",
	"require('fs').writeFileSync('/tmp/up%d', ''); "
	"while (!require('fs').existsSync('/tmp/go%d')) Atomics.wait(new Int32Array(new "
	"SharedArrayBuffer(4)), 0, 0, 5)",
	": > /tmp/up%d; until [ -e /tmp/go%d ]; do sleep 0.005; done",
};

/* They never return to Node's event loop. */
enum { CALLBACKS = 3 };
static const char *const callbacks[CALLBACKS] = {
	"setTimeout(() => { require('fs').writeFileSync('/tmp/up0', ''); while (true) {} }, 0); 1",
	"setImmediate(() => { require('fs').writeFileSync('/tmp/up0', ''); while (true) {} }); 1",
	"await new Promise(() => setInterval(() => { require('fs').writeFileSync('/tmp/up0', ''); "
	"while (true) {} }, 1))",
};

struct pair { /* two executions of one session, one after the other, in a thread of their own */
	struct cordon_session *session;
	char code[2][400];
	struct cordon_result *results[2];
	_Atomic int over;
};

static void *run_pair(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < 2; i++) {
		p->results[i] = run_for(p->session, p->code[i], PATIENCE_MS);
		p->over = i + 1;
	}
	return NULL;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

static bool is_there(struct cordon_session *s, const char *name, int i)
{
	struct cordon_file_info info;
	char path[32];

	snprintf(path, sizeof(path), "/tmp/%s%d", name, i);
	return cordon_file_stat(s, path, &info, NULL) == 0;
}

static void tell(struct cordon_session *s, int i)
{
	char path[32];

	snprintf(path, sizeof(path), "/tmp/go%d", i);
	ASSERT_EQ(cordon_file_write(s, path, "", 0, NULL), 0);
}

static pid_t pid_of(struct cordon_session *s)
{
	char *text = cordon_session_describe(s), *at = strstr(text, "\"pid\":");
	pid_t pid = at ? (pid_t)strtol(at + 6, NULL, 10) : 0;

	free(text);
	ASSERT(pid > 1);
	return pid;
}

/* Until a process that was stopped has done what it had to do, and waits again. */
static void wait_asleep(pid_t pid)
{
	char path[40], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (state != 'S') {
		FILE *f = fopen(path, "r");

		ASSERT(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
		fclose(f);
		nap();
	}
}

/* Pid 1, which passes interrupts on, stands still while the execution ends that one was for. */
static void interrupt_late(const struct dialect *d)
{
	struct pair p = { .session = open_with(d->guest, NULL) };
	pid_t init = pid_of(p.session);
	const char *waiting = waits[d - dialects];
	pthread_t thread;

	ASSERT(waiting);
	for (int i = 0; i < 2; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(p.code[i], sizeof(p.code[i]), waiting, i, i);
#pragma GCC diagnostic pop
	}
	ASSERT_EQ(pthread_create(&thread, NULL, run_pair, &p), 0);
	while (!is_there(p.session, "up", 0))
		nap();
	ASSERT_EQ(kill(init, SIGSTOP), 0);
	ASSERT_EQ(cordon_session_interrupt(p.session, NULL), 0);
	tell(p.session, 0);
	/* Where the second begins before that, it is what the interrupt would hit. */
	for (int ms = 0; ms < LATE_MS && !is_there(p.session, "up", 1); ms += 2)
		nap();
	ASSERT_EQ(kill(init, SIGCONT), 0);
	wait_asleep(init);
	while (!is_there(p.session, "up", 1) && p.over < 2)
		nap();
	if (p.over < 2)
		tell(p.session, 1);
	pthread_join(thread, NULL);
	if (!cordon_result_success(p.results[1]))
		test_fail(__FILE__, __LINE__, "%s: the next one was hit: %s", d->guest,
			  cordon_result_json(p.results[1]));
	for (int i = 0; i < 2; i++)
		cordon_result_free(p.results[i]);
	cordon_session_close(p.session);
}

TEST(an_interrupt_that_is_late_hits_nothing)
{
	EACH_DIALECT(d) interrupt_late(d);
}

static void *run_first(void *arg)
{
	struct pair *p = arg;

	p->results[0] = run_for(p->session, p->code[0], PATIENCE_MS);
	return NULL;
}

/* At any moment of an execution, its end too. The next begins when the call has returned. */
TEST(an_interrupt_at_any_moment_hits_no_later_execution)
{
	EACH_DIALECT(d)
	{
		struct pair p = { .session = open_with(d->guest, NULL) };

		must(p.session, d->set_x);
		snprintf(p.code[0], sizeof(p.code[0]), "%s", d->get_x);
		for (int i = 0; i < ROUNDS; i++) {
			pthread_t thread;

			ASSERT_EQ(pthread_create(&thread, NULL, run_first, &p), 0);
			for (int spin = 0; spin < i * 200; spin++)
				__asm__ volatile("");
			ASSERT_EQ(cordon_session_interrupt(p.session, NULL), 0);
			pthread_join(thread, NULL);
			cordon_result_free(p.results[0]);
			must_be(p.session, d, d->get_x, d->x_value);
		}
		cordon_session_close(p.session);
	}
}

/* Interrupts the first execution once it has written its file. */
static void interrupt_first(struct pair *p)
{
	pthread_t thread;

	ASSERT_EQ(pthread_create(&thread, NULL, run_first, p), 0);
	while (!is_there(p->session, "up", 0))
		nap();
	ASSERT_EQ(cordon_session_interrupt(p->session, NULL), 0);
	pthread_join(thread, NULL);
	ASSERT(!cordon_result_success(p->results[0]));
}

TEST(an_interrupt_ends_what_runs)
{
	EACH_DIALECT(d)
	{
		struct pair p = { .session = open_with(d->guest, NULL) };
		must(p.session, d->set_x);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(p.code[0], sizeof(p.code[0]), waits[d - dialects], 0, 0);
#pragma GCC diagnostic pop
		interrupt_first(&p);
		cordon_result_free(p.results[0]);
		must_be(p.session, d, d->get_x, d->x_value);
		cordon_session_close(p.session);
	}
}

/* Node would not survive the end of one of its own callbacks, so it ends with it: the result says
 * that the state is lost, and the session goes on with a new Node and the same files. */
TEST(an_interrupt_of_a_callback_that_never_returns_costs_the_state)
{
	const struct dialect *d = &dialects[2];

	for (int i = 0; i < CALLBACKS && dialect_is_here(d); i++) {
		struct pair p = { .session = open_with(d->guest, NULL) };
		must(p.session, d->set_x);
		must(p.session, d->write_file);
		snprintf(p.code[0], sizeof(p.code[0]), "%s", callbacks[i]);
		interrupt_first(&p);
		ASSERT_STREQ(cordon_result_error(p.results[0]),
			     "Interrupted: The execution was interrupted");
		ASSERT(strstr(cordon_result_json(p.results[0]), "\"restarted\": true"));
		cordon_result_free(p.results[0]);
		must_be(p.session, d, d->read_file, "\"kept\"");
		must_be(p.session, d, "typeof x", "\"undefined\"");
		cordon_session_close(p.session);
	}
}

/* Until code runs there is nothing to cancel, and that is no error: it is asked for until it has
 * happened. */
struct canceller {
	struct cordon_session *session;
	_Atomic bool is_over;
};

static void *cancel_until_over(void *arg)
{
	struct canceller *c = arg;

	while (!c->is_over) {
		(void)cordon_session_cancel(c->session, NULL);
		usleep(1000);
	}
	return NULL;
}

TEST(cancel_from_another_thread)
{
	EACH_DIALECT(d)
	{
		struct cordon_session *s = open_with(d->guest, NULL);
		struct canceller c = { .session = s };
		pthread_t t;

		ASSERT_EQ(pthread_create(&t, NULL, cancel_until_over, &c), 0);
		must_fail(s, d->sleep, 0, "cancelled", NULL);
		c.is_over = true;
		pthread_join(t, NULL);
		must(s, d->set_x);
		cordon_session_close(s);
	}
}

struct sleeper {
	struct cordon_session *session;
	_Atomic bool is_up;
};

static void note_up(int stream, const char *bytes, size_t len, void *arg)
{
	struct sleeper *p = arg;

	(void)stream;
	(void)bytes;
	p->is_up = len > 0;
}

static void *execute_sleep(void *arg)
{
	struct sleeper *p = arg;
	struct cordon_result *r = NULL;
	struct cordon_execute_options o = {
		.code = "import time; print('up', flush=True); time.sleep(60)",
		.output = note_up,
		.output_arg = p,
	};

	if (cordon_session_execute(p->session, &o, &r, NULL) == 0)
		cordon_result_free(r);
	return NULL;
}

TEST(one_execution_at_a_time)
{
	cleanup_error struct cordon_error *e = NULL, *again = NULL;
	struct cordon_session *s = open_with("python", NULL);
	struct cordon_result *r = NULL;
	struct sleeper sleeper = { .session = s };
	pthread_t t;

	ASSERT_EQ(pthread_create(&t, NULL, execute_sleep, &sleeper), 0);
	while (!sleeper.is_up)
		usleep(1000);
	ASSERT_EQ(
		cordon_session_execute(s, &(struct cordon_execute_options){ .code = "1" }, &r, &e),
		-CORDON_STATE);
	ASSERT(strstr(cordon_error_message(e), "concurrent"));
	ASSERT_EQ(cordon_session_restart(s, &again), -CORDON_STATE);
	ASSERT(strstr(cordon_error_message(again),
		      "Cannot restart while an execution is in progress"));
	(void)cordon_session_cancel(s, NULL);
	pthread_join(t, NULL);
	cordon_session_close(s);
}
