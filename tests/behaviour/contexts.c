/* tests/behaviour/contexts.c - several interpreters and commands in one sandbox: what they share,
 * what each has for itself, and what happens when one of them or all of it ends. */
#include "dialect.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "harness/test.h"
#include "session/leftovers.h"
#include "session/template.h"

static const char *const all[] = { "python", "r", "node", "sh", NULL };
static const char *const python_and_sh[] = { "python", "sh", NULL };

static struct cordon_session *open_place(const char *const *languages, const char *set)
{
	return open_languages("python", languages, new_policy(set));
}

static struct cordon_session *context(struct cordon_session *s, const char *language,
				      const char *name)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session *c = NULL;

	if (cordon_session_context(s, language, name, &c, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return c;
}

/* 0 or the code, positive. */
static int refused(struct cordon_session *s, const char *language, const char *name)
{
	struct cordon_session *c = NULL;

	return -cordon_session_context(s, language, name, &c, NULL);
}

static struct cordon_result *command(struct cordon_session *s,
				     const struct cordon_command_options *o)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_result *r = NULL;

	if (cordon_session_command(s, o, &r, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", o->command, cordon_error_message(e));
	return r;
}

static void command_prints(struct cordon_session *s, const char *text, const char *out)
{
	struct cordon_result *r = command(s, &(struct cordon_command_options){ .command = text });
	size_t len;

	if (!cordon_result_success(r))
		test_fail(__FILE__, __LINE__, "%s: %s", text, cordon_result_json(r));
	ASSERT_STREQ(cordon_result_stdout(r, &len), out);
	cordon_result_free(r);
}

static bool has_restarted(struct cordon_session *s, const char *code)
{
	struct cordon_result *r = run(s, code);

	if (!cordon_result_success(r))
		test_fail(__FILE__, __LINE__, "%s: %s", code, cordon_result_error(r));
	bool is = strstr(cordon_result_json(r), "\"restarted\": true") != NULL;
	cordon_result_free(r);
	return is;
}

/* Until the host knows that its guest has ended. */
static void await_end(struct cordon_session *s)
{
	for (int i = 0; i < 6000; i++) {
		cleanup_free char *text = cordon_session_describe(s);

		if (strstr(text, "\"pid\":null") || strstr(text, "\"pid\": null"))
			return;
		usleep(10000);
	}
	test_fail(__FILE__, __LINE__, "the guest did not end");
}

static bool tells_restart(struct cordon_session *s)
{
	struct cordon_result *r = run(s, "1");
	bool is = strstr(cordon_result_json(r), "\"restarted\": true") != NULL;

	cordon_result_free(r);
	return is;
}

/* Every language sees the file that the session's own has written. */
TEST(contexts_share_files_and_keep_their_state)
{
	struct cordon_session *s = open_place(all, NULL);

	must(s, "open('/tmp/f', 'w').write('kept'); x = 10");
	EACH_DIALECT(d)
	{
		struct cordon_session *a = context(s, d->guest, "a"),
				      *b = context(s, d->guest, "b");

		must(a, d->set_x);
		must_be(a, d, d->get_x, d->x_value);
		must_be(a, d, d->read_file, str_eq(d->guest, "sh") ? NULL : "\"kept\"");
		struct cordon_result *r = run(b, d->get_x); /* it has no x */
		ASSERT(!cordon_result_success(r) || str_eq(d->guest, "sh"));
		cordon_result_free(r);
		ASSERT(context(s, d->guest, "a") == a);
		ASSERT(context(a, d->guest, "b") == b);
	}
	ASSERT(context(s, NULL, NULL) == s);
	value_is(s, "x", "10");
	command_prints(s, "cat /tmp/f", "kept");
	cordon_session_close(s);
}

/* Same files, not a copy: the inode stays. */
TEST(a_timeout_ends_one_context_only)
{
	struct cordon_session *s = open_place(python_and_sh, "grace_ms=100"),
			      *c = context(s, NULL, "c");

	must(s, "x = 1; open('/tmp/f', 'w').write('kept')");
	must(c, "import os; y = os.stat('/tmp/f').st_ino; open('/tmp/i', 'w').write(str(y))");
	must_fail(c, "sum(range(1 << 60))", 300, "timeout", NULL);
	ASSERT(!has_restarted(c, "import os; assert 'y' not in globals(); "
				 "assert open('/tmp/i').read() == str(os.stat('/tmp/f').st_ino)"));
	value_is(s, "x", "1");
	must_fail(s, "sum(range(1 << 60))", 300, "timeout", NULL);
	must(c, "z = 3");
	must_fail(s, "import os; os.kill(os.getpid(), 9)", 0, "crashed", NULL);
	value_is(c, "z", "3");
	value_is(s, "'x' in globals()", "false");
	ASSERT_EQ(cordon_session_restart(c, NULL), 0);
	value_is(c, "'z' in globals()", "false");
	value_is(s, "open('/tmp/f').read()", "\"kept\"");
	cordon_session_close(s);
}

TEST(an_interpreter_that_ended_in_between_is_told)
{
	struct cordon_session *s = open_place(python_and_sh, NULL), *c = context(s, NULL, "c");

	must(c, "import os; open('/tmp/pid', 'w').write(str(os.getpid()))");
	must(s, "import os; os.kill(int(open('/tmp/pid').read()), 9)");
	command_prints(s,
		       "while [ -e /proc/$(cat /tmp/pid)/cmdline ] && grep -q . "
		       "/proc/$(cat /tmp/pid)/cmdline 2>/dev/null; do sleep 0.01; done",
		       "");
	await_end(c); /* pid 1 tells it a moment later */
	ASSERT(has_restarted(c, "1"));
	ASSERT(!has_restarted(c, "1"));
	ASSERT(!has_restarted(s, "1"));
	cordon_session_close(s);
}

TEST(a_lost_sandbox_is_replaced_once_and_each_context_tells)
{
	struct cordon_session *s = open_place(python_and_sh, NULL), *c = context(s, NULL, "c"),
			      *d = context(s, "sh", "d"), *unused = context(s, NULL, "unused");

	for (int round = 0; round < 3; round++) {
		must(s, "open('/tmp/f', 'w').write('kept')");
		must(c, "1");
		must(d, "true");
		ASSERT_EQ(kill(first_process(s), SIGKILL), 0);
		await_end(s);
		await_end(c);
		await_end(d);
		ASSERT(tells_restart(c));
		ASSERT(tells_restart(s));
		ASSERT(tells_restart(d));
		ASSERT(!has_restarted(c, "assert open('/tmp/f').read() == 'kept'"));
		ASSERT(!has_restarted(s, "assert open('/tmp/f').read() == 'kept'"));
		ASSERT(!has_restarted(d, "grep -q kept /tmp/f"));
	}
	ASSERT(!has_restarted(unused, "1"));
	ASSERT_EQ(cordon_session_restart(s, NULL), 0);
	ASSERT(!has_restarted(s, "1"));
	ASSERT(has_restarted(c, "1"));
	/* Also if a command makes the new one: the files are there first. */
	must(s, "open('/tmp/f', 'a').write('x' * 30000000)");
	ASSERT_EQ(kill(first_process(s), SIGKILL), 0);
	await_end(s);
	command_prints(s, "head -c 4 /tmp/f; wc -c < /tmp/f", "kept30000004\n");
	cordon_session_close(s);
}

TEST(commands_have_directory_environment_and_stdin)
{
	struct cordon_session *s = open_place(python_and_sh, NULL);
	const char *const env[] = { "A=one two", NULL };
	struct cordon_command_options o = {
		.command = "echo \"$A $B\"; pwd; cat; echo bad >&2; exit 3",
		.directory = "/workspace",
		.env = env,
		.stdin_bytes = "in",
		.stdin_len = 2
	};
	size_t len;

	ASSERT_EQ(cordon_session_setenv(s, "B", "b", NULL), 0);
	struct cordon_result *r = command(s, &o);
	ASSERT_STREQ(cordon_result_stdout(r, &len), "one two b\n/workspace\nin");
	ASSERT_STREQ(cordon_result_stderr(r, &len), "bad\n");
	ASSERT_EQ(cordon_result_exit_status(r), 3);
	cordon_result_free(r);
	/* What it leaves running goes on, and others see it. */
	command_prints(s, "sleep 100 & echo $! > /tmp/pid", "");
	command_prints(s, "cat /proc/$(cat /tmp/pid)/comm", "sleep\n");
	value_is(s, "open('/proc/%s/comm' % open('/tmp/pid').read().strip()).read()",
		 "\"sleep\\n\"");
	o = (struct cordon_command_options){ .command = "while :; do :; done", .timeout_ms = 300 };
	r = command(s, &o);
	ASSERT_STREQ(cordon_result_error_kind(r), "timeout");
	cordon_result_free(r);
	o = (struct cordon_command_options){ .command = "test -e ../user", .directory = "." };
	cordon_result_free(command(s, &o));
	cordon_session_close(s);
}

static int output_of(struct cordon_session *s, uint64_t process, char **ret, size_t *ret_len)
{
	uint64_t offset;

	return cordon_process_output(s, process, 1, 0, ret, ret_len, &offset, NULL);
}

/* Until it has written so much. */
static void await_output(struct cordon_session *s, uint64_t process, const char *text)
{
	for (int i = 0; i < 6000; i++) {
		cleanup_free char *out = NULL;
		size_t len;

		ASSERT_EQ(output_of(s, process, &out, &len), 0);
		if (str_eq(out, text))
			return;
		usleep(10000);
	}
	test_fail(__FILE__, __LINE__, "process %d did not write '%s'", (int)process, text);
}

TEST(processes_in_the_background)
{
	struct cordon_session *s = open_place(python_and_sh, NULL);
	struct cordon_command_options o = {
		.command = "while read -r l; do echo got $l; done; exit 4"
	};
	struct cordon_result *r = NULL;
	uint64_t p = 0, q = 0;
	size_t len;

	ASSERT_EQ(cordon_process_start(s, &o, &p, NULL), 0);
	o.command = "sleep 1000";
	ASSERT_EQ(cordon_process_start(s, &o, &q, NULL), 0);
	ASSERT_EQ(cordon_process_write(s, p, "a\n", 2, &len, NULL), 0);
	ASSERT_EQ(len, 2);
	await_output(s, p, "got a\n");
	value_is(s, "6 * 7", "42"); /* meanwhile */
	cleanup_free char *list = cordon_process_list(s);
	ASSERT_HAS(list, "sleep 1000");
	ASSERT_EQ(cordon_process_wait(s, p, 0, &r, NULL), -CORDON_TIMEOUT);
	ASSERT_EQ(cordon_snapshot_create(s, "one", NULL), -CORDON_STATE);
	ASSERT_EQ(cordon_process_write(s, p, "", 0, &len, NULL), 0);
	ASSERT_EQ(cordon_process_wait(s, p, UINT64_MAX, &r, NULL), 0);
	ASSERT_STREQ(cordon_result_stdout(r, &len), "got a\n");
	ASSERT_EQ(cordon_result_exit_status(r), 4);
	r = cordon_result_free(r);
	ASSERT_EQ(cordon_process_wait(s, p, 0, &r, NULL), 0); /* the same once more */
	r = cordon_result_free(r);
	ASSERT_EQ(cordon_process_kill(s, q, NULL), 0);
	ASSERT_EQ(cordon_process_wait(s, q, UINT64_MAX, &r, NULL), 0);
	ASSERT_HAS(cordon_result_json(r), "\"exit_code\": 137");
	r = cordon_result_free(r);
	ASSERT_EQ(cordon_process_start(s, &o, &q, NULL), 0); /* ended by the close */
	cordon_session_close(s);
}

TEST(ended_processes_stay_known_until_there_are_too_many)
{
	struct cordon_session *s = open_place(python_and_sh, NULL);
	struct cordon_command_options o = { .command = "exit 7" };
	struct cordon_result *r = NULL;
	uint64_t first = 0, last = 0;

	ASSERT_EQ(cordon_process_start(s, &o, &first, NULL), 0);
	for (int i = 0; i < 64; i++) {
		cleanup_error struct cordon_error *e = NULL;
		/* The one before has ended, but nobody waits for it. */
		if (last)
			await_output(s, last, "x\n");
		o.command = "echo x";
		while (cordon_process_start(s, &o, &last, &e) == -CORDON_LIMIT) {
			e = cordon_error_free(e);
			usleep(1000);
		}
	}
	ASSERT_EQ(cordon_process_wait(s, first, 0, &r, NULL), -CORDON_NOT_FOUND);
	ASSERT_EQ(cordon_process_wait(s, last, UINT64_MAX, &r, NULL), 0);
	cordon_result_free(r);
	cordon_session_close(s);
}

TEST(limits_are_the_sandboxs)
{
	struct cordon_session *s = open_place(python_and_sh, "max_executions=3"),
			      *c = context(s, NULL, "c");
	struct cordon_command_options o = { .command = "true" };
	struct cordon_result *r = NULL;

	must(s, "1");
	must(c, "1");
	command_prints(s, "true", "");
	ASSERT_EQ(cordon_session_execute(c, &(struct cordon_execute_options){ .code = "1" }, &r,
					 NULL),
		  -CORDON_LIMIT);
	ASSERT_EQ(cordon_session_command(s, &o, &r, NULL), -CORDON_LIMIT);
	cordon_session_close(s);
}

TEST(what_is_refused)
{
	struct cordon_session *s = open_place(python_and_sh, NULL);
	char name[80];

	ASSERT_EQ(refused(s, "r", NULL), CORDON_STATE);
	ASSERT_EQ(refused(s, "cobol", NULL), CORDON_INVALID);
	ASSERT_EQ(refused(s, "python", ""), CORDON_INVALID);
	ASSERT_EQ(refused(s, "python", "a/b"), CORDON_INVALID);
	ASSERT_EQ(refused(s, "python", "-a"), CORDON_INVALID);
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ASSERT_EQ(refused(s, "python", name), CORDON_INVALID);
	for (int i = 0; i < 63; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		ASSERT_EQ(refused(s, "python", name), 0);
	}
	ASSERT_EQ(refused(s, "python", "one-more"), CORDON_LIMIT);
	cordon_session_close(context(s, "python", "c0"));
	ASSERT_EQ(refused(s, "python", "one-more"), 0);
	cordon_session_close(s);
	s = open_with("python", NULL); /* one language */
	ASSERT_EQ(refused(s, "python", "a"), CORDON_INVALID);
	struct cordon_result *r = NULL;
	ASSERT_EQ(cordon_session_command(s, &(struct cordon_command_options){ .command = "true" },
					 &r, NULL),
		  -CORDON_INVALID);
	cordon_session_close(s);
	const char *const pod[] = { "pod", NULL };
	struct cordon_session_options o = { .languages = pod };
	ASSERT_EQ(cordon_session_open(&o, &s, NULL), -CORDON_INVALID);
}

TEST(a_language_that_cannot_be_started_is_refused_when_it_is_used)
{
	static const char *const languages[] = { "python", "r", "sh", NULL };
	struct cordon_session *s = open_place(languages, "r=/bin/sh"), *c = context(s, "r", "a");
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_execute_options o = { .code = "1" };
	struct cordon_result *r = NULL;

	must(s, "x = 1");
	command_prints(s, "echo y", "y\n");
	ASSERT(cordon_session_execute(c, &o, &r, &e) < 0);
	ASSERT(strstr(cordon_error_message(e), "the R interpreter '/bin/sh") != NULL);
	cordon_session_close(s);
}

TEST(forks_have_the_files_and_no_contexts)
{
	struct cordon_session *s = open_place(python_and_sh, NULL), *c = context(s, NULL, "c"),
			      *child = NULL;

	must(c, "open('/tmp/f', 'w').write('kept'); x = 1");
	ASSERT_EQ(cordon_session_fork(c, &child, NULL), 0);
	value_is(child, "open('/tmp/f').read()", "\"kept\"");
	value_is(context(child, NULL, "c"), "'x' in globals()", "false");
	ASSERT_EQ(cordon_snapshot_create(c, "one", NULL), 0);
	must(s, "import os; os.remove('/tmp/f')");
	ASSERT_EQ(cordon_snapshot_restore(s, "one", NULL), 0);
	command_prints(s, "cat /tmp/f", "kept");
	value_is(c, "x", "1");
	cordon_session_close(child);
	cordon_session_close(s);
}

struct job {
	struct cordon_session *s;
	const char *code;
	_Atomic int kind; /* 1: cancelled, 2: something else */
};

static void *work(void *arg)
{
	struct job *j = arg;
	struct cordon_execute_options o = { .code = j->code };
	struct cordon_result *r = NULL;

	if (cordon_session_execute(j->s, &o, &r, NULL) == 0)
		j->kind = str_eq(cordon_result_error_kind(r), "cancelled") ? 1 : 2;
	cordon_result_free(r);
	return NULL;
}

static void await_file(struct cordon_session *s, const char *path)
{
	struct cordon_file_info info;

	for (int i = 0; i < 6000 && cordon_file_stat(s, path, &info, NULL) < 0; i++)
		usleep(10000);
	ASSERT_EQ(cordon_file_stat(s, path, &info, NULL), 0);
}

#define HANG "open('/tmp/here', 'w'); import time; time.sleep(1000)"

TEST(closing_ends_executions)
{
	for (int round = 0; round < 2; round++) {
		struct cordon_session *s = open_place(python_and_sh, NULL);
		struct job j = { context(s, NULL, "c"), HANG, 0 };
		pthread_t thread;

		ASSERT_EQ(pthread_create(&thread, NULL, work, &j), 0);
		await_file(s, "/tmp/here");
		if (round == 0) { /* the context alone */
			cordon_session_close(j.s);
			value_is(s, "1", "1");
		}
		cordon_session_close(s);
		pthread_join(thread, NULL);
		ASSERT_EQ(j.kind, 1);
	}
}

TEST(contexts_execute_at_the_same_time_and_are_cancelled_alone)
{
	struct cordon_session *s = open_place(python_and_sh, NULL);
	struct job j = { context(s, NULL, "c"), HANG, 0 };
	pthread_t thread;

	ASSERT_EQ(pthread_create(&thread, NULL, work, &j), 0);
	await_file(s, "/tmp/here");
	value_is(s, "6 * 7", "42");
	command_prints(s, "echo on", "on\n");
	ASSERT_EQ(cordon_snapshot_create(s, "one", NULL), -CORDON_STATE);
	ASSERT_EQ(cordon_session_cancel(s, NULL), 0); /* nothing runs there */
	ASSERT_EQ(cordon_session_cancel(j.s, NULL), 0);
	pthread_join(thread, NULL);
	ASSERT_EQ(j.kind, 1);
	ASSERT_EQ(cordon_snapshot_create(s, "one", NULL), 0);
	cordon_session_close(s);
}

enum { THREADS = 8 };

struct crowd {
	struct cordon_session *s;
	_Atomic int left;
	_Atomic unsigned done, lost, odd;
	_Atomic bool is_over;
};

/* One of many threads: executions in contexts that come and go, commands, processes, crashes. */
static void *jostle(void *arg)
{
	struct crowd *w = arg;
	static _Atomic unsigned numbers;
	unsigned number = numbers++, seed = number + 1;
	char name[16];

	snprintf(name, sizeof(name), "t%u", number);
	while (--w->left >= 0) {
		struct cordon_session *c = NULL;
		struct cordon_result *r = NULL;
		unsigned dice = (unsigned)rand_r(&seed) % 64;
		const char *code = dice == 0 ? "import os; os.kill(os.getpid(), 9)"
				   : dice == 1
					   ? "import os, signal; [os.kill(int(p), 9) for p in "
					     "os.listdir('/proc') if p.isdigit() and int(p) > 1]"
					   : "x = 6 * 7; x";
		struct cordon_execute_options o = { .code = code,
						    .timeout_ms = dice == 2 ? 1 : 20000 };
		struct cordon_command_options k = { .command = "echo hi" };
		cleanup_error struct cordon_error *why = NULL;
		int e = 0;

		if (dice == 3) {
			e = cordon_session_command(w->s, &k, &r, &why);
		} else {
			e = cordon_session_context(w->s, "python", name, &c, &why);
			if (e == 0)
				e = cordon_session_execute(c, &o, &r, &why);
		}
		if (e < 0 && w->lost++ < 5)
			printf("# %s\n", cordon_error_message(why));
		w->done += e == 0 && cordon_result_success(r);
		w->odd += e == 0 && !cordon_result_success(r);
		cordon_result_free(r);
		if (dice == 4 && c)
			cordon_session_close(c);
	}
	return NULL;
}

/* Cancels, kills the sandbox's pid 1, and looks. */
static void *disturb(void *arg)
{
	struct crowd *w = arg;
	unsigned seed = 99;

	while (!w->is_over) {
		cleanup_free char *text = cordon_session_describe(w->s);
		cleanup_json json_t *o = NULL;

		ASSERT(text && json_parse(text, strlen(text), 0, &o, NULL) == 0);
		(void)cordon_session_cancel(w->s, NULL);
		(void)cordon_session_is_alive(w->s);
		(void)cordon_file_write(w->s, "/tmp/w", "x", 1, NULL);
		if (rand_r(&seed) % 64 == 0) {
			pid_t pid = (pid_t)json_integer_value(json_object_get(o, "pid"));
			char path[64], line[256];
			int parent = 0;

			snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
			FILE *f = pid > 0 ? fopen(path, "re") : NULL;
			while (f && fgets(line, sizeof(line), f))
				if (str_starts(line, "PPid:"))
					parent = (int)strtol(line + 5, NULL, 10);
			if (f)
				fclose(f);
			if (parent > 1 && parent != getpid())
				(void)kill(parent, SIGKILL);
		}
		usleep(5000);
	}
	return NULL;
}

TEST(eight_threads_and_their_accidents)
{
	const char *turns = getenv("CONTEXT_TURNS");
	cordon_session_close(open_place(python_and_sh, NULL)); /* opens what stays open */
	template_release_all();
	int descriptors = leftovers_descriptors();
	struct crowd w = { .s = open_place(python_and_sh, NULL) };
	pthread_t threads[THREADS], other;

	w.left = turns ? (int)strtol(turns, NULL, 10) : 400;
	unsigned wanted = (unsigned)w.left;
	ASSERT_EQ(pthread_create(&other, NULL, disturb, &w), 0);
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, jostle, &w), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	w.is_over = true;
	pthread_join(other, NULL);
	printf("# %u executions: %u good, %u ended, %u refused\n", wanted, (unsigned)w.done,
	       (unsigned)w.odd, (unsigned)w.lost);
	ASSERT(w.done > wanted / 2);
	value_is(w.s, "1", "1");
	cordon_session_close(w.s);
	template_release_all();
	ASSERT_EQ(leftovers_descriptors(), descriptors);
}
