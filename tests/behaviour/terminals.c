/* tests/behaviour/terminals.c - commands on a terminal of their own: what they see, keys, size,
 * signals, floods, and that nothing is left of them. */
#include "belongings.h"
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

static const char *const shell[] = { "sh", NULL };

static struct cordon_session *open_place(const char *set)
{
	return open_languages("sh", shell, new_policy(set));
}

/* A command in the background, on a terminal, and what it has printed. */
struct shown {
	struct cordon_session *s;
	uint64_t process;
	pthread_mutex_t lock;
	pthread_cond_t more;
	char text[65536];
	size_t len;
	uint64_t seen;
	bool has_ended;
};

static void see(int stream, const char *bytes, size_t len, void *arg)
{
	struct shown *x = arg;

	pthread_mutex_lock(&x->lock);
	size_t room = sizeof(x->text) - 1 - x->len, n = len < room ? len : room;

	if (stream == 1) {
		memcpy(x->text + x->len, bytes, n);
		x->len += n;
	}
	x->seen += len;
	pthread_cond_broadcast(&x->more);
	pthread_mutex_unlock(&x->lock);
}

static void see_end(uint64_t process, void *arg)
{
	struct shown *x = arg;

	(void)process;
	pthread_mutex_lock(&x->lock);
	x->has_ended = true;
	pthread_cond_broadcast(&x->more);
	pthread_mutex_unlock(&x->lock);
}

static void start(struct shown *x, struct cordon_session *s, const char *command)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_command_options o = { .command = command,
					    .timeout_ms = UINT64_MAX,
					    .output = see,
					    .output_arg = x,
					    .ended = see_end,
					    .ended_arg = x,
					    .discard_output = true,
					    .pty = true,
					    .pty_rows = 30,
					    .pty_columns = 100 };

	*x = (struct shown){ .s = s };
	pthread_mutex_init(&x->lock, NULL);
	pthread_cond_init(&x->more, NULL);
	if (cordon_process_start(s, &o, &x->process, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", command, cordon_error_message(e));
}

/* Waits until the text was printed; a command that ends without it fails the test. */
static void await(struct shown *x, const char *text)
{
	pthread_mutex_lock(&x->lock);
	while (!strstr(x->text, text) && !x->has_ended)
		pthread_cond_wait(&x->more, &x->lock);
	bool is_there = strstr(x->text, text) != NULL;
	pthread_mutex_unlock(&x->lock);
	if (!is_there)
		test_fail(__FILE__, __LINE__, "no '%s' in '%s'", text, x->text);
}

static void await_bytes(struct shown *x, uint64_t count)
{
	pthread_mutex_lock(&x->lock);
	while (x->seen < count && !x->has_ended)
		pthread_cond_wait(&x->more, &x->lock);
	pthread_mutex_unlock(&x->lock);
	ASSERT(x->seen >= count);
}

static void type(struct shown *x, const char *text)
{
	cleanup_error struct cordon_error *e = NULL;
	size_t done = 0;

	for (size_t len = strlen(text); len > 0; text += done, len -= done)
		if (cordon_process_write(x->s, x->process, text, len, &done, &e) < 0)
			test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
}

static struct cordon_result *finish(struct shown *x)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_result *r = NULL;

	if (cordon_process_wait(x->s, x->process, UINT64_MAX, &r, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	pthread_mutex_destroy(&x->lock);
	pthread_cond_destroy(&x->more);
	return r;
}

static void ends_with(struct shown *x, int exit_code)
{
	struct cordon_result *r = finish(x);

	if (cordon_result_exit_status(r) != exit_code)
		test_fail(__FILE__, __LINE__, "exit code %d, not %d: %s; '%s'",
			  cordon_result_exit_status(r), exit_code,
			  cordon_result_error(r) ? cordon_result_error(r) : "no error", x->text);
	cordon_result_free(r);
}

/* What a command in the foreground prints on a terminal. */
static void prints(struct cordon_session *s, const char *command, const char *text)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_result *r = NULL;
	struct cordon_command_options o = { .command = command, .pty = true };
	size_t len;

	if (cordon_session_command(s, &o, &r, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", command, cordon_error_message(e));
	if (!str_eq(cordon_result_stdout(r, &len), text))
		test_fail(__FILE__, __LINE__, "%s: '%s', not '%s'; %s", command,
			  cordon_result_stdout(r, &len), text,
			  cordon_result_error(r) ? cordon_result_error(r) : "no error");
	cordon_result_free(r);
}

TEST(is_a_controlling_terminal)
{
	struct cordon_session *s = open_place(NULL);

	prints(s, "test -t 0 && test -t 1 && test -t 2 && tty && stty size",
	       "/dev/pts/0\r\n24 80\r\n");
	prints(s, "echo a >/dev/tty; echo b >/dev/pts/0; stty -echo </dev/tty && echo c",
	       "a\r\nb\r\nc\r\n");
	prints(s, "ls -1 /dev/pts; ls /dev/ptmx 2>/dev/null || echo no; echo ${TERM:+term}",
	       "0\r\nptmx\r\nno\r\nterm\r\n");
	cordon_session_close(s);
}

TEST(two_at_a_time_are_two_terminals)
{
	struct cordon_session *s = open_place(NULL);
	struct shown a, b;

	start(&a, s, "tty; read x; echo got $x");
	await(&a, "/dev/pts/0");
	start(&b, s, "tty; read x; echo got $x");
	await(&b, "/dev/pts/1");
	type(&b, "two\n");
	await(&b, "got two");
	type(&a, "one\n");
	await(&a, "got one");
	ASSERT(!strstr(a.text, "two") && !strstr(b.text, "one"));
	ends_with(&a, 0);
	ends_with(&b, 0);
	cordon_session_close(s);
}

TEST(keys_interrupt_quit_and_end_input)
{
	struct cordon_session *s = open_place(NULL);
	struct shown x;

	start(&x, s,
	      "trap 'echo caught; exit 3' INT; echo ready; sleep 1000 & while :; do wait; done");
	await(&x, "ready");
	type(&x, "\003");
	ends_with(&x, 3);
	start(&x, s,
	      "trap 'echo caught; exit 4' QUIT; echo ready; sleep 1000 & while :; do wait; done");
	await(&x, "ready");
	type(&x, "\034");
	ends_with(&x, 4);
	start(&x, s, "echo ready; cat; echo done");
	await(&x, "ready");
	type(&x, "\004");
	await(&x, "done");
	ends_with(&x, 0);
	start(&x, s, "echo ready; cat; echo done");
	await(&x, "ready");
	size_t len;
	ASSERT_EQ(cordon_process_write(s, x.process, "", 0, &len, NULL), 0);
	await(&x, "done");
	ends_with(&x, 0);
	cordon_session_close(s);
}

TEST(raw_bytes_pass_both_ways)
{
	struct cordon_session *s = open_place(NULL);
	struct shown x;

	start(&x, s, "stty raw -echo; printf ready; dd bs=1 count=4 2>/dev/null | od -An -tx1");
	await(&x, "ready");
	type(&x, "\003\032\377\r");
	await(&x, "03 1a ff 0d");
	ends_with(&x, 0);
	cordon_session_close(s);
}

TEST(can_be_resized)
{
	struct cordon_session *s = open_place(NULL);
	struct shown x;

	start(&x, s, "trap 'stty size' WINCH; stty size; sleep 1000 & while :; do wait; done");
	await(&x, "30 100");
	ASSERT_EQ(cordon_process_resize(s, x.process, 41, 123, NULL), 0);
	await(&x, "41 123");
	ASSERT_EQ(cordon_process_resize(s, x.process, 0, 123, NULL), -CORDON_INVALID);
	ASSERT_EQ(cordon_process_resize(s, x.process, 41, 65536, NULL), -CORDON_INVALID);
	ASSERT_EQ(cordon_process_resize(s, x.process + 1, 41, 123, NULL), -CORDON_NOT_FOUND);
	ASSERT_EQ(cordon_process_kill(s, x.process, NULL), 0);
	cordon_result_free(finish(&x));
	uint64_t plain = 0;
	struct cordon_command_options o = { .command = "cat" };
	ASSERT_EQ(cordon_process_start(s, &o, &plain, NULL), 0);
	ASSERT_EQ(cordon_process_resize(s, plain, 41, 123, NULL), -CORDON_STATE);
	cordon_session_close(s);
}

TEST(gets_signals)
{
	struct cordon_session *s = open_place(NULL);
	struct shown x;

	start(&x, s,
	      "trap 'echo caught; exit 4' TERM; echo ready; sleep 1000 & while :; do wait; done");
	await(&x, "ready");
	ASSERT_EQ(cordon_process_signal(s, x.process, SIGTERM, NULL), 0);
	await(&x, "caught");
	ends_with(&x, 4);
	/* The foreground program gets it, not the shell that waits for it. */
	start(&x, s,
	      "set -m; bash -c 'trap \"exit 9\" INT; echo ready; sleep 1000 & wait'; echo status "
	      "$?");
	await(&x, "ready");
	ASSERT_EQ(cordon_process_signal(s, x.process, SIGINT, NULL), 0);
	await(&x, "status 9");
	ends_with(&x, 0);
	ASSERT_EQ(cordon_process_signal(s, x.process + 1, SIGTERM, NULL), -CORDON_NOT_FOUND);
	ASSERT_EQ(cordon_process_signal(s, x.process, 0, NULL), -CORDON_INVALID);
	cordon_session_close(s);
}

TEST(an_interactive_shell_has_job_control)
{
	struct cordon_session *s = open_place(NULL);
	struct shown x;

	start(&x, s, "PS1='% ' bash --norc -i");
	await(&x, "% ");
	ASSERT(!strstr(x.text, "no job control"));
	type(&x, "sleep 1000\n");
	await(&x, "sleep 1000\r\n");
	type(&x, "\032"); /* ^Z, until the program is in the foreground */
	for (int i = 0; i < 600 && !strstr(x.text, "Stopped"); i++) {
		usleep(100000);
		type(&x, strstr(x.text, "Stopped") ? "" : "\032");
	}
	await(&x, "Stopped");
	type(&x, "kill %1; exit 7\n");
	type(&x, "exit 7\n"); /* the first one warns of stopped jobs */
	ends_with(&x, 7);
	cordon_session_close(s);
}

/* Requests that act on a terminal as such, on the host or on others; the control is allowed. */
TEST(dangerous_requests_are_refused)
{
	static const struct {
		const char *name;
		unsigned request;
		const char *said;
	} table[] = { { "TCGETS", 0x5401, "done" },       { "TIOCGWINSZ", 0x5413, "done" },
		      { "TIOCSTI", 0x5412, "refused" },   { "TIOCSCTTY", 0x540e, "refused" },
		      { "TIOCSETD", 0x5423, "refused" },  { "TIOCLINUX", 0x541c, "refused" },
		      { "TIOCCONS", 0x541d, "refused" },  { "TIOCNOTTY", 0x5422, "refused" },
		      { "TIOCSWINSZ", 0x5414, "refused" } };
	struct cordon_session *s = open_place(NULL);

	needs(access("/usr/bin/python3", X_OK) == 0, "python3");
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		char line[512], said[64];

		snprintf(said, sizeof(said), "%s\r\n%s\r\n", table[i].said, table[i].said);
		snprintf(line, sizeof(line),
			 "for t in /dev/tty /dev/stdin; do python3 -c 'import fcntl, os\n"
			 "try: fcntl.ioctl(os.open(\"'$t'\", os.O_RDWR), %u, bytes(64)); "
			 "print(\"done\")\n"
			 "except PermissionError: print(\"refused\")'; done",
			 table[i].request);
		prints(s, line, said);
	}
	cordon_session_close(s);
}

/* It would begin before the log has it. */
TEST(does_not_run_without_a_required_record)
{
	char log[] = "/tmp/terminals-XXXXXX", set[64];
	struct cordon_policy *p = new_policy(NULL);
	close(mkstemp(log));
	snprintf(set, sizeof(set), "audit=%s", log);
	ASSERT_EQ(cordon_policy_set(p, set, NULL), 0);
	ASSERT_EQ(cordon_policy_set(p, "audit_required=true", NULL), 0);
	struct cordon_session *s = open_languages("sh", shell, p);
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_command_options o = { .command = "touch /tmp/ran", .pty = true };
	struct cordon_result *r = NULL;

	ASSERT_EQ(cordon_session_command(s, &o, &r, &e), -CORDON_UNSUPPORTED);
	ASSERT(strstr(cordon_error_message(e), "audit_required"));
	cordon_session_close(s);
	unlink(log);
}

TEST(needs_the_policy)
{
	struct cordon_session *s = open_place("pty=false");
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_command_options o = { .command = "tty", .pty = true };
	struct cordon_result *r = NULL;

	ASSERT_EQ(cordon_session_command(s, &o, &r, &e), -CORDON_DENIED);
	ASSERT(strstr(cordon_error_message(e), "pty=true"));
	o.command = "ls /dev/pts /dev/tty 2>/dev/null || echo none";
	o.pty = false;
	ASSERT_EQ(cordon_session_command(s, &o, &r, NULL), 0);
	size_t len;
	ASSERT_STREQ(cordon_result_stdout(r, &len), "none\n");
	cordon_result_free(r);
	cordon_session_close(s);
}

TEST(is_there_in_a_new_sandbox_too)
{
	struct cordon_session *s = open_place(NULL);

	ASSERT_EQ(kill(first_process(s), SIGKILL), 0);
	for (bool is_gone = false; !is_gone; usleep(1000)) { /* until the host knows it */
		cleanup_free char *text = cordon_session_describe(s);

		is_gone = strstr(text, "\"pid\":null") || strstr(text, "\"pid\": null");
	}
	prints(s, "tty", "/dev/pts/0\r\n");
	cordon_session_close(s);
}

TEST(a_flood_is_bounded_and_can_be_killed)
{
	struct cordon_session *s = open_place("stdout_bytes=65536");
	struct shown x;
	char *out = NULL;
	size_t len;
	uint64_t from;

	start(&x, s, "yes 0123456789012345678901234567890123456789");
	await_bytes(&x, 8 << 20); /* more than the limit of what is kept */
	ASSERT_EQ(cordon_process_output(s, x.process, 1, 0, &out, &len, &from, NULL), 0);
	ASSERT(len <= 512 << 10);
	free(out);
	ASSERT_EQ(cordon_process_kill(s, x.process, NULL), 0);
	cordon_result_free(finish(&x));
	cordon_session_close(s);
}

/* Neither a program that reads nothing nor one that stopped its terminal makes the host wait. */
TEST(writing_never_waits)
{
	static const char *const lines[] = { "stty raw -echo; printf ready; sleep 1000",
					     "printf ready; sleep 1000",
					     "printf ready; kill -STOP 0; sleep 1000" };
	struct cordon_session *s = open_place(NULL);
	char bytes[8192];

	memset(bytes, 'x', sizeof(bytes));
	bytes[100] = '\n';
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct shown x;
		size_t done, total = 0;

		start(&x, s, lines[i]);
		await(&x, "ready");
		for (int k = 0; k < 1000; k++) {
			ASSERT_EQ(cordon_process_write(s, x.process, bytes, sizeof(bytes), &done,
						       NULL),
				  0);
			total += done;
		}
		ASSERT(total < sizeof(bytes) * 1000);
		ASSERT_EQ(cordon_process_kill(s, x.process, NULL), 0);
		cordon_result_free(finish(&x));
	}
	cordon_session_close(s);
}

TEST(closing_ends_what_is_on_terminals)
{
	struct cordon_session *s = open_place(NULL);
	static struct shown x[8];

	for (int i = 0; i < 8; i++)
		start(&x[i], s, i % 2 ? "yes" : "stty raw; echo ready; sleep 1000");
	for (int i = 0; i < 8; i++)
		await_bytes(&x[i], 1);
	cordon_session_close(s);
	for (int i = 0; i < 8; i++)
		ASSERT(x[i].has_ended);
}

/* Terminals of one thread after another: some end by themselves, some are killed. */
enum { THREADS = 8 };
struct worker {
	struct cordon_session *s;
	unsigned seed;
	int turns;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct shown *x = malloc(sizeof(*x));

	for (int i = 0; x && i < w->turns; i++) {
		unsigned dice = (unsigned)rand_r(&w->seed) % 4;

		start(x, w->s, dice ? "read a; echo got $a" : "yes");
		if (dice == 1 || dice == 0)
			(void)cordon_process_kill(w->s, x->process, NULL);
		else
			type(x, "line\n");
		(void)cordon_process_resize(w->s, x->process, 10 + dice, 20, NULL);
		if (dice > 1)
			await(x, "got line");
		cordon_result_free(finish(x));
	}
	free(x);
	return NULL;
}

/* CORDON_TERMINALS: how many in all. */
TEST(thousands_leave_nothing_behind)
{
	const char *wanted = getenv("CORDON_TERMINALS");
	int count = wanted ? (int)strtol(wanted, NULL, 10) : 400;
	pthread_t threads[THREADS];
	struct worker workers[THREADS];
	struct belongings before = count_belongings();
	struct cordon_session *s = open_place("cpu_seconds=unlimited");

	prints(s, "tty", "/dev/pts/0\r\n");
	struct belongings open = count_belongings();
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ s, i, count / THREADS };
		ASSERT_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* A thread of the library may still close the last ones. */
	while (count_belongings().descriptors > open.descriptors)
		usleep(1000);
	prints(s, "ls -1 /dev/pts", "0\r\nptmx\r\n");
	cordon_session_close(s);
	must_be_as_before(&before);
}
