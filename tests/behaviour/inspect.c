/* tests/behaviour/inspect.c - what a prompt asks about code before it runs, in every guest. */
#include "dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cordon/command.h"
#include "harness/test.h"

enum { CODES = 5, ROUNDS = 200 };

static const struct {
	const char *complete[CODES], *incomplete[CODES], *invalid;
	const char *set, *word, *match; /* a name is set, and continues the word */
	const char *moves;              /* a statement that would be seen if it ran */
} table[DIALECTS] = {
	{ { "1 + 1", "if x:\n    y\n", "await f()", "x = '''a\nb'''", "# nothing" },
	  { "x = '''a", "@f", "def f():", "f(1,", "x = 1 + \\" },
	  "1 +* 2",
	  "some_name = 1; class_ = type('C', (), {'attribute': 1})",
	  "class_.attr",
	  "class_.attribute",
	  "x = 99" },
	{ { "1 + 1", "f <- function(x) {\n x\n}", "x |> f()", "'a\nb'", "# nothing" },
	  { "x <- 'a", "x |>", "f <- function(x) {", "f(1,", "x +" },
	  "1 + * 2",
	  "some_name <- list(attribute = 1)",
	  "some_name$attr",
	  "some_name$attribute",
	  "x <- 99" },
	{ { "1 + 1", "function f() {\n}", "await f()", "`a\nb`", "let y = await f()" },
	  { "`a", "x =>", "function f() {", "f(1", "/* a" },
	  "1 +* 2",
	  "let some_name = { attribute: 1 }",
	  "some_name.attr",
	  "some_name.attribute",
	  "x = 99" },
	{ { "echo a", "for i in 1; do\necho\ndone", "cat <<E\nx\nE", "echo 'a\nb'", "# nothing" },
	  { "echo 'a", "for i in 1 2; do", "cat <<E", "a |", "echo a \\" },
	  "echo )",
	  "some_function() { :; }",
	  "some_f",
	  "some_function",
	  "x=99" },
};

static char *ask(struct cordon_session *s, enum cordon_question q, const char *code)
{
	struct cordon_inspect_options o = { .question = q, .code = code, .code_len = strlen(code) };
	struct cordon_error *e = NULL;
	char *json = NULL;

	if (cordon_session_inspect(s, &o, &json, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", code, cordon_error_message(e));
	return json;
}

static void must_say(struct cordon_session *s, enum cordon_question q, const char *code,
		     const char *wanted)
{
	char *json = ask(s, q, code);

	if (!json || !strstr(json, wanted))
		test_fail(__FILE__, __LINE__, "%s: %s", code, json ? json : "no answer");
	free(json);
}

TEST(each_guest_tells_whether_code_is_complete)
{
	EACH_DIALECT(d)
	{
		size_t n = (size_t)(d - dialects);
		struct cordon_session *s = open_with(d->guest, NULL);

		for (int i = 0; i < CODES; i++) {
			must_say(s, CORDON_IS_COMPLETE, table[n].complete[i], "\"complete\"");
			must_say(s, CORDON_IS_COMPLETE, table[n].incomplete[i], "\"incomplete\"");
		}
		must_say(s, CORDON_IS_COMPLETE, table[n].invalid, "\"invalid\"");
		cordon_session_close(s);
	}
}

TEST(each_guest_tells_the_names_it_has)
{
	EACH_DIALECT(d)
	{
		size_t n = (size_t)(d - dialects);
		struct cordon_session *s = open_with(d->guest, NULL);
		char wanted[64];

		must(s, table[n].set);
		snprintf(wanted, sizeof(wanted), "\"%s\"", table[n].match);
		must_say(s, CORDON_COMPLETE, table[n].word, wanted);
		must_say(s, CORDON_COMPLETE, "no_such_name_", "\"matches\":[]");
		must_say(s, CORDON_COMPLETE, "", "\"matches\":[]");
		cordon_session_close(s);
	}
}

/* Nothing runs, nothing is counted, and what the code sees of the last execution stays. */
TEST(a_question_leaves_the_session_as_it_is)
{
	EACH_DIALECT(d)
	{
		size_t n = (size_t)(d - dialects);
		struct cordon_session *s = open_with(d->guest, "max_executions=3");

		must(s, d->set_x);
		for (int i = 0; i < ROUNDS; i++) {
			free(ask(s, CORDON_IS_COMPLETE, table[n].moves));
			if (i % 4 == 0)
				free(ask(s, CORDON_COMPLETE, table[n].word));
		}
		must_be(s, d, d->get_x, d->x_value);
		char *about = cordon_session_describe(s);
		ASSERT(strstr(about, "\"executions\":2,") != NULL);
		free(about);
		cordon_session_close(s);
	}
}

TEST(a_shells_status_survives_a_question)
{
	struct cordon_session *s = open_with("sh", NULL);
	struct cordon_result *r = run(s, "false");

	cordon_result_free(r);
	free(ask(s, CORDON_COMPLETE, "ec"));
	free(ask(s, CORDON_IS_COMPLETE, "ec"));
	r = run(s, "echo $?");
	ASSERT_STREQ(cordon_result_stdout(r, NULL), "1\n");
	cordon_result_free(r);
	r = run(s, "");
	ASSERT(cordon_result_success(r));
	cordon_result_free(r);
	cordon_session_close(s);
}

/* What the guest answers is checked: it may say anything. */
TEST(a_forged_answer_is_dropped)
{
	struct cordon_session *s;
	struct cordon_inspect_options o = { .question = CORDON_IS_COMPLETE,
					    .code = "a\0b",
					    .code_len = 3 };
	char *json = NULL;

	if (!dialect_is_here(&dialects[0]))
		return;
	s = open_with("python", NULL);
	must(s, "import codeop, inspect, keyword\n"
		"keyword.kwlist.extend(['zz' + 'x' * 600, 'zz\\0', 'zzok'])\n"
		"codeop.CommandCompiler.__call__ = None");
	must_say(s, CORDON_IS_COMPLETE, "1", "\"unknown\"");
	must_say(s, CORDON_COMPLETE, "zz", "\"matches\":[\"zzok\"]");
	ASSERT_EQ(cordon_session_inspect(s, &o, &json, NULL), -CORDON_INVALID);
	o.question = (enum cordon_question)7;
	o.code_len = 1;
	ASSERT_EQ(cordon_session_inspect(s, &o, &json, NULL), -CORDON_INVALID);
	cordon_session_close(s);
}

/* Its interpreter is started for the question. */
TEST(a_context_answers_before_it_has_run)
{
	static const char *const languages[] = { "python", "sh", NULL };
	struct cordon_session_options o = { .guest = "python", .languages = languages };
	struct cordon_session *s = NULL, *sh = NULL;

	if (!dialect_is_here(&dialects[0]))
		return;
	ASSERT_EQ(cordon_session_open(&o, &s, NULL), 0);
	ASSERT_EQ(cordon_session_context(s, "sh", NULL, &sh, NULL), 0);
	must_say(sh, CORDON_IS_COMPLETE, "for i in 1; do", "\"incomplete\"");
	must_say(s, CORDON_IS_COMPLETE, "for i in 1; do", "\"invalid\"");
	cordon_session_close(s);
}
