/* cli/project.c - see project.h. */
#include "cli/project.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

static int parse(const char *text, json_t **ret, struct cordon_error **reterr)
{
	return json_parse(text, strlen(text), 0, ret, reterr);
}

/* Paths come from the guest, so control characters must not reach a terminal. */
static void print_path(const char *path)
{
	for (; path && *path; path++)
		fputc((unsigned char)*path < 32 || *path == 127 ? '?' : *path, stderr);
}

static void print_changes(const struct cli *c, const json_t *changes)
{
	size_t i;
	json_t *o;

	json_array_foreach(changes, i, o)
	{
		const char *what = json_string_value(json_object_get(o, "change"));

		fprintf(stderr, "%s%-9s%s", cli_style_on(c, stderr, STYLE_YELLOW),
			what ? what : "?", cli_style_on(c, stderr, STYLE_PLAIN));
		print_path(json_string_value(json_object_get(o, "path")));
		json_t *added = json_object_get(o, "lines_added");
		if (json_is_integer(added))
			fprintf(stderr, "  +%lld -%lld lines", (long long)json_integer_value(added),
				(long long)json_integer_value(json_object_get(o, "lines_removed")));
		fputc('\n', stderr);
	}
	if (json_array_size(changes) == 0)
		fputs("nothing changed\n", stderr);
}

static int apply(const struct cli *c, struct cordon_project *p, struct cordon_error **reterr)
{
	cleanup_strlist struct strlist paths = { 0 };
	cleanup_free char *text = NULL;
	cleanup_json json_t *j = NULL;
	const char *path;
	size_t i;
	json_t *o;

	for (i = 0; (path = cli_value_at(c, "apply-path", i)); i++)
		if (strlist_add(&paths, path) < 0)
			return -CORDON_NOMEM;
	int r = cordon_project_apply(p, paths.count ? (const char *const *)paths.items : NULL,
				     paths.count, &text, reterr);
	if (r == 0)
		r = parse(text, &j, reterr);
	if (r < 0)
		return r;
	fprintf(stderr, "applied %zu\n", json_array_size(json_object_get(j, "applied")));
	json_array_foreach(json_object_get(j, "refused"), i, o)
	{
		fputs("refused  ", stderr);
		print_path(json_string_value(json_object_get(o, "path")));
		fprintf(stderr, ": %s\n", json_string_value(json_object_get(o, "reason")));
	}
	/* Some of the changes were not applied. */
	size_t refused = json_array_size(json_object_get(j, "refused"));
	return refused ? err_set(reterr, CORDON_STATE, "%zu change%s of the project %s not applied",
				 refused, refused == 1 ? "" : "s", refused == 1 ? "was" : "were")
		       : 0;
}

int project_review(const struct cli *c, struct cordon_project *p, struct cordon_error **reterr)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *j = NULL;
	int r = cordon_project_diff(p, &text, reterr);

	if (r == 0)
		r = parse(text, &j, reterr);
	if (r < 0)
		return r;
	print_changes(c, json_object_get(j, "changes"));
	if (cli_has(c, "apply") || cli_has(c, "apply-path"))
		return apply(c, p, reterr);
	return 0;
}
