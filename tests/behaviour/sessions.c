/* tests/behaviour/sessions.c - live sessions through the public API, in every installed guest:
 * state, errors, timeouts, cancel, restart, limits, streaming, isolation, randomness, values. */
#include "dialect.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "harness/test.h"

TEST(state_persists_between_executions)
{
	EACH_DIALECT(d)
	{
		struct cordon_session *s = open_with(d->guest, NULL);

		must(s, d->set_x);
		must_be(s, d, d->get_x, d->x_value);
		cordon_session_close(s);
	}
}

TEST(an_error_leaves_the_session_usable)
{
	EACH_DIALECT(d)
	{
		struct cordon_session *s = open_with(d->guest, NULL);

		must(s, d->set_x);
		must_fail(s, d->fail, 0, "exception", d->fail_text);
		struct cordon_result *r = run(s, d->syntax);
		ASSERT(!cordon_result_success(r));
		cordon_result_free(r);
		must_be(s, d, d->get_x, d->x_value);
		cordon_session_close(s);
	}
}

TEST(a_timeout_ends_the_execution_and_not_the_session)
{
	EACH_DIALECT(d)
	{
		struct cordon_session *s = open_with(d->guest, NULL);

		must(s, d->write_file);
		must_fail(s, d->spin, 1000, "timeout", "Execution timed out after 1 second");
		must_fail(s, d->sleep, 1000, "timeout", NULL);
		/* The files outlive the guest that was killed. */
		must(s, d->read_file);
		ASSERT(cordon_session_is_alive(s));
		cordon_session_close(s);
	}
}

struct reader {
	struct cordon_session *session;
	_Atomic bool is_done;
	_Atomic int turns, refused;
};

static void *read_on(void *arg)
{
	struct reader *r = arg;

	while (!r->is_done) {
		cleanup_free char *bytes = NULL;
		size_t len;
		int written = cordon_file_write(r->session, "/workspace/x", "x", 1, NULL);
		int read = cordon_file_read(r->session, "/workspace/x", &bytes, &len, NULL);

		r->refused += written == -CORDON_STATE || read == -CORDON_STATE;
		r->turns++;
	}
	return NULL;
}

/* The workspace that a call has found stays until the call is over, and there always is one. */
TEST(files_are_reached_while_the_guest_is_replaced)
{
	struct cordon_session *s = open_with("python", NULL);
	struct reader r = { .session = s };
	pthread_t t;

	ASSERT_EQ(pthread_create(&t, NULL, read_on, &r), 0);
	for (int i = 0; i < 10; i++) {
		int turns = r.turns;

		must_fail(s, "import os; os.kill(os.getpid(), 9)", 0, "crashed", NULL);
		while (r.turns == turns)
			usleep(1000);
	}
	r.is_done = true;
	pthread_join(t, NULL);
	ASSERT_EQ(r.refused, 0);
	cordon_session_close(s);
}

TEST(misuse_is_an_error)
{
	struct cordon_session *s = open_with("sh", NULL);
	struct cordon_execute_options none = { 0 };
	struct cordon_result *r = NULL;
	char *bytes = NULL;
	size_t len;

	ASSERT_EQ(cordon_session_execute(s, &none, &r, NULL), -CORDON_INVALID);
	ASSERT_EQ(cordon_session_execute(s, NULL, &r, NULL), -CORDON_INVALID);
	ASSERT_EQ(cordon_file_read(s, NULL, &bytes, &len, NULL), -CORDON_INVALID);
	ASSERT(!r && !bytes);
	ASSERT(!cordon_session_close(s) && !cordon_session_close(NULL));
}

TEST(restart_gives_a_new_process_and_forgets_variables)
{
	struct cordon_session *s = open_with("python", NULL);
	cleanup_free char *before = cordon_session_describe(s);

	must(s, "x = 1");
	ASSERT_EQ(cordon_session_restart(s, NULL), 0);
	cleanup_free char *after = cordon_session_describe(s);
	ASSERT(strcmp(strstr(before, "\"pid\""), strstr(after, "\"pid\"")) != 0);
	must_fail(s, "x", 0, "exception", "x");
	cordon_session_close(s);
}

TEST(counted_executions)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session *s = open_with("python", "max_executions=2");
	struct cordon_result *r = NULL;

	must_fail(s, "if (True {", 0, "syntax", NULL); /* rejected code is not counted */
	must(s, "1");
	must(s, "2");
	ASSERT_EQ(
		cordon_session_execute(s, &(struct cordon_execute_options){ .code = "3" }, &r, &e),
		-CORDON_LIMIT);
	ASSERT_STREQ(cordon_error_message(e), "Maximum executions (2) reached for this session.");
	cordon_session_close(s);
}

/* Code that finds its execution's id speaks for the guest. */
#define FORGE(error)                                                                               \
	"import json, os, sys\n"                                                                   \
	"f = sys._getframe()\n"                                                                    \
	"while 'm' not in f.f_locals: f = f.f_back\n"                                              \
	"os.write(3, (json.dumps({'type': 'result', 'id': f.f_locals['m']['id'], 'ok': False, "    \
	"'error': " error "}) + '\\n').encode())\n"                                                \
	"os._exit(0)"

TEST(what_was_sent_is_counted_whatever_the_guest_says)
{
	struct cordon_session *s = open_with("python", "max_executions=2");
	struct cordon_execute_options o = {
		.code = FORGE("{'kind': 'syntax', 'name': 'SyntaxError', 'message': 'forged'}")
	};
	struct cordon_result *r = NULL;

	for (int i = 0; i < 2; i++) {
		r = run(s, o.code);
		ASSERT_STREQ(cordon_result_error_kind(r), "syntax");
		ASSERT_HAS(cordon_result_error(r), "forged");
		ASSERT_HAS(cordon_result_json(r), "\"claimed\": true");
		cordon_result_free(r);
		ASSERT_EQ(cordon_session_restart(s, NULL), 0);
	}
	ASSERT_EQ(cordon_session_execute(s, &o, &r, NULL), -CORDON_LIMIT);
	cordon_session_close(s);
}

TEST(what_only_the_guest_says_is_marked)
{
	static const char *const table[][2] = {
		{ FORGE("{'kind': 'memory', 'name': 'MemoryError', 'message': ''}"), "memory" },
		{ FORGE("{'kind': 'exception', 'name': 'OSError', 'message': '[Errno 27] x'}"),
		  "file_size" },
	};
	struct cordon_session *s = open_with("python", NULL);

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct cordon_result *r = run(s, table[i][0]);
		ASSERT_STREQ(cordon_result_error_kind(r), table[i][1]);
		ASSERT_HAS(cordon_result_json(r), "\"claimed\": true");
		cordon_result_free(r);
		ASSERT_EQ(cordon_session_restart(s, NULL), 0);
	}
	struct cordon_result *r = run(s, "1/0");
	ASSERT(!strstr(cordon_result_json(r), "claimed"));
	cordon_result_free(r);
	cordon_session_close(s);
}

static bool refuse_system(const char *code, size_t len, void *arg)
{
	(void)len, (void)arg;
	return !strstr(code, "system");
}

TEST(the_hook_before_execution)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session_options o = { .guest = "python", .pre_execute = refuse_system };
	struct cordon_session *s = NULL;
	struct cordon_result *r = NULL;

	ASSERT_EQ(cordon_session_open(&o, &s, NULL), 0);
	must(s, "1 + 1");
	struct cordon_execute_options x = { .code = "import os; os.system('id')" };
	ASSERT_EQ(cordon_session_execute(s, &x, &r, &e), -CORDON_DENIED);
	ASSERT_STREQ(cordon_error_message(e), "Execution blocked by pre_execute_hook.");
	cordon_session_close(s);
}

TEST(code_length_is_exact)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session *s = open_with("python", "code_bytes=5");
	struct cordon_result *r = NULL;

	must(s, "1 + 1");
	ASSERT(cordon_session_execute(s, &(struct cordon_execute_options){ .code = "11 + 1" }, &r,
				      &e) < 0);
	ASSERT_STREQ(cordon_error_message(e), "Code too long (6 chars, max 5).");
	cordon_session_close(s);
}

struct chunks {
	uint64_t first_ns, second_ns;
	char text[64];
};

static void collect(int stream, const char *bytes, size_t len, void *arg)
{
	struct chunks *c = arg;

	ASSERT_EQ(stream, 1);
	strncat(c->text, bytes, len < 20 ? len : 20);
	if (!c->first_ns)
		c->first_ns = clock_now_ns();
	c->second_ns = clock_now_ns();
}

TEST(output_streams_as_it_comes)
{
	EACH_DIALECT(d)
	{
		struct cordon_session *s = open_with(d->guest, NULL);
		struct chunks c = { 0 };
		struct cordon_execute_options o = { .code = d->two_lines,
						    .output = collect,
						    .output_arg = &c };
		struct cordon_result *r = NULL;

		ASSERT_EQ(cordon_session_execute(s, &o, &r, NULL), 0);
		ASSERT_STREQ(c.text, "line1\nline2\n");
		ASSERT_STREQ(cordon_result_stdout(r, NULL), "line1\nline2\n");
		/* Not a measurement: they did not arrive together. */
		ASSERT(c.second_ns - c.first_ns > 300000000);
		cordon_result_free(r);
		cordon_session_close(s);
	}
}

TEST(two_sessions_of_one_template_are_strangers)
{
	EACH_DIALECT(d)
	{
		struct cordon_session *a = open_with(d->guest, NULL),
				      *b = open_with(d->guest, NULL);
		struct cordon_result *x = run(a, d->random), *y = run(b, d->random);

		must(a, d->write_file);
		struct cordon_result *r = run(b, d->read_file);
		ASSERT(!cordon_result_success(r));
		cordon_result_free(r);
		if (strcmp(d->guest, "sh") != 0) /* 15 bits may meet */
			ASSERT(strcmp(cordon_result_value_json(x), cordon_result_value_json(y)) !=
			       0);
		cordon_result_free(x);
		cordon_result_free(y);
		cordon_session_close(a);
		cordon_session_close(b);
	}
}

/* The memory of a template is in files, of which a session has private copies and no descriptor. */
TEST(memory_of_a_template_is_in_files_that_no_session_can_write)
{
	static const char shared[] =
		"import os\n"
		"maps = [l.split() for l in open('/proc/self/maps') if 'cordon-image' in l]\n"
		"def is_open(m):\n"
		" try: os.close(os.open('/proc/self/map_files/' + m[0], os.O_RDWR)); return True\n"
		" except OSError: return False\n"
		"[len(maps) >= 3, all(m[1] == 'rw-p' for m in maps), any(map(is_open, maps)),"
		" any('cordon-image' in os.readlink('/proc/self/fd/' + f)"
		" for f in os.listdir('/proc/self/fd') if os.path.islink('/proc/self/fd/' + f))]";
	int fd = memfd_create("probe", 8 /* MFD_NOEXEC_SEAL, Linux 6.3 */);

	if (fd < 0)
		return;
	close(fd);
	struct cordon_session *a = open_with("python", NULL);
	must_be(a, &dialects[0], shared, "[true,true,false,false]");
	cordon_session_close(a);
}

TEST(sessions_see_no_foreign_processes)
{
	struct cordon_session *a = open_with("python", NULL), *b = open_with("python", NULL);

	must(a, "import os, time\nif os.fork() == 0:\n time.sleep(60)");
	must_be(b, &dialects[0],
		"import os; [p for p in os.listdir('/proc') if p.isdigit() and int(p) > 2]", "[]");
	must_fail(b, "import os; os.kill(3, 9)", 0, "exception", "ProcessLookupError");
	cordon_session_close(a);
	cordon_session_close(b);
}

/* A template is handed descriptors for every session it forks: none may stay with another. */
/* Everything below a process, itself first; at most so many. */
static size_t family(long pid, long *ret, size_t max)
{
	char path[64];
	size_t n = 1;

	if (max == 0)
		return 0;
	ret[0] = pid;
	snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", pid, pid);
	FILE *f = fopen(path, "re");
	char text[4096] = "";
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	for (char *at = text; *at;) {
		long child = strtol(at, &at, 10);

		if (child > 0)
			n += family(child, ret + n, max - n);
		at += strspn(at, " \n");
	}
	return n;
}

/* When it returns, and not a moment later. */
TEST(close_leaves_nothing_running)
{
	for (int round = 0; round < 10; round++) {
		struct cordon_session *s = open_with("python", NULL);
		long pids[64];
		char path[64];

		must(s,
		     "import os\nfor i in range(8):\n  if os.fork() == 0:\n    while True: pass");
		char *text = cordon_session_describe(s), *pid = strstr(text, "\"pid\":");
		ASSERT(pid != NULL);
		size_t count = family(strtol(pid + 6, NULL, 10), pids, 64);
		free(text);
		ASSERT(count >= 10);
		cordon_session_close(s);
		for (size_t i = 0; i < count; i++) {
			snprintf(path, sizeof(path), "/proc/%ld", pids[i]);
			if (access(path, F_OK) == 0 && i > 0)
				test_fail(__FILE__, __LINE__, "process %ld of %zu is there", i,
					  count);
		}
	}
}

TEST(a_forked_session_has_only_its_own_descriptors)
{
	struct cordon_session *a = open_with("python", NULL), *b = open_with("python", NULL);

	must_be(b, &dialects[0],
		"import os\n"
		"fd = '/proc/self/fd/'\n"
		"[f for f in sorted(os.listdir(fd)) if os.path.lexists(fd + f)]",
		"[\"0\",\"1\",\"2\",\"254\",\"255\",\"3\"]");
	/* From which 1 and 2 are mended. */
	must_be(b, &dialects[0],
		"[os.path.samestat(os.fstat(254), os.fstat(1)), os.path.samestat(os.fstat(255), "
		"os.fstat(2))]",
		"[true,true]");
	cordon_session_close(a);
	cordon_session_close(b);
}

/* Nor where the register has more in it than the int that the kernel takes. */
TEST(a_forked_session_opens_no_socket)
{
	struct cordon_session *s = open_with("python", NULL);

	must_be(s, &dialects[0],
		"import ctypes\n"
		"call = ctypes.CDLL(None).syscall\n"
		"call.restype = ctypes.c_long\n"
		"opened = []\n"
		"for above in 0, 1 << 32, 1 << 63:\n"
		"    for family in range(64):\n"
		"        for kind in 1, 2, 3, 5:\n"
		"            if call(41, ctypes.c_long(family | above), kind, 0) >= 0:\n"
		"                opened.append([family, above])\n"
		"opened",
		"[]");
	cordon_session_close(s);
}

TEST(values_are_exact)
{
	static const char *const table[][2] = {
		{ "2**63 - 1", "9223372036854775807" },
		{ "2**70", "{\"$\":\"int\",\"v\":\"1180591620717411303424\"}" },
		{ "3.141592653589793", "3.141592653589793" },
		{ "1e-300", "1e-300" },
		{ "float('nan')", "{\"$\":\"float\",\"v\":\"nan\"}" },
		{ "None", "null" },
		{ "True", "true" },
		{ "b'\\x00\\xff'", "{\"$\":\"bytes\",\"v\":\"AP8=\"}" },
		{ "[1, 'a', None]", "[1,\"a\",null]" },
		{ "{'k': [1.5]}", "{\"k\":[1.5]}" },
		{ "result = 7\n8", "7" },
	};
	struct cordon_session *s = open_with("python", NULL);

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		must_be(s, &dialects[0], table[i][0], table[i][1]);
	must_be(s, &dialects[0], "a = []; a.append(a); a", "null"); /* its text crosses */
	cordon_session_close(s);
}

TEST(context_becomes_variables)
{
	struct cordon_session *s = open_with("python", NULL);
	struct cordon_execute_options o = { .code = "x + y",
					    .context_json = "{\"x\": 10, \"y\": 20}" };
	struct cordon_result *r = NULL;

	ASSERT_EQ(cordon_session_execute(s, &o, &r, NULL), 0);
	ASSERT_STREQ(cordon_result_value_json(r), "30");
	cordon_result_free(r);
	cordon_session_close(s);
}

TEST(imports_follow_the_policy)
{
	struct cordon_session *s = open_with("python", "modules=math");

	must(s, "import math");
	must_fail(s, "import os", 0, "denied", "not allowed");
	must_fail(s, "import os.path", 0, "denied", "not allowed");
	must_fail(s, "__import__('os')", 0, "denied", "not allowed");
	must_fail(s, "import importlib", 0, "denied", "not allowed");
	cordon_session_close(s);
}

TEST(a_crash_replaces_the_guest)
{
	struct cordon_session *s = open_with("python", NULL);
	struct cordon_result *r = run(s, "import os; os.kill(os.getpid(), 11)");

	ASSERT_STREQ(cordon_result_error_kind(r), "crashed");
	ASSERT(strstr(cordon_result_json(r), "\"restarted\": true"));
	cordon_result_free(r);
	must_be(s, &dialects[0], "1 + 1", "2");
	cordon_session_close(s);
}

/* Either the kernel kills a child, and the code says so, or the template's supervisor the session.
 */
TEST(memory_of_several_processes_is_told_as_memory)
{
	struct cordon_session *s = open_with("python", "memory_bytes=96M");

	must_fail(s,
		  "import os, time\nfor i in range(4):\n if os.fork() == 0:\n"
		  "  b = b'x' * (40 << 20); time.sleep(20); os._exit(0)\n"
		  "if os.wait()[1]: raise MemoryError",
		  0, "memory", NULL);
	must_be(s, &dialects[0], "1 + 1", "2");
	cordon_session_close(s);
}

TEST(a_broken_protocol_ends_that_execution_only)
{
	static const char *const attacks[] = {
		"import os; os.write(3, b'not json\\n'); import time; time.sleep(5)",
		"import os; os.write(3, b'x' * 3000000); import time; time.sleep(5)",
		"import os; os.write(3, b'[' * 100 + b'\\n'); import time; time.sleep(5)",
	};
	struct cordon_session *s = open_with("python", NULL);

	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++) {
		must_fail(s, attacks[i], 10000, "protocol", NULL);
		must_be(s, &dialects[0], "1 + 1", "2");
	}
	cordon_session_close(s);
}

TEST(snapshots_forks_and_the_environment)
{
	struct cordon_session *s = open_with("python", NULL), *f = NULL;
	char *bytes = NULL;
	size_t len = 0;

	ASSERT_EQ(cordon_file_write(s, "/home/user/a", "v1", 2, NULL), 0);
	ASSERT_EQ(cordon_session_setenv(s, "MY_VAR", "original", NULL), 0);
	ASSERT(cordon_session_setenv(s, "1x", "v", NULL) < 0);
	must_be(s, &dialects[0], "import os; os.environ['MY_VAR']", "\"original\"");
	ASSERT_EQ(cordon_snapshot_create(s, "one", NULL), 0);
	ASSERT_EQ(cordon_file_write(s, "/home/user/a", "v2", 2, NULL), 0);
	ASSERT_EQ(cordon_session_setenv(s, "MY_VAR", "changed", NULL), 0);
	ASSERT_EQ(cordon_snapshot_restore(s, "one", NULL), 0);
	must_be(s, &dialects[0], "os.environ['MY_VAR'] + open('/home/user/a').read()",
		"\"originalv1\"");
	ASSERT(cordon_snapshot_restore(s, "nope", NULL) < 0);
	ASSERT_EQ(cordon_session_fork(s, &f, NULL), 0);
	must_be(f, &dialects[0], "open('/home/user/a').read()", "\"v1\"");
	must(f, "open('/home/user/a', 'w').write('child')");
	ASSERT_EQ(cordon_file_read(s, "/home/user/a", &bytes, &len, NULL), 0);
	ASSERT_STREQ(bytes, "v1");
	free(bytes);
	cordon_session_close(f);
	cordon_session_close(s);
}
