/* tests/behaviour/contexts_limits.c - limits that the contexts of one sandbox share: who is told
 * that he met one, and how much room the interpreters leave. */
#include "dialect.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "harness/test.h"

static const char *const all[] = { "python", "r", "node", "sh", NULL };
static const char *const python_and_sh[] = { "python", "sh", NULL };

static struct cordon_session *context(struct cordon_session *s, const char *language)
{
	struct cordon_session *c = NULL;

	ASSERT_EQ(cordon_session_context(s, language, NULL, &c, NULL), 0);
	return c;
}

/* Takes the result over. */
static void fails_as(struct cordon_result *r, const char *kind, const char *denial)
{
	const char *json = cordon_result_json(r);

	if (!str_eq(cordon_result_error_kind(r), kind) ||
	    !strstr(json, denial ? denial : "\"denials\": []"))
		test_fail(__FILE__, __LINE__, "want %s and %s: %s", kind,
			  denial ? denial : "no denials", json);
	cordon_result_free(r);
}

static struct cordon_result *command(struct cordon_session *s, const char *text)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_command_options o = { .command = text };
	struct cordon_result *r = NULL;

	if (cordon_session_command(s, &o, &r, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", text, cordon_error_message(e));
	return r;
}

#define FILL                                                                                       \
	"import subprocess\nps = []\n"                                                             \
	"def fill():\n  while True: ps.append(subprocess.Popen(['sleep', '1000']))\n"              \
	"def drain():\n  while ps: ps[-1].kill(); ps.pop().wait()\n"

/* Counters and peaks are the sandbox's and are never reset. */
TEST(the_limit_on_processes_is_blamed_on_who_met_it)
{
	struct cordon_session *s = open_languages(NULL, python_and_sh, new_policy("processes=8")),
			      *sh;

	sh = context(s, "sh");
	must(sh, "true");
	must(s, FILL);
	for (int i = 0; i < 2; i++) {
		fails_as(run(s, "try: fill()\nfinally: drain()"), "processes", "processes=16");
		fails_as(run(sh, "exit 3"), "exception", NULL);
		fails_as(command(s, "exit 3"), "exception", NULL);
		fails_as(run(s, "1/0"), "exception", NULL);
	}
	cordon_session_close(s);
}

/* A full disk is a state: only who meets it is told. */
TEST(a_full_workspace_is_blamed_on_who_met_it)
{
	struct cordon_session *s = open_languages(NULL, python_and_sh, new_policy("fs_bytes=16M")),
			      *sh;

	sh = context(s, "sh");
	must(sh, "true");
	fails_as(run(sh, "head -c 20M /dev/zero > f; exit 4"), "disk", "fs_bytes");
	fails_as(run(sh, "exit 3"), "exception", NULL);
	fails_as(command(s, "exit 3"), "exception", NULL);
	fails_as(command(s, "echo more > g"), "disk", "fs_bytes");
	cordon_session_close(s);
}

/* Sixteen processes are for the code; Node alone has a dozen threads. */
TEST(four_languages_fit_into_level_strict)
{
	static const char *const codes[] = { "1", "1", "1", "true" };
	struct cordon_policy *strict = NULL;

	ASSERT_EQ(cordon_policy_new("strict", &strict, NULL), 0);
	struct cordon_session *s = open_languages(NULL, all, strict);
	for (size_t i = 0; all[i]; i++)
		must(context(s, all[i]), codes[i]);
	must(context(s, "sh"), "true | cat | cat");
	struct cordon_result *r = command(s, "true | cat");
	if (!cordon_result_success(r) || !strstr(cordon_result_json(r), "\"processes\":37"))
		test_fail(__FILE__, __LINE__, "%s", cordon_result_json(r));
	cordon_result_free(r);
	cordon_session_close(s);
}

TEST(a_guest_that_finds_no_room_names_the_limit)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session *s = open_languages(NULL, python_and_sh, new_policy("processes=8")),
			      *sh;
	struct cordon_execute_options o = { .code = "true" };
	struct cordon_result *r = NULL;

	must(s, FILL "try: fill()\nexcept OSError: pass");
	sh = context(s, "sh");
	int code = cordon_session_execute(sh, &o, &r, &e);
	if (code != -CORDON_LIMIT || !strstr(cordon_error_message(e), "(processes=16)"))
		test_fail(__FILE__, __LINE__, "%d: %s", code,
			  code < 0 ? cordon_error_message(e) : cordon_result_json(r));
	must(s, "drain()");
	must(sh, "true");
	cordon_session_close(s);
}

/* Each has a filter of its own, which pid 1 answers for as long as such a process runs. */
TEST(commands_may_not_leave_processes_without_end)
{
	struct cordon_session *s =
		open_languages(NULL, python_and_sh, new_policy("processes=1000"));
	struct cordon_result *r = command(s, "setsid -f sleep 1000");
	unsigned left = 0;

	for (; cordon_result_success(r) && left < 1000; left++) {
		cordon_result_free(r);
		r = command(s, "setsid -f sleep 1000");
	}
	ASSERT(left >= 100 && left < 1000);
	ASSERT(strstr(cordon_result_json(r), "left processes running"));
	must(s, "import os\n"
		"for p in [p for p in os.listdir('/proc') if p.isdigit()]:\n"
		"    try:\n"
		"        if 'sleep' in open(f'/proc/{p}/comm').read(): os.kill(int(p), 9)\n"
		"    except OSError: pass");
	for (unsigned i = 0; !cordon_result_success(r) && i < 1000; i++) { /* they are ending */
		cordon_result_free(r);
		r = command(s, "true");
	}
	ASSERT(cordon_result_success(r));
	cordon_result_free(r);
	cordon_session_close(s);
}
