/* tests/behaviour/contexts_hostile.c - code in one context that wants the host to wait, to count
 * wrongly, or to say something untrue about its neighbours. */
#include "dialect.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "harness/test.h"

static struct cordon_session *open_with_sh(const char *set)
{
	static const char *const languages[] = { "python", "sh", NULL };
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_policy *p = new_policy(set);
	struct cordon_session_options o = { .languages = languages, .policy = p };
	struct cordon_session *s = NULL;
	int r = cordon_session_open(&o, &s, &e);

	cordon_policy_free(p);
	if (r == -CORDON_UNSUPPORTED)
		needs(false, cordon_error_message(e));
	ASSERT_EQ(r, 0);
	return s;
}

static struct cordon_session *neighbour(struct cordon_session *s)
{
	struct cordon_session *c = NULL;

	ASSERT_EQ(cordon_session_context(s, "python", "neighbour", &c, NULL), 0);
	return c;
}

static struct cordon_result *sh(struct cordon_session *s, const struct cordon_command_options *o)
{
	struct cordon_result *r = NULL;

	ASSERT_EQ(cordon_session_command(s, o, &r, NULL), 0);
	return r;
}

/* It looked like a success: status 0 and no output. */
TEST(a_command_that_never_ran_has_failed)
{
	struct cordon_session *s = open_with_sh(NULL);
	struct cordon_command_options o = { .command = "true", .directory = "/nowhere" };
	struct cordon_result *r = sh(s, &o);

	ASSERT_STREQ(cordon_result_error_kind(r), "internal");
	ASSERT_EQ(cordon_result_exit_status(r), 125);
	ASSERT_STREQ(cordon_result_error(r), "/nowhere: the working directory cannot be entered: "
					     "No such file or directory");
	ASSERT(strstr(cordon_result_json(r), "\"exit_code\": 125"));
	cordon_result_free(r);
	must(s, "import os; os.chmod('/home/user', 0)");
	o.directory = NULL;
	r = sh(s, &o);
	ASSERT(strstr(cordon_result_json(r), "\"exit_code\": 125"));
	cordon_result_free(r);
	cordon_session_close(s);
}

/* A process of the context's session has a parent that left it, and that never waits. */
TEST(a_process_that_nobody_reaps_does_not_end_the_neighbours)
{
	struct cordon_session *s = open_with_sh(NULL), *c = neighbour(s);

	must(s, "x = 7");
	struct cordon_result *r = run_for(c,
					  "import os, signal, time\n"
					  "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
					  "a, b = os.pipe()\n"
					  "if os.fork() == 0:\n"
					  "    if os.fork() == 0:\n"
					  "        if os.fork() == 0: time.sleep(600)\n"
					  "        os.setsid()\n"
					  "        os.write(b, b'1')\n"
					  "        time.sleep(600)\n"
					  "    os._exit(0)\n"
					  "os.read(a, 1)\n"
					  "print('ready', flush=True)\n"
					  "while True: time.sleep(60)",
					  3000);
	size_t len;
	ASSERT_STREQ(cordon_result_error_kind(r), "timeout");
	ASSERT_STREQ(cordon_result_stdout(r, &len), "ready\n");
	cordon_result_free(r);
	must(s, "assert x == 7");
	cordon_session_close(s);
}

/* It has left the guest's tree, and each of its processes uses little. */
TEST(cpu_time_of_what_left_the_guest_is_counted)
{
	struct cordon_session *s = open_with_sh("cpu_seconds=1");
	struct cordon_result *r = run_for(s,
					  "import os, time\n"
					  "if os.fork() == 0:\n"
					  "    os.setsid()\n"
					  "    while True:\n"
					  "        end = time.process_time() + .2\n"
					  "        while time.process_time() < end: pass\n"
					  "        if os.fork(): os._exit(0)\n"
					  "while True: time.sleep(60)",
					  120000);

	ASSERT_STREQ(cordon_result_error_kind(r), "cpu");
	cordon_result_free(r);
	cordon_session_close(s);
}

#define START_BY_LOADER                                                                            \
	"import os\n"                                                                              \
	"loaders = '/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1'\n"                  \
	"loader = [p for p in loaders if os.path.exists(p)][0]\n"                                  \
	"pid = os.fork()\n"                                                                        \
	"if pid == 0:\n"                                                                           \
	"    try: os.execv(loader, [loader, '/usr/bin/true'])\n"                                   \
	"    finally: os._exit(9)\n"                                                               \
	"assert os.waitpid(pid, 0)[1] >> 8 == "

/* bash may start it, so it is there; the loader starts what it can read. */
TEST(programs_of_the_shell_are_not_for_the_loader)
{
	struct cordon_session *s = open_with_sh("commands=sh:*"), *c = neighbour(s);
	struct cordon_command_options o = { .command = "/usr/bin/true" };
	struct cordon_result *r = sh(s, &o);

	ASSERT_EQ(cordon_result_exit_status(r), 0);
	cordon_result_free(r);
	must(s, START_BY_LOADER "127");
	must(c, START_BY_LOADER "127");
	cordon_session_close(s);
	s = open_with_sh("commands=*");
	must(s, START_BY_LOADER "0");
	cordon_session_close(s);
}

TEST(stdin_of_a_process_may_have_any_bytes)
{
	struct cordon_session *s = open_with_sh(NULL);
	struct cordon_command_options o = { .command = "od -An -tx1",
					    .stdin_bytes = "\0ab\0",
					    .stdin_len = 4 };
	struct cordon_result *r = NULL;
	uint64_t process;
	size_t len;

	ASSERT_EQ(cordon_process_start(s, &o, &process, NULL), 0);
	ASSERT_EQ(cordon_process_wait(s, process, UINT64_MAX, &r, NULL), 0);
	ASSERT_STREQ(cordon_result_stdout(r, &len), " 00 61 62 00\n");
	cordon_result_free(r);
	cordon_session_close(s);
}

/* The copy was as long as the text before the NUL, and its length that of all. */
TEST(output_of_a_process_may_have_any_bytes)
{
	struct cordon_session *s = open_with_sh(NULL);
	struct cordon_command_options o = {
		.command = "printf 'a\\0b'; head -c 100000 /dev/zero; touch /tmp/done; sleep 100"
	};
	uint64_t process, offset = 0;
	cleanup_free char *out = NULL;
	size_t len = 0;

	ASSERT_EQ(cordon_process_start(s, &o, &process, NULL), 0);
	while (len < 100003) {
		free(out);
		out = NULL;
		ASSERT_EQ(cordon_process_output(s, process, 1, 0, &out, &len, &offset, NULL), 0);
	}
	ASSERT(memcmp(out, "a\0b\0", 4) == 0 && out[100002] == '\0');
	cordon_session_close(s);
}

/* The host noticed only after two minutes, and neither cancel nor close were heard meanwhile. On a
 * busy machine a guest may start before it is stopped. */
TEST(a_guest_that_its_neighbour_stops_is_not_waited_for)
{
	struct cordon_session *s = open_with_sh(NULL);
	bool is_told = false;

	must(s, "import os, signal\n"
		"a, b = os.pipe()\n"
		"if os.fork() == 0:\n"
		"    os.setsid()\n"
		"    known = set(os.listdir('/proc'))\n"
		"    os.write(b, b'1')\n"
		"    while True:\n"
		"        for p in set(os.listdir('/proc')) - known:\n"
		"            try: os.kill(int(p), signal.SIGSTOP)\n"
		"            except (OSError, ValueError): pass\n"
		"os.read(a, 1)");
	for (int i = 0; i < 50 && !is_told; i++) {
		cleanup_error struct cordon_error *e = NULL;
		struct cordon_execute_options o = { .code = "1", .timeout_ms = 2000 };
		struct cordon_result *r = NULL;
		struct cordon_session *c = neighbour(s);

		if (cordon_session_execute(c, &o, &r, &e) < 0)
			is_told = strstr(cordon_error_message(e), "was stopped") != NULL;
		cordon_result_free(r);
		cordon_session_close(c);
	}
	ASSERT(is_told);
	cordon_session_close(s);
}
