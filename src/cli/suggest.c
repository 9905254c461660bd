/* cli/suggest.c - see suggest.h. */
#include "cli/suggest.h"

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/choice.h"
#include "cli/policy_file.h"
#include "policy/public.h"
#include "policy/suggestion.h"

enum { RESULTS_MAX = 32 << 20 };

/* One result on each line. */
static int add_lines(struct suggestion *s, const char *text, struct cordon_error **reterr)
{
	int r = 0;

	for (size_t number = 1; r == 0 && *text; number++) {
		size_t len = strcspn(text, "\n");
		cleanup_json json_t *j = NULL;

		if (strspn(text, " \t\r") < len)
			r = json_parse(text, len, 0, &j, reterr);
		if (r == 0 && j)
			r = suggestion_add(s, j, reterr);
		if (r < 0)
			r = err_wrap(reterr, r, "line %zu", number);
		text += len + (text[len] == '\n');
	}
	return r;
}

static int add_file(struct suggestion *s, const char *path, struct cordon_error **reterr)
{
	cleanup_buf struct buf text = { 0 };
	cleanup_json json_t *j = NULL;
	int r = file_load(path, RESULTS_MAX, &text, reterr);

	if (r < 0)
		return r;
	if (json_parse(buf_text(&text), text.len, 0, &j, NULL) == 0)
		r = suggestion_add(s, j, reterr);
	else
		r = add_lines(s, buf_text(&text), reterr);
	return r < 0 ? err_wrap(reterr, r, "result '%s'", path) : 0;
}

/* The code that was denied something chose some of these words. */
static void print_safe(FILE *f, const char *text)
{
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, SIZE_MAX);
	(void)buf_add_printable(&b, text ? text : "?");
	fputs(buf_text(&b), f);
}

static void print_denial(FILE *f, const json_t *d, bool has_remedy)
{
	const char *target = json_string_value(json_object_get(d, "target"));
	json_int_t count = json_integer_value(json_object_get(d, "count"));

	fputs("    denied: ", f);
	print_safe(f, json_string_value(json_object_get(d, "operation")));
	if (target && *target) {
		(void)fputc(' ', f);
		print_safe(f, target);
	}
	if (count > 1)
		fprintf(f, " (%lld times)", (long long)count);
	if (has_remedy) {
		fputs("; remedy: ", f);
		print_safe(f, json_string_value(json_object_get(d, "remedy")));
	}
	fputs(json_is_true(json_object_get(d, "claimed"))
		      ? "; claimed: only the code itself says so\n"
		      : "\n",
	      f);
}

static void print_list(const struct cli *c, const char *title, const json_t *denials)
{
	if (json_array_size(denials) == 0)
		return;
	printf("%s%s%s\n", cli_style(c, STYLE_BOLD), title, cli_style(c, STYLE_PLAIN));
	for (size_t i = 0; i < json_array_size(denials); i++)
		print_denial(stdout, json_array_get(denials, i), true);
}

void suggest_print_change(const struct cli *c, FILE *f, const json_t *change)
{
	const json_t *denials = json_object_get(change, "denials");

	fputs(cli_style_on(c, f, STYLE_YELLOW), f);
	print_safe(f, json_string_value(json_object_get(change, "diff")));
	fprintf(f, "%s\n    ", cli_style_on(c, f, STYLE_PLAIN));
	print_safe(f, json_string_value(json_object_get(change, "means")));
	(void)fputc('\n', f);
	for (size_t i = 0; i < json_array_size(denials); i++)
		print_denial(f, json_array_get(denials, i), false);
}

/* Assignments have no character that ends the quotes (policy/suggestion.c). */
static void print_options(const json_t *changes)
{
	fputs("As options:", stdout);
	for (size_t i = 0; i < json_array_size(changes); i++) {
		const json_t *list = json_object_get(json_array_get(changes, i), "assignments");
		for (size_t k = 0; k < json_array_size(list); k++)
			printf(" --set '%s'", json_string_value(json_array_get(list, k)));
	}
	(void)putchar('\n');
}

static void print_text(const struct cli *c, const struct suggestion *s, const json_t *all)
{
	const json_t *changes = json_object_get(all, "changes");

	if (s->count == 0)
		puts("Nothing was denied.");
	for (size_t i = 0; i < json_array_size(changes); i++)
		suggest_print_change(c, stdout, json_array_get(changes, i));
	if (json_array_size(changes))
		print_options(changes);
	print_list(c, "To decide yourself:", s->by_hand);
	print_list(c, "No policy allows this:", s->impossible);
	print_list(c, "This policy allows it already (was it another one that denied it?):",
		   s->allowed);
}

static int print(const struct cli *c, const struct suggestion *s, struct cordon_error **reterr)
{
	cleanup_json json_t *all = suggestion_json(s);
	cleanup_free char *text = all && cli_has(c, "json") ? json_text(all, NULL) : NULL;

	if (!all || (cli_has(c, "json") && !text))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (text)
		puts(text);
	else
		print_text(c, s, all);
	return 0;
}

/* Applied to the caller's policy, which is written then. */
static int save(const struct cli *c, struct suggestion *s, struct cordon_policy *p,
		struct cordon_error **reterr)
{
	const char *path = cli_value(c, "output");
	struct policy base = p->p;

	if (!path)
		return 0;
	p->p = s->wanted;
	s->wanted = base;
	return policy_file_save(p, path, cli_has(c, "force"), reterr);
}

int suggest_run(const struct cli *c, char **paths)
{
	cleanup_choice struct cordon_policy *p = NULL;
	cleanup_error struct cordon_error *e = NULL;
	cleanup_suggestion struct suggestion s = { 0 };

	if (choice_policy(c, NULL, &p, &e) < 0)
		return choice_fail(c, e);
	int r = suggestion_init(&s, &p->p, &e);
	for (size_t i = 0; r == 0 && paths[i]; i++)
		r = add_file(&s, paths[i], &e);
	if (r < 0)
		return choice_fail(c, e);
	if (print(c, &s, &e) < 0 || save(c, &s, p, &e) < 0)
		return cli_fail(c, e);
	return 0;
}
