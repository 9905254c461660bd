/* tests/behaviour/contexts_warm.c - sandboxes with several languages that a template forks, and the
 * interpreter that waits in them. All guests of one template have the same hash seed, which tells
 * them from those that were started alone. */
#include "dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "belongings.h"
#include "harness/test.h"

#define SEED "str(hash('seed'))"

static const char *const languages[] = { "sh", "python", NULL };

static struct cordon_session *context(struct cordon_session *s, const char *name)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session *c = NULL;

	if (cordon_session_context(s, "python", name, &c, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return c;
}

static char *value(struct cordon_session *s, const char *code)
{
	struct cordon_result *r = run(s, code);

	if (!cordon_result_success(r))
		test_fail(__FILE__, __LINE__, "%s: %s", code, cordon_result_json(r));
	char *copy = str_dup(cordon_result_value_json(r));
	cordon_result_free(r);
	return copy;
}

/* A sandbox of Python waits for the template, which is then there for that of the shell. */
static struct cordon_session *open_shell(const char *set)
{
	needs(access("/usr/bin/python3", X_OK) == 0, "python3");
	cordon_session_close(open_languages("python", languages, new_policy(set)));
	return open_languages("sh", languages, new_policy(set));
}

/* Sends the signal to every process of the sandbox that runs Python. */
static void signal_python(struct cordon_session *s, const char *name)
{
	cleanup_free char *code = str_printf(
		"n=0; for p in /proc/[0-9]*; do case $(tr '\\0' ' ' <$p/cmdline) in "
		"*cordon_guest.py*) kill -%s ${p#/proc/} && n=$((n+1)); q=${p#/proc/};; "
		"esac; done; test $n = 1 && while grep -q 'State:.[RSD]' /proc/$q/status "
		"2>/dev/null; do :; done; test $n = 1",
		name);

	must(s, code);
}

TEST(places_of_one_policy_are_forked_from_one_template)
{
	needs(access("/usr/bin/python3", X_OK) == 0, "python3");
	struct cordon_session *a = open_languages("python", languages, new_policy(NULL)),
			      *b = open_languages("python", languages, new_policy(NULL));
	cleanup_free char *first = value(a, SEED), *second = value(b, SEED);

	ASSERT_STREQ(first, second);
	must(a, "open('/workspace/a', 'w').write('mine')");
	value_is(b, "str(__import__('os').path.exists('/workspace/a'))", "\"False\"");
	cordon_session_close(a);
	value_is(b, SEED, second);
	cordon_session_close(b);
}

TEST(python_waits_in_a_sandbox_of_a_shell)
{
	struct cordon_session *a = open_shell(NULL), *b = open_shell(NULL);

	must(a, "echo x >/workspace/f");
	cleanup_free char *first = value(context(a, NULL), SEED),
			  *second = value(context(b, NULL), SEED),
			  *other = value(context(a, "other"), SEED);
	ASSERT_STREQ(first, second);
	ASSERT(strcmp(first, other) != 0); /* only one waits */
	must(context(a, NULL), "x = 1");
	value_is(context(a, "other"), "str('x' in globals())", "\"False\"");
	value_is(context(a, NULL), "open('/workspace/f').read()", "\"x\\n\"");
	cordon_session_close(a);
	cordon_session_close(b);
}

TEST(what_waits_has_the_environment_of_its_context)
{
	struct cordon_session *s = open_shell(NULL);

	ASSERT_EQ(cordon_session_setenv(s, "GREETING", "hello", NULL), 0);
	value_is(context(s, NULL), "__import__('os').environ['GREETING']", "\"hello\"");
	value_is(context(s, NULL), "__import__('os').getcwd()", "\"/home/user\"");
	cordon_session_close(s);
}

/* Guests of one place may end each other: the context then gets an interpreter of its own. */
TEST(what_waited_may_have_been_killed)
{
	struct cordon_session *s = open_shell(NULL);

	signal_python(s, "KILL");
	struct cordon_result *r = run(context(s, NULL), "1 + 1");
	ASSERT(cordon_result_success(r));
	ASSERT(!strstr(cordon_result_json(r), "\"restarted\": true"));
	cordon_result_free(r);
	cordon_session_close(s);
}

TEST(what_waited_may_have_been_stopped)
{
	struct cordon_session *s = open_shell(NULL);

	signal_python(s, "STOP");
	value_is(context(s, NULL), "str(1 + 1)", "\"2\"");
	cordon_session_close(s);
}

/* Its memory is part of the sandbox's, and it leaves the code as many processes as before. */
TEST(what_waits_is_within_the_limits)
{
	struct cordon_session *s = open_shell("processes=8");

	must(s, "for i in 1 2 3 4 5; do sleep 60 & done; jobs -p | wc -l >/workspace/n");
	value_is(context(s, NULL), "open('/workspace/n').read().strip()", "\"5\"");
	struct cordon_result *r = run(context(s, NULL), "b = bytearray(1 << 30)");
	ASSERT(!cordon_result_success(r));
	cordon_result_free(r);
	cordon_session_close(s);
}

TEST(a_cold_sandbox_has_nothing_that_waits)
{
	struct cordon_policy *p = new_policy(NULL);
	struct cordon_session *s[2] = { NULL };
	char *seeds[2];

	needs(access("/usr/bin/python3", X_OK) == 0, "python3");
	for (int i = 0; i < 2; i++) {
		struct cordon_session_options o = {
			.guest = "sh", .policy = p, .languages = languages, .cold = true
		};

		ASSERT_EQ(cordon_session_open(&o, &s[i], NULL), 0);
		seeds[i] = value(context(s[i], NULL), SEED);
	}
	ASSERT(strcmp(seeds[0], seeds[1]) != 0);
	for (int i = 0; i < 2; i++) {
		free(seeds[i]);
		cordon_session_close(s[i]);
	}
	cordon_policy_free(p);
}

TEST(nothing_of_what_waits_is_left)
{
	struct belongings before = count_belongings();

	for (int i = 0; i < 20; i++) {
		struct cordon_session *s = open_shell(NULL);

		if (i % 2)
			value_is(context(s, NULL), "str(1 + 1)", "\"2\"");
		cordon_session_close(s);
	}
	must_be_as_before(&before);
}
