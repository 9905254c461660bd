/* unit/session/test_exit_cause.c - the exit cause for each kind of evidence. */
#include "session/exit_cause.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "unit/session/faked_box.h"

enum { MIB = 1 << 20 };

static struct policy limits(void)
{
	return (struct policy){ .timeout_ms = 5000,
				.cpu_seconds = 10,
				.memory_bytes = 256ULL * MIB,
				.processes = 32,
				.file_bytes = 64ULL * MIB };
}

/* What the host saw, what the guest said, and what must come of it. */
struct row {
	const char *name;
	enum guest_kind kind;
	bool is_script; /* it speaks no wire */
	struct evidence v;
	struct status s;
	const char *want_kind, *want_error; /* its last words; NULL: success */
	int want_code;
	bool want_claimed;
};

/* The wording may change, the figures at its end do not. */
static bool ends_so(const char *text, const char *end)
{
	size_t len = text ? strlen(text) : 0, n = end ? strlen(end) : 0;

	return !text == !end && len >= n && (!end || str_eq(text + len - n, end));
}

static void check(const struct row *t)
{
	static char wire; /* only looked at for being there */
	struct policy p = limits();
	struct faked_box f;
	cleanup_result struct cordon_result *r = result_new();

	faked_box_init(&f, t->kind);
	f.status = t->s;
	f.engine.wire = t->is_script ? NULL : (struct wire *)&wire;
	exit_cause_reach(&t->v, &f.engine, &p, r);
	if (r->success != !t->want_kind || !str_eq(r->kind, t->want_kind))
		test_fail(__FILE__, __LINE__, "%s: it is '%s' (%s), want '%s'", t->name,
			  r->kind ? r->kind : "success", r->error ? r->error : "",
			  t->want_kind ? t->want_kind : "success");
	if (!ends_so(r->error, t->want_error))
		test_fail(__FILE__, __LINE__, "%s: says '%s', want '%s'", t->name,
			  r->error ? r->error : "", t->want_error ? t->want_error : "");
	if (r->exit_code != t->want_code || r->is_claimed != t->want_claimed)
		test_fail(__FILE__, __LINE__, "%s: status %d, want %d; claimed %d, want %d",
			  t->name, r->exit_code, t->want_code, r->is_claimed, t->want_claimed);
}

static void check_all(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(&rows[i]);
}

#define CHECK_ALL(rows) check_all(rows, sizeof(rows) / sizeof(*(rows)))
#define SAID .has_result = true

TEST(what_the_host_did_comes_before_what_the_guest_says)
{
	static char broken[] = "a line that is no JSON", out[] = "out of descriptors";
	static const struct row rows[] = {
		{ "ok", GUEST_KIND_PYTHON, .v = { SAID, .ok = true }, .want_kind = NULL,
		  .want_code = 0 },
		{ "the host's own failure before everything", GUEST_KIND_PYTHON,
		  .v = { SAID, .ok = true, .internal = out, .protocol = broken, .cancelled = true },
		  .want_kind = "internal", .want_error = "out of descriptors", .want_code = 125 },
		{ "a broken line before a cancel", GUEST_KIND_PYTHON,
		  .v = { SAID, .ok = true, .protocol = broken, .cancelled = true },
		  .want_kind = "protocol", .want_error = "a line that is no JSON",
		  .want_code = 125 },
		{ "a cancel before the clock", GUEST_KIND_PYTHON,
		  .v = { SAID, .ok = true, .cancelled = true, .timed_out = true },
		  .want_kind = "cancelled", .want_error = "execution cancelled", .want_code = 125 },
		{ "whole seconds", GUEST_KIND_PYTHON,
		  .v = { SAID, .ok = true, .timed_out = true, .timeout_ms = 5000 },
		  .want_kind = "timeout", .want_error = "after 5 seconds", .want_code = 124 },
		{ "one second", GUEST_KIND_PYTHON, .v = { .timed_out = true, .timeout_ms = 1000 },
		  .want_kind = "timeout", .want_error = "after 1 second", .want_code = 124 },
		{ "a part of a second, before CPU time", GUEST_KIND_PYTHON,
		  .v = { .timed_out = true, .over_cpu = true, .timeout_ms = 1500 },
		  .want_kind = "timeout", .want_error = "after 1500 ms", .want_code = 124 },
		{ "CPU time, and the guest says it is well", GUEST_KIND_PYTHON,
		  .v = { SAID, .ok = true, .over_cpu = true }, .want_kind = "cpu",
		  .want_error = "limit of 10 seconds was reached", .want_code = 137 },
	};

	CHECK_ALL(rows);
}

#define EXITED(code)                                                                               \
	{                                                                                          \
		.state = STATE_EXITED, .wait_status = (code) << 8                                  \
	}
#define KILLED(signo)                                                                              \
	{                                                                                          \
		.state = STATE_EXITED, .wait_status = (signo)                                      \
	}

TEST(a_death_without_a_result)
{
	static const struct row rows[] = {
		{ "a script ends well", GUEST_KIND_SH, .is_script = true, .s = EXITED(0),
		  .want_kind = NULL },
		{ "a guest with a wire may not", GUEST_KIND_PYTHON, .s = EXITED(0),
		  .want_kind = "crashed", .want_error = "the guest ended without a result" },
		{ "no status at all", GUEST_KIND_PYTHON, .s = { .state = STATE_RUNNING },
		  .want_kind = "crashed", .want_error = "killed: the whole sandbox ended",
		  .want_code = 137 },
		{ "a signal", GUEST_KIND_PYTHON, .s = KILLED(SIGSEGV), .want_kind = "crashed",
		  .want_error = "killed by signal 11 (Segmentation fault)", .want_code = 139 },
		{ "a kill without CPU time is no limit", GUEST_KIND_PYTHON,
		  .s = { .state = STATE_EXITED, .wait_status = SIGKILL, .cpu_us = 4999999 },
		  .want_kind = "crashed", .want_error = "killed by signal 9 (Killed)",
		  .want_code = 137 },
		{ "a kill with half of it is", GUEST_KIND_PYTHON,
		  .s = { .state = STATE_EXITED, .wait_status = SIGKILL, .cpu_us = 5000000 },
		  .want_kind = "cpu", .want_error = "limit of 10 seconds was reached",
		  .want_code = 137 },
		{ "the soft limit's signal", GUEST_KIND_PYTHON, .s = KILLED(SIGXCPU),
		  .want_kind = "cpu", .want_error = "limit of 10 seconds was reached",
		  .want_code = 128 + SIGXCPU },
		{ "a file too large", GUEST_KIND_PYTHON, .s = KILLED(SIGXFSZ),
		  .want_kind = "file_size", .want_error = "67108864 bytes",
		  .want_code = 128 + SIGXFSZ },
		{ "the supervisor's memory kill, whatever the status says", GUEST_KIND_PYTHON,
		  .s = { .state = STATE_RUNNING, .memory_kills = 1 }, .want_kind = "memory",
		  .want_error = "limit of 268435456 bytes was reached", .want_code = 137 },
		{ "set-up failed", GUEST_KIND_PYTHON,
		  .s = { .state = STATE_FAILED,
			 .stage = STAGE_MOUNTS,
			 .detail = 3,
			 .os_errno = EIO },
		  .want_kind = "internal",
		  .want_error = "the sandbox could not build the private root (step 3): "
				"Input/output error",
		  .want_code = 125 },
	};

	CHECK_ALL(rows);
}

TEST(a_status_that_is_no_success)
{
	static const struct row rows[] = {
		{ "an ordinary one", GUEST_KIND_SH, .is_script = true, .s = EXITED(3),
		  .want_kind = "exception", .want_error = "exited with status 3", .want_code = 3 },
		{ "bash finds an error of syntax", GUEST_KIND_SH, .is_script = true,
		  .v = { .err_text = "/run/cordon/code: line 1: syntax error near `)'\nmore\n" },
		  .s = EXITED(2), .want_kind = "syntax",
		  .want_error = "line 1: syntax error near `)'", .want_code = 2,
		  .want_claimed = true },
		{ "the same words later on are the code's own", GUEST_KIND_SH, .is_script = true,
		  .v = { .err_text = "/x\n/run/cordon/code: line 1: syntax error\n" },
		  .s = EXITED(2), .want_kind = "exception", .want_error = "exited with status 2",
		  .want_code = 2 },
		{ "and so they are behind other words", GUEST_KIND_SH, .is_script = true,
		  .v = { .err_text = "I say /run/cordon/code: line 1: syntax error\n" },
		  .s = EXITED(2), .want_kind = "exception", .want_error = "exited with status 2",
		  .want_code = 2 },
		{ "memory was nearly full", GUEST_KIND_SH, .is_script = true,
		  .s = { .state = STATE_EXITED,
			 .wait_status = 2 << 8,
			 .memory_peak_kib = 224 * 1024 },
		  .want_kind = "memory", .want_error = "exited with status 2", .want_code = 2 },
		{ "memory was not", GUEST_KIND_SH, .is_script = true,
		  .s = { .state = STATE_EXITED,
			 .wait_status = 2 << 8,
			 .memory_peak_kib = 224 * 1024 - 1 },
		  .want_kind = "exception", .want_error = "exited with status 2", .want_code = 2 },
		{ "a shell passes its command's signal on", GUEST_KIND_SH, .is_script = true,
		  .s = EXITED(128 + SIGXFSZ), .want_kind = "file_size",
		  .want_error = "exited with status 153", .want_code = 153, .want_claimed = true },
		{ "the watched peak of processes", GUEST_KIND_SH, .is_script = true,
		  .s = { .state = STATE_EXITED, .wait_status = 1 << 8, .processes_peak = 32 },
		  .want_kind = "processes", .want_error = "exited with status 1", .want_code = 1 },
		{ "a session's status is the shell's word", GUEST_KIND_SH,
		  .v = { SAID, .has_exit_code = true, .exit_code = 7 }, .want_kind = "exception",
		  .want_error = "exited with status 7", .want_code = 7 },
		{ "and 0 is a success", GUEST_KIND_SH, .v = { SAID, .has_exit_code = true },
		  .want_kind = NULL },
	};

	CHECK_ALL(rows);
}

TEST(an_exception_is_the_guests_word_and_no_more)
{
	static char value_error[] = "ValueError", bad[] = "bad", syntax[] = "syntax",
		    memory[] = "memory", import[] = "import", tool[] = "tool",
		    big[] = "[Errno 27] File too large", full[] = "[Errno 28] No space left",
		    shadow[] = "[Errno 13] Permission denied: '/etc/shadow'",
		    fork_failed[] = "[Errno 11] Resource temporarily unavailable";
	static const struct row rows[] = {
		{ "with a message", GUEST_KIND_PYTHON,
		  .v = { SAID, .name = value_error, .message = bad }, .want_kind = "exception",
		  .want_error = "ValueError: bad", .want_code = 1 },
		{ "without any word", GUEST_KIND_PYTHON, .v = { SAID }, .want_kind = "exception",
		  .want_error = "error", .want_code = 1 },
		{ "syntax is claimed", GUEST_KIND_PYTHON, .v = { SAID, .kind = syntax },
		  .want_kind = "syntax", .want_error = "error", .want_code = 1,
		  .want_claimed = true },
		{ "memory that our figures do not show is claimed", GUEST_KIND_PYTHON,
		  .v = { SAID, .kind = memory }, .want_kind = "memory", .want_error = "error",
		  .want_code = 1, .want_claimed = true },
		{ "memory that they show is not", GUEST_KIND_PYTHON, .v = { SAID, .kind = memory },
		  .s = { .memory_peak_kib = 224 * 1024 }, .want_kind = "memory",
		  .want_error = "error", .want_code = 1 },
		{ "a tool's failure", GUEST_KIND_PYTHON,
		  .v = { SAID, .kind = tool, .has_failed_call = true }, .want_kind = "tool",
		  .want_error = "error", .want_code = 1 },
		{ "a tool's failure that the host has not seen", GUEST_KIND_PYTHON,
		  .v = { SAID, .kind = tool }, .want_kind = "tool", .want_error = "error",
		  .want_code = 1, .want_claimed = true },
		{ "an import that the policy does not name", GUEST_KIND_PYTHON,
		  .v = { SAID, .kind = import }, .want_kind = "denied", .want_error = "error",
		  .want_code = 1 },
		{ "EFBIG", GUEST_KIND_PYTHON, .v = { SAID, .message = big },
		  .want_kind = "file_size", .want_error = "error: [Errno 27] File too large",
		  .want_code = 1, .want_claimed = true },
		{ "ENOSPC while there is no full disk", GUEST_KIND_PYTHON,
		  .v = { SAID, .message = full }, .want_kind = "exception",
		  .want_error = "error: [Errno 28] No space left", .want_code = 1 },
		{ "EACCES of a path that the policy does not give", GUEST_KIND_PYTHON,
		  .v = { SAID, .message = shadow }, .want_kind = "denied",
		  .want_error = "error: [Errno 13] Permission denied: '/etc/shadow'",
		  .want_code = 1 },
		{ "EAGAIN, and nobody counts", GUEST_KIND_PYTHON,
		  .v = { SAID, .message = fork_failed }, .want_kind = "processes",
		  .want_error = "error: [Errno 11] Resource temporarily unavailable",
		  .want_code = 1, .want_claimed = true },
	};

	CHECK_ALL(rows);
}

/* The kind that a guest's result becomes when the control group has counted this. */
static const char *kind_with_group(struct evidence v, const char *file, const char *text)
{
	struct policy p = limits();
	struct faked_box f;
	cleanup_result struct cordon_result *r = result_new();

	faked_box_init(&f, GUEST_KIND_SH);
	faked_box_add_group(&f);
	faked_box_count(&f, file, text);
	exit_cause_reach(&v, &f.engine, &p, r);
	faked_box_done(&f);
	return r->kind;
}

TEST(counters_count_only_what_is_new)
{
	struct evidence killed = { SAID, .has_exit_code = true, .exit_code = 137 }, dead = { 0 };
	struct evidence failed = { SAID, .has_exit_code = true, .exit_code = 1 };

	ASSERT_STREQ(kind_with_group(killed, "memory.events", "oom 3\noom_kill 2\n"), "memory");
	killed.before.oom_kills = 2; /* those were an earlier execution's */
	ASSERT_STREQ(kind_with_group(killed, "memory.events", "oom 3\noom_kill 2\n"), "exception");
	ASSERT_STREQ(kind_with_group(dead, "memory.events", "oom_kill 1\n"), "memory");
	dead.before.oom_kills = 1;
	ASSERT_STREQ(kind_with_group(dead, "memory.events", "oom_kill 1\n"), NULL);
	ASSERT_STREQ(kind_with_group(failed, "pids.events", "max 5\n"), "processes");
	failed.before.pids_refused = 5;
	ASSERT_STREQ(kind_with_group(failed, "pids.events", "max 5\n"), "exception");
	ASSERT_STREQ(kind_with_group(failed, "pids.peak", "32\n"), "processes");
	ASSERT_STREQ(kind_with_group(failed, "pids.peak", "31\n"), "exception");
}

/* With a control group, EAGAIN alone proves nothing. */
TEST(a_claimed_fork_failure_needs_a_count)
{
	static char message[] = "[Errno 11] Resource temporarily unavailable";
	struct evidence v = { SAID, .message = message };

	ASSERT_STREQ(kind_with_group(v, "pids.peak", "4\n"), "exception");
	ASSERT_STREQ(kind_with_group(v, "pids.peak", "32\n"), "processes");
	ASSERT_STREQ(kind_with_group(v, "pids.events", "max 1\n"), "processes");
}

TEST(a_peak_is_blamed_once)
{
	struct evidence v = { SAID, .has_exit_code = true, .exit_code = 1 };
	struct policy p = limits();
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_SH);
	f.box.cgroup.count = 1; /* someone counts, and no file tells */
	f.box.cgroup.dir_fds[0] = f.box.cgroup.dir_fds[1] = f.box.cgroup.peak_fd = -1;
	f.status.processes_peak = 32;
	for (int i = 0; i < 3; i++) {
		cleanup_result struct cordon_result *r = result_new();

		v.err_text = i == 2 ? "fork: Resource temporarily unavailable" : NULL;
		v.was_crowded = f.engine.was_crowded;
		exit_cause_reach(&v, &f.engine, &p, r);
		ASSERT_STREQ(r->kind, i == 1 ? "exception" : "processes");
	}
}

TEST(a_shell_killed_for_cpu_needs_our_own_figure)
{
	struct evidence v = { SAID, .has_exit_code = true, .exit_code = 137 };
	struct policy p = limits();
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_SH);
	for (int i = 0; i < 2; i++) {
		cleanup_result struct cordon_result *r = result_new();

		r->cpu_ms = i == 0 ? 4999 : 5000;
		exit_cause_reach(&v, &f.engine, &p, r);
		ASSERT_STREQ(r->kind, i == 0 ? "exception" : "cpu");
	}
}

TEST(a_heap_abort_of_node_is_memory)
{
	struct policy p = limits();
	uint64_t heap = guest_heap_bytes(GUEST_KIND_NODE, &p);

	ASSERT(heap > 0);
	for (int i = 0; i < 4; i++) {
		cleanup_result struct cordon_result *r = result_new();
		struct evidence v = { 0 };
		struct faked_box f;

		faked_box_init(&f, i == 2 ? GUEST_KIND_PYTHON : GUEST_KIND_NODE);
		f.status.wait_status = i == 3 ? SIGSEGV : SIGABRT;
		f.status.memory_peak_kib = heap / 5 * 4 / 1024 + (i == 0 ? -1 : 1);
		exit_cause_reach(&v, &f.engine, &p, r);
		ASSERT_STREQ(r->kind, i == 1 ? "memory" : "crashed");
	}
}

static size_t denial_count(const struct cordon_result *r)
{
	return json_array_size(r->denials);
}

TEST(denials_of_this_execution_only)
{
	static char wire; /* only looked at for being there */
	struct evidence v = { SAID, .ok = true };
	struct policy p = limits();
	struct faked_box f;
	cleanup_result struct cordon_result *first = result_new(), *second = result_new();

	faked_box_init(&f, GUEST_KIND_PYTHON);
	f.engine.wire = (struct wire *)&wire;
	f.status.denial_count = 1;
	f.status.denials[0] = (struct status_denial){ .syscall_nr = SYS_ptrace, .count = 3 };
	exit_cause_reach(&v, &f.engine, &p, first);
	ASSERT_EQ(denial_count(first), 1);
	ASSERT(first->success);
	evidence_begin(&v, &f.engine, &p);
	ASSERT_EQ(v.denials_before[0], 3);
	exit_cause_reach(&v, &f.engine, &p, second);
	ASSERT_EQ(denial_count(second), 0);
}

/* A script runs before its execution begins here. On a busy machine it may even have ended. */
TEST(denials_of_a_script_are_all_its_own)
{
	struct evidence v;
	struct policy p = limits();
	struct faked_box f;
	cleanup_result struct cordon_result *r = result_new();

	faked_box_init(&f, GUEST_KIND_SH);
	f.engine.counted.oom_kills = 1; /* of a neighbour, from before it was started */
	f.status.denial_count = 1;
	f.status.denials[0] = (struct status_denial){ .syscall_nr = SYS_ptrace, .count = 3 };
	evidence_begin(&v, &f.engine, &p);
	ASSERT_EQ(v.before.oom_kills, 1);
	exit_cause_reach(&v, &f.engine, &p, r);
	ASSERT(r->success);
	ASSERT_EQ(denial_count(r), 1);
}

/* What a pod's runtime tells is only believed where the policy refuses it. */
TEST(a_door_denial_must_fit_the_policy)
{
	static char told[] = "[{\"operation\": \"exec\", \"target\": \"curl\"},"
			     " {\"operation\": \"exec\", \"target\": \"ls\"},"
			     " {\"operation\": \"socket\", \"target\": \"stream\"},"
			     " {\"operation\": \"fly\", \"target\": \"x\"}, 5, {}]";
	static char ls[] = "ls", *names[] = { ls };
	struct evidence v = { SAID, .ok = true, .told = told };
	struct policy p = limits();
	struct faked_box f;
	cleanup_result struct cordon_result *r = result_new();

	p.commands.names = (struct strlist){ .items = names, .count = 1 };
	faked_box_init(&f, GUEST_KIND_POD);
	exit_cause_reach(&v, &f.engine, &p, r);
	cleanup_free char *text = cordon_result_denials_text(r);
	ASSERT_EQ(denial_count(r), 2);
	ASSERT_HAS(text, "denied: execute curl (door)");
	ASSERT_HAS(text, "denied: socket stream (door)");
}

TEST(no_more_is_told_than_a_bound)
{
	struct evidence v = { SAID, .ok = true };
	struct policy p = limits();
	struct faked_box f;
	struct buf told;
	cleanup_result struct cordon_result *r = result_new();

	buf_init(&told, MIB);
	for (int i = 0; i < 1000; i++)
		(void)buf_printf(&told, "%c{\"operation\": \"exec\", \"target\": \"x%d\"}",
				 i ? ',' : '[', i);
	(void)buf_add_str(&told, "]");
	v.told = buf_take(&told);
	faked_box_init(&f, GUEST_KIND_POD);
	exit_cause_reach(&v, &f.engine, &p, r);
	evidence_done(&v);
	ASSERT_EQ(denial_count(r), 64);
}
