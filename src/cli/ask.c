/* cli/ask.c - see ask.h. */
#include "cli/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/suggest.h"
#include "policy/public.h"
#include "policy/suggestion.h"

enum { MAX_RESULT = 64 << 20, ANSWER_BYTES = 64, LINE_BYTES = 64 << 10 };

enum answer { ANSWER_NO, ANSWER_ONCE, ANSWER_FILE, ANSWER_NEVER };

int ask_refuse(const struct cli *c, bool is_notebook)
{
	static const char *const others[] = { "json", "tty" };

	if (!cli_has(c, "ask"))
		return 0;
	if (is_notebook)
		return cli_usage(c, "--ask is not for notebooks");
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (cli_has(c, others[i]))
			return cli_usage(c, "--ask and --%s exclude each other", others[i]);
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return cli_usage(c,
				 "--ask needs a terminal to ask on: standard %s is none. Without "
				 "one, run with --json and use cordon policy suggest",
				 isatty(STDIN_FILENO) ? "error" : "input");
	return 0;
}

/* "commands+=git, timeout_ms=60000" */
static char *assignments_of(const struct suggestion *s)
{
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, LINE_BYTES);
	for (size_t i = 0; i < json_array_size(s->changes); i++) {
		const json_t *list = json_object_get(json_array_get(s->changes, i), "assignments");
		for (size_t k = 0; k < json_array_size(list); k++)
			(void)buf_printf(&b, "%s%s", b.len ? ", " : "",
					 json_string_value(json_array_get(list, k)));
	}
	return str_dup(buf_text(&b));
}

/* What the policy would be with these denials lifted. s is zeroed. */
static int suggest(struct suggestion *s, const struct cordon_policy *policy, json_t *denials,
		   struct cordon_error **reterr)
{
	cleanup_json json_t *result = json_pack("{s:O}", "denials", denials);
	int r = result ? suggestion_init(s, &policy->p, reterr)
		       : err_set(reterr, CORDON_NOMEM, "out of memory");

	return r < 0 ? r : suggestion_add(s, result, reterr);
}

static void adopt(struct cordon_policy *policy, struct suggestion *s)
{
	struct policy old = policy->p;

	policy->p = s->wanted;
	s->wanted = old;
}

/* A remembered answer is taken by the same rules as a new one: the assignment is checked, and only
 * makes the policy looser. */
static int use_earlier(struct ask *a, struct cordon_policy *policy, struct cordon_error **reterr)
{
	cleanup_suggestion struct suggestion s = { 0 };

	if (a->asked.is_outdated)
		cli_error(a->c, "this file has changed: what was answered for it is forgotten");
	if (json_array_size(a->asked.allowed) == 0)
		return 0;
	int r = suggest(&s, policy, a->asked.allowed, reterr);
	if (r < 0)
		return r;
	cleanup_free char *what = assignments_of(&s);
	if (!what)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (*what)
		cli_error(a->c, "you allowed this for this file: %s (kept in %s/%s)", what,
			  a->asked.folder, a->asked.name);
	adopt(policy, &s);
	return 0;
}

int ask_init(struct ask *ret, const struct cli *c, const char *file, const struct buf *code,
	     struct cordon_policy *policy, struct cordon_error **reterr)
{
	cleanup_ask struct ask a = { .c = c, .has_file = file, .refused = json_array() };
	int r = a.refused ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");

	if (r == 0 && file)
		r = asked_load(&a.asked, file, buf_text(code), code->len, reterr);
	if (r == 0 && file)
		r = use_earlier(&a, policy, reterr);
	if (r == 0) {
		*ret = a;
		a = (struct ask){ 0 };
	}
	return r;
}

void ask_done(struct ask *a)
{
	asked_done(&a->asked);
	json_decref(a->refused);
	a->refused = NULL;
}

/* What the code printed may have hidden all that follows: an unfinished sequence, colours, other
 * characters. And what was typed before the question, by the user or by the terminal itself in
 * reply to the code, is no answer to it. */
static void clear_terminal(void)
{
	const char *term = getenv("TERM");

	if (term && *term && !str_eq(term, "dumb"))
		fputs("\030\033\\\033[!p\033[0m\017", stderr);
	fflush(stderr);
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
}

/* One line without its end; false: there is none. Of a long one the rest is dropped. */
static bool read_line(char ret[ANSWER_BYTES])
{
	size_t len = 0;
	char byte;

	for (;;) {
		if (read(STDIN_FILENO, &byte, 1) != 1)
			return false;
		if (byte == '\n')
			break;
		if (len < ANSWER_BYTES - 1)
			ret[len++] = byte;
	}
	ret[len] = '\0';
	return true;
}

static bool read_answer(struct ask *a, enum answer *ret)
{
	static const struct {
		const char *letter, *word;
		enum answer answer;
	} table[] = { { "o", "once", ANSWER_ONCE },
		      { "f", "file", ANSWER_FILE },
		      { "v", "never", ANSWER_NEVER },
		      { "n", "no", ANSWER_NO },
		      { "", "", ANSWER_NO } };
	char line[ANSWER_BYTES] = "";

	if (!read_line(line)) {
		(void)fputc('\n', stderr);
		a->has_ended = true;
		*ret = ANSWER_NO;
		return true;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (str_eq(line, table[i].letter) || str_eq(line, table[i].word)) {
			*ret = table[i].answer;
			return a->has_file || *ret == ANSWER_NO || *ret == ANSWER_ONCE;
		}
	return false;
}

static enum answer question(struct ask *a, const json_t *change)
{
	enum answer answer = ANSWER_NO;

	clear_terminal();
	suggest_print_change(a->c, stderr, change);
	do {
		fprintf(stderr, "%sAllow it?%s %s ", cli_style_on(a->c, stderr, STYLE_BOLD),
			cli_style_on(a->c, stderr, STYLE_PLAIN),
			a->has_file ? "[o]nce, for this [f]ile, ne[v]er for this file, [N]o:"
				    : "[o]nce, [N]o:");
		fflush(stderr);
	} while (!read_answer(a, &answer));
	return answer;
}

static void keep(struct ask *a, json_t *list, const json_t *denial)
{
	cleanup_error struct cordon_error *e = NULL;

	if (asked_add(list, denial) < 0) {
		cli_error(a->c, "out of memory: the answer is not kept");
		return;
	}
	if (list == a->refused)
		return;
	if (asked_save(&a->asked, &e) < 0) {
		cleanup_free char *why = err_text(e);
		cli_error(a->c, "the answer is not kept: %s", why ? why : "out of memory");
	}
}

/* True: the policy has changed. */
static bool take_answer(struct ask *a, enum answer answer, const json_t *denial)
{
	switch (answer) {
	case ANSWER_FILE:
		keep(a, a->asked.allowed, denial);
		return true;
	case ANSWER_ONCE:
		return true;
	case ANSWER_NEVER:
		keep(a, a->asked.never, denial);
		return false;
	case ANSWER_NO:
		keep(a, a->refused, denial);
	}
	return false;
}

/* Asks about one denial; denial is our own copy, which suggestion.c has cut and cleaned. */
static bool ask_one(struct ask *a, const json_t *denial, struct cordon_policy *policy)
{
	cleanup_json json_t *list = json_pack("[O]", denial);
	cleanup_suggestion struct suggestion s = { 0 };
	cleanup_json json_t *all =
		list && suggest(&s, policy, list, NULL) == 0 ? suggestion_json(&s) : NULL;
	const json_t *change = json_array_get(json_object_get(all, "changes"), 0);

	/* An earlier answer may have allowed this, too. */
	if (!change)
		return false;
	if (!take_answer(a, question(a, change), denial))
		return false;
	adopt(policy, &s);
	return true;
}

/* All that a change of the policy lifts, as clean copies. NULL: nothing. */
static json_t *liftable(struct cordon_result *r, const struct cordon_policy *policy)
{
	const char *text = cordon_result_json(r);
	cleanup_json json_t *result = NULL, *all = json_array();
	cleanup_suggestion struct suggestion s = { 0 };
	json_t *denials;

	if (!text || json_parse(text, strlen(text), MAX_RESULT, &result, NULL) < 0)
		return NULL;
	denials = json_object_get(result, "denials");
	if (!denials || suggest(&s, policy, denials, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < json_array_size(s.changes); i++)
		if (json_array_extend(all,
				      json_object_get(json_array_get(s.changes, i), "denials")) < 0)
			return NULL;
	return TAKE_PTR(all);
}

bool ask_about(struct ask *a, struct cordon_result *r, struct cordon_policy *policy)
{
	cleanup_json json_t *denials = liftable(r, policy);
	bool has_changed = false;

	for (size_t i = 0; !a->has_ended && i < json_array_size(denials); i++) {
		const json_t *denial = json_array_get(denials, i);
		if (!asked_has(a->asked.never, denial) && !asked_has(a->refused, denial) &&
		    ask_one(a, denial, policy))
			has_changed = true;
	}
	/* With the end of input, what was answered before it holds. */
	if (has_changed)
		cli_error(a->c, "running it again with what you allowed");
	return has_changed;
}
