/* tests/behaviour/deadlines.c - at its deadline, or when it is cancelled, code is interrupted
 * first. If it stops, the session keeps its state; if not, the guest is killed and the result says
 * so. */
#include "belongings.h"
#include "dialect.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cordon/files.h"
#include "harness/test.h"
#include "session/template.h"

/* Grace times: AMPLE for code that stops at the first interrupt, HALVED for code that stops only at
 * the second, which comes halfway; SCANT for code that never stops. */
#define AMPLE "grace_ms=120000"
#define HALVED "grace_ms=10000"
#define SCANT "grace_ms=200"

enum { DEADLINE_MS = 300, CALLERS = 8 };

struct row {
	int dialect; /* its index in dialects */
	const char *code, *commands;
};

static const struct row yielding[] = {
	{ 0, "import time; time.sleep(60)", NULL },
	{ 0, "while True: pass", NULL },
	{ 0, "import os; os.system('sleep 60')", "sh,sleep" },
	{ 0, "import os\nwhile True: os.system('sleep 60')", "sh,sleep" },
	{ 0, "import subprocess; subprocess.run(['sleep', '60'])", "sh,sleep" },
	{ 0, "import subprocess; subprocess.check_output('sleep 60; echo on', shell=True)",
	  "sh,sleep" },
	{ 0, "import subprocess; subprocess.run(['sh', '-c', \"trap '' INT; sleep 60\"])",
	  "sh,sleep" },
	{ 0,
	  "import threading, time; t = threading.Thread(target=time.sleep, args=(90,), "
	  "daemon=True); t.start(); t.join()",
	  NULL },
	{ 0, "import asyncio; await asyncio.sleep(60)", NULL },
	{ 0, "slow()", NULL },
	{ 0, "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: slow()", NULL },
	{ 0, "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: pass\n42", NULL },
	{ 0, "import time\ntry: time.sleep(60)\nfinally: raise ValueError('in the end')", NULL },
	{ 0, "import sys, time\ntry: time.sleep(60)\nfinally: sys.exit(3)", NULL },
	{ 1, "Sys.sleep(60)", NULL },
	{ 1, "repeat {}", NULL },
	{ 1, "system('sleep 60')", "sleep" },
	{ 1, "system('sleep 60', intern = TRUE)", "sleep" },
	{ 1, "system2('sleep', '60')", "sleep" },
	{ 1, "readLines(pipe('sleep 60'))", "sleep" },
	{ 1, "slow()", NULL },
	{ 1, "tryCatch(Sys.sleep(60), interrupt = function(e) 42)", NULL },
	{ 2, "await new Promise(r => setTimeout(r, 60000))", NULL },
	{ 2, "while (true) {}", NULL },
	{ 2, "require('child_process').execSync('sleep 60')", "sh,sleep" },
	{ 2, "for (;;) try { for (;;) {} } catch {}", NULL },
	{ 2, "(function f() { Promise.resolve().then(f) })(); 1", NULL },
	{ 2, "setInterval(() => {}, 10)", NULL },
	{ 2, "slow()", NULL },
	{ 3, "sleep 60", NULL },
	{ 3, "while true; do :; done", NULL },
	{ 3, "bash -c 'sleep 60; echo on'", NULL },
	{ 3, "sleep 60 | cat; echo on", NULL },
	{ 3, "y=$(sleep 60)", NULL },
	{ 3, "slow", NULL },
	{ 3, "trap 'echo caught' INT; while true; do :; done", NULL },
	{ 3, "trap '' INT; while true; do :; done", NULL },
};

static const struct row stubborn[] = {
	{ 0, "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: time.sleep(60)", NULL },
	{ 0, "import os, time; os.system('sleep 60'); time.sleep(60)", "sh,sleep" },
	{ 1, "tryCatch(Sys.sleep(60), interrupt = function(e) Sys.sleep(60))", NULL },
	{ 2, "for (;;) try { require('child_process').execSync('sleep 60') } catch {}",
	  "sh,sleep" },
};

static const struct row deaf[] = {
	{ 0, "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass",
	  NULL },
	{ 0, "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)",
	  NULL },
	{ 0,
	  "import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
	  "time.sleep(60)",
	  NULL },
	{ 0, "import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); time.sleep(60)",
	  NULL },
	{ 0, "sum(range(1 << 60))", NULL },
	{ 0, "import os; os.system(\"trap '' INT; sleep 60; sleep 60\")", "sh,sleep" },
	{ 1, "suspendInterrupts(repeat {})", NULL },
	{ 1, "repeat tryCatch(Sys.sleep(60), interrupt = function(e) 0)", NULL },
	{ 2, "setTimeout(() => { for (;;) {} }, 0); 1", NULL },
	{ 2, "require('child_process').execSync(\"trap '' INT; sleep 60; sleep 60\")", "sh,sleep" },
	{ 3, "bash -c \"trap '' INT; sleep 60; sleep 60\"", NULL },
};

/* Calls belong to the host until it answers them. */
static struct cordon_call *unanswered[4];
static size_t unanswered_count;

static enum cordon_answer never(struct cordon_call *call, void *arg)
{
	(void)arg;
	ASSERT(unanswered_count < sizeof(unanswered) / sizeof(*unanswered));
	unanswered[unanswered_count++] = call;
	return CORDON_ANSWER_PENDING;
}

/* Nobody waits for these answers any more. */
static void answer_too_late(void)
{
	while (unanswered_count > 0)
		(void)cordon_call_value(unanswered[--unanswered_count], "1", NULL);
}

static struct cordon_session *open_row(const struct row *row, const char *grace)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_policy *p = new_policy(grace);
	struct cordon_tool slow = { .name = "slow", .description = "Never answers.", .fn = never };
	struct cordon_session_options o = { .guest = dialects[row->dialect].guest, .policy = p };
	struct cordon_session *s = NULL;
	char set[64];

	if (row->commands) {
		snprintf(set, sizeof(set), "commands=%s", row->commands);
		ASSERT_EQ(cordon_policy_set(p, set, NULL), 0);
	}
	ASSERT_EQ(cordon_tools_new(&o.tools, NULL), 0);
	ASSERT_EQ(cordon_tools_add(o.tools, &slow, NULL), 0);
	if (cordon_session_open(&o, &s, &e))
		test_fail(__FILE__, __LINE__, "%s: %s", o.guest, cordon_error_message(e));
	cordon_tools_unref(o.tools);
	cordon_policy_free(p);
	return s;
}

static void check(const struct row *row, struct cordon_result *r, const char *kind,
		  const char *part)
{
	const char *json = cordon_result_json(r);

	if (cordon_result_success(r) || strcmp(cordon_result_error_kind(r), kind) != 0 ||
	    !strstr(json, part) || strcmp(cordon_result_value_json(r), "null") != 0)
		test_fail(__FILE__, __LINE__, "%s: %s: no %s with %s: %s",
			  dialects[row->dialect].guest, row->code, kind, part, json);
}

static bool is_here(const struct row *row)
{
	return dialect_is_here(&dialects[row->dialect]);
}

/* The state is what it was, and one such end is like the next. */
static void must_keep(const struct row *row, const char *grace)
{
	const struct dialect *d = &dialects[row->dialect];

	if (!is_here(row))
		return;
	struct cordon_session *s = open_row(row, grace);
	must(s, d->set_x);
	for (int i = 0; i < 2; i++) {
		struct cordon_result *r = run_for(s, row->code, DEADLINE_MS);

		check(row, r, "timeout", "\"restarted\": false");
		ASSERT_STREQ(cordon_result_error(r), "Execution timed out after 300 ms");
		ASSERT_EQ(cordon_result_exit_status(r), 124);
		cordon_result_free(r);
		answer_too_late();
		must_be(s, d, d->get_x, d->x_value);
	}
	cordon_session_close(s);
}

TEST_WITHIN(code_that_yields_at_its_deadline_keeps_its_state, 600)
{
	for (size_t i = 0; i < sizeof(yielding) / sizeof(*yielding); i++)
		must_keep(&yielding[i], AMPLE);
}

TEST_WITHIN(code_is_asked_twice, 600)
{
	for (size_t i = 0; i < sizeof(stubborn) / sizeof(*stubborn); i++)
		must_keep(&stubborn[i], HALVED);
}

/* The files stay, variables are gone, and the result says so. */
static void must_lose(const struct row *row, const char *grace, const char *why)
{
	const struct dialect *d = &dialects[row->dialect];

	if (!is_here(row))
		return;
	struct cordon_session *s = open_row(row, grace);
	must(s, d->set_x);
	must(s, d->write_file);
	struct cordon_result *r = run_for(s, row->code, DEADLINE_MS);
	/* On a busy machine the deadline may come before the code has made itself deaf. */
	for (int i = 0; i < 20 && strstr(cordon_result_json(r), "\"restarted\": false"); i++) {
		check(row, r, "timeout", "\"restarted\": false");
		cordon_result_free(r);
		r = run_for(s, row->code, DEADLINE_MS);
	}
	char *text = cordon_result_restart_text(r);
	check(row, r, "timeout", "\"restarted\": true, \"restart_reason\": ");
	if (!strstr(text, why))
		test_fail(__FILE__, __LINE__, "%s: %s: '%s' is not in '%s'", d->guest, row->code,
			  why, text);
	free(text);
	cordon_result_free(r);
	answer_too_late();
	must(s, d->read_file);
	must(s, d->set_x);
	r = run(s, "1");
	ASSERT(strstr(cordon_result_json(r), "\"restarted\": false"));
	text = cordon_result_restart_text(r);
	ASSERT_STREQ(text, "");
	free(text);
	cordon_result_free(r);
	cordon_session_close(s);
}

TEST_WITHIN(code_that_does_not_yield_is_killed_and_that_is_told, 600)
{
	for (size_t i = 0; i < sizeof(deaf) / sizeof(*deaf); i++)
		must_lose(&deaf[i], SCANT,
			  strstr(deaf[i].code, "SIG_DFL")
				  ? "the guest ended when it was interrupted"
				  : "did not stop within 200 ms after its deadline and was killed");
}

TEST(without_grace_nothing_is_interrupted)
{
	for (size_t i = 0; i < sizeof(yielding) / sizeof(*yielding); i += 8)
		must_lose(&yielding[i], "grace_ms=0", "grace_ms is 0");
}

/* A package of Python and a module of Node, interrupted while they are loaded, can be loaded
 * later. */
TEST(an_interrupted_import_can_be_done_again)
{
	static const char package[] = "from .part import *\nimport os, time\n"
				      "if not os.path.exists('/tmp/go'): time.sleep(60)\n"
				      "z = part.x",
			  part[] = "x = 7\ny = 1",
			  module[] = "exports.early = 1\n"
				     "if (!require('fs').existsSync('/tmp/go')) for (;;) {}\n"
				     "exports.z = 7";
	static const struct row rows[] = { { 0, "import pack; pack.z", NULL },
					   { 2, "require('/tmp/module.js').z", NULL } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (!is_here(&rows[i]))
			continue;
		struct cordon_session *s = open_row(&rows[i], AMPLE);
		ASSERT_EQ(cordon_file_mkdir(s, "/home/user/pack", false, NULL), 0);
		ASSERT_EQ(cordon_file_write(s, "/home/user/pack/__init__.py", package,
					    strlen(package), NULL),
			  0);
		ASSERT_EQ(cordon_file_write(s, "/home/user/pack/part.py", part, strlen(part), NULL),
			  0);
		ASSERT_EQ(cordon_file_write(s, "/tmp/module.js", module, strlen(module), NULL), 0);
		struct cordon_result *r = run_for(s, rows[i].code, DEADLINE_MS);
		check(&rows[i], r, "timeout", "\"restarted\": false");
		cordon_result_free(r);
		ASSERT_EQ(cordon_file_write(s, "/tmp/go", "", 0, NULL), 0);
		must_be(s, &dialects[rows[i].dialect], rows[i].code, "7");
		cordon_session_close(s);
	}
}

/* What an interrupted await would do later is not done in another execution. */
TEST(an_interrupted_coroutine_ends)
{
	struct cordon_session *s = open_row(&yielding[0], AMPLE);

	must(s, "import asyncio; log = []; event = asyncio.Event()");
	struct cordon_result *r = run_for(s,
					  "try:\n    await event.wait()\n    log.append('late')\n"
					  "finally:\n    log.append('finally')",
					  DEADLINE_MS);
	check(&yielding[0], r, "timeout", "\"stderr\": \"\"");
	cordon_result_free(r);
	must(s, "event.set()\nfor _ in range(9): await asyncio.sleep(0)\n"
		"assert 'late' not in log, log");
	cordon_session_close(s);
}

/* A child of the code's that is not in the foreground is not interrupted. */
TEST(a_program_in_a_session_of_its_own_lives_on)
{
	static const struct row row = { 0, "import time; time.sleep(60)", "sleep" };
	struct cordon_session *s = open_row(&row, AMPLE);

	must(s, "import subprocess\n"
		"a = subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
		"b = subprocess.Popen(['sleep', '300'])");
	struct cordon_result *r = run_for(s, row.code, DEADLINE_MS);
	check(&row, r, "timeout", "\"restarted\": false");
	cordon_result_free(r);
	must(s, "assert b.wait() == -2 and a.poll() is None; a.kill()");
	cordon_session_close(s);
}

/* Of two interpreters in one sandbox, one is interrupted. */
TEST(a_timeout_interrupts_one_context_only)
{
	static const char *const languages[] = { "python", NULL };
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_policy *p = new_policy(AMPLE);
	struct cordon_session_options o = { .guest = "python",
					    .languages = languages,
					    .policy = p };
	struct cordon_session *s = NULL, *c = NULL;
	int r = cordon_session_open(&o, &s, &e);

	cordon_policy_free(p);
	if (r == -CORDON_UNSUPPORTED)
		needs(false, cordon_error_message(e));
	ASSERT_EQ(r, 0);
	ASSERT_EQ(cordon_session_context(s, NULL, "c", &c, NULL), 0);
	must(s, "import subprocess; p = subprocess.Popen(['sleep', '300'])");
	must(c, "x = 2");
	must_fail(c, "while True: pass", DEADLINE_MS, "timeout", NULL);
	must(c, "assert x == 2");
	must(s, "assert p.poll() is None");
	cordon_session_close(s);
}

struct waiter {
	struct cordon_session *session;
	const char *code;
	struct cordon_result *result;
	_Atomic bool is_up;
};

static void note_up(int stream, const char *bytes, size_t len, void *arg)
{
	struct waiter *w = arg;

	(void)stream;
	(void)bytes;
	w->is_up = w->is_up || len > 0;
}

static void *execute(void *arg)
{
	struct waiter *w = arg;
	struct cordon_execute_options o = {
		.code = w->code, .timeout_ms = UINT64_MAX, .output = note_up, .output_arg = w
	};

	ASSERT_EQ(cordon_session_execute(w->session, &o, &w->result, NULL), 0);
	return NULL;
}

/* Cancels the code once it has written something. */
static struct cordon_result *cancelled(struct cordon_session *s, const char *code)
{
	struct waiter w = { .session = s, .code = code };
	pthread_t thread;

	ASSERT_EQ(pthread_create(&thread, NULL, execute, &w), 0);
	while (!w.is_up)
		usleep(1000);
	ASSERT_EQ(cordon_session_cancel(s, NULL), 0);
	pthread_join(thread, NULL);
	return w.result;
}

TEST(a_cancel_keeps_the_state_where_the_code_yields)
{
	static const struct row rows[] = {
		{ 0, "import time; print('up', flush=True); time.sleep(60)", NULL },
		{ 1, "cat('up\\n'); flush(stdout()); Sys.sleep(60)", NULL },
		{ 2, "console.log('up'); await new Promise(r => setTimeout(r, 60000))", NULL },
		{ 3, "echo up; sleep 60", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct dialect *d = &dialects[rows[i].dialect];

		if (!is_here(&rows[i]))
			continue;
		struct cordon_session *s = open_row(&rows[i], AMPLE);
		must(s, d->set_x);
		for (int k = 0; k < 3; k++) {
			struct cordon_result *r = cancelled(s, rows[i].code);

			check(&rows[i], r, "cancelled", "\"restarted\": false");
			cordon_result_free(r);
			must_be(s, d, d->get_x, d->x_value);
		}
		cordon_session_close(s);
	}
}

TEST(where_python_was_is_told)
{
	struct cordon_session *s = open_row(&yielding[0], AMPLE);
	struct cordon_result *r = cancelled(s, "import time\ndef f():\n"
					       "    print('before', flush=True)\n"
					       "    time.sleep(60)\nf()");

	check(&yielding[0], r, "cancelled", "\"stdout\": \"before\\n\"");
	ASSERT(strstr(cordon_result_traceback(r), ", in f\n"));
	ASSERT(strstr(cordon_result_traceback(r), "KeyboardInterrupt\n"));
	ASSERT(strstr(cordon_result_json(r), "\"line\": "));
	cordon_result_free(r);
	cordon_session_close(s);
}

TEST(a_cancel_kills_code_that_does_not_yield)
{
	static const struct row row = { 0,
					"import signal, time\n"
					"signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
					"print('up', flush=True)\ntime.sleep(60)",
					NULL };
	struct cordon_session *s = open_row(&row, SCANT);
	struct cordon_result *r = cancelled(s, row.code);

	check(&row, r, "cancelled", "did not stop within 200 ms after it was cancelled");
	cordon_result_free(r);
	must(s, "1");
	cordon_session_close(s);
}

/* Closing does not wait for the grace time. */
TEST(a_session_that_is_closed_does_not_ask)
{
	static const struct row row = { 0,
					"print('up', flush=True)\nwhile True:\n"
					"    try:\n        while True: pass\n"
					"    except BaseException: pass",
					NULL };
	struct waiter w = { .session = open_row(&row, "grace_ms=1h"), .code = row.code };
	pthread_t thread;

	ASSERT_EQ(pthread_create(&thread, NULL, execute, &w), 0);
	while (!w.is_up)
		usleep(1000);
	cordon_session_close(w.session);
	pthread_join(thread, NULL);
	check(&row, w.result, "cancelled", "\"exit_code\": 125");
	cordon_result_free(w.result);
}

/* ---- at any moment, from eight threads */

static const char *const busy[DIALECTS][3] = {
	{ "for i in range(300000): pass", "import time; time.sleep(0.004)",
	  "[i for i in range(9)]" },
	{ "for (i in 1:200000) NULL", "Sys.sleep(0.004)", "sum(1:9)" },
	{ "for (let i = 0; i < 3e6; i++);", "await new Promise(r => setTimeout(r, 4))", "[1, 2]" },
	{ "for i in {1..3000}; do :; done", "sleep 0.004", "echo 1 | cat" },
};

struct caller {
	int number;
	unsigned rounds;
	atomic_uint *timeouts, *restarts;
};

/* A later execution is never hit by an interrupt for an earlier one. */
static void *call(void *arg)
{
	const struct caller *c = arg;
	const struct dialect *d = &dialects[c->number % DIALECTS];
	unsigned seed = (unsigned)c->number + 1;

	if (!dialect_is_here(d))
		return NULL;
	struct cordon_session *s = open_with(d->guest, AMPLE);
	must(s, d->set_x);
	for (unsigned i = 0; i < c->rounds; i++) {
		uint64_t ms = 1 + (uint64_t)rand_r(&seed) % 8;
		const char *code = busy[c->number % DIALECTS][rand_r(&seed) % 3];
		struct cordon_result *r = run_for(s, code, ms);
		const char *kind = cordon_result_error_kind(r);

		if (kind && strcmp(kind, "timeout") != 0)
			test_fail(__FILE__, __LINE__, "%s: %s: %s", d->guest, code,
				  cordon_result_json(r));
		*c->timeouts += kind != NULL;
		*c->restarts += strstr(cordon_result_json(r), "\"restarted\": true") != NULL;
		cordon_result_free(r);
		must_be(s, d, d->get_x, d->x_value);
	}
	cordon_session_close(s);
	return NULL;
}

/* CORDON_ROUNDS: more of them, for a run that lasts. */
TEST_WITHIN(timeouts_at_any_moment_from_eight_threads_leave_nothing_behind, 3000)
{
	const char *text = getenv("CORDON_ROUNDS");
	unsigned rounds = text ? (unsigned)strtoul(text, NULL, 10) : 60;
	atomic_uint timeouts = 0, restarts = 0;
	struct caller callers[CALLERS];
	pthread_t threads[CALLERS];

	cordon_session_close(open_with("python", NULL)); /* what is made once is made */
	template_release_all();
	struct belongings before = count_belongings();
	for (int i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){ i, rounds, &timeouts, &restarts };
		ASSERT_EQ(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++)
		pthread_join(threads[i], NULL);
	fprintf(stderr, "# %u timeouts, %u restarts\n", timeouts, restarts);
	ASSERT(timeouts > 0);
	ASSERT_EQ(restarts, 0);
	must_be_as_before(&before);
}
