/* cli/profile_option.c - see profile_option.h. */
#include "cli/profile_option.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/choice.h"
#include "cli/own_file.h"
#include "policy/profile.h"

#define ENDING ".json"
#define FOLDER "profiles"

enum { OWN_MAX = 1000, LINE_BYTES = 4096 };

static int nomem(struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* One file name, and nothing that a terminal or a shell reads differently. */
static bool is_name(const char *name, size_t len)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.-";

	return len > 0 && strspn(name, plain) >= len && name[0] != '.' && name[0] != '-';
}

/* *ret stays NULL if the user has no such profile. */
static int load_own(const char *folder, const char *name, char **ret, struct cordon_error **reterr)
{
	cleanup_free char *file = str_printf("%s" ENDING, name);

	return file ? own_file_load(folder, file, false, ret, reterr) : nomem(reterr);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in the user's folder, without those of the program; then those. */
static int list_names(const char *folder, struct strlist *ret)
{
	DIR *d = folder ? opendir(folder) : NULL;
	const struct dirent *e;
	int r = 0;

	while (r == 0 && d && ret->count < OWN_MAX && (e = readdir(d))) {
		size_t len = strlen(e->d_name), end = strlen(ENDING);
		if (!str_ends(e->d_name, ENDING) || !is_name(e->d_name, len - end))
			continue;
		cleanup_free char *name = str_ndup(e->d_name, len - end);
		r = name ? strlist_add(ret, name) : -CORDON_NOMEM;
	}
	if (d)
		closedir(d);
	for (size_t i = 0; r == 0 && i < profile_count; i++)
		if (!strlist_has(ret, profile_table[i].name))
			r = strlist_add(ret, profile_table[i].name);
	if (r == 0 && ret->count > 1) /* items is NULL if there are none */
		qsort(ret->items, ret->count, sizeof(*ret->items), by_name);
	return r;
}

static int refuse(const char *name, const char *folder, struct cordon_error **reterr)
{
	cleanup_strlist struct strlist names = { 0 };
	cleanup_buf struct buf text = { 0 };

	buf_init(&text, LINE_BYTES);
	if (list_names(folder, &names) < 0)
		return nomem(reterr);
	for (size_t i = 0; i < names.count; i++)
		if (buf_printf(&text, "%s%s", i ? ", " : "", names.items[i]) < 0)
			break;
	return err_set(reterr, CORDON_INVALID,
		       "there is no profile '%.80s'. Profiles: %s. Own ones are %s/NAME" ENDING,
		       name, buf_text(&text), folder ? folder : "~/.config/cordon/profiles");
}

int profile_load(const char *name, char **ret, struct cordon_error **reterr)
{
	cleanup_free char *folder = own_file_folder(FOLDER), *text = NULL;
	int r = folder && is_name(name, strlen(name)) ? load_own(folder, name, &text, reterr) : 0;

	if (r < 0)
		return err_wrap(reterr, r, "profile '%s'", name);
	const struct profile *known = profile_find(name);
	if (!text && !known)
		return refuse(name, folder, reterr);
	if (!text && !(text = str_dup((const char *)known->text)))
		return nomem(reterr);
	*ret = TAKE_PTR(text);
	return 0;
}

/* What an own profile does: the first line of its explanation, or why it is refused. */
static char *describe_own(const char *text, const struct cordon_error *refused)
{
	cleanup_choice struct cordon_policy *p = NULL;
	cleanup_error struct cordon_error *e = NULL;

	if (!refused && cordon_policy_new(NULL, &p, &e) == 0 &&
	    cordon_policy_apply_json(p, text, &e) == 0 && cordon_policy_check(p, &e) == 0) {
		char *line = cordon_policy_explain(p);
		if (line)
			line[strcspn(line, "\n")] = '\0';
		return line;
	}
	cleanup_free char *why = err_text(refused ? refused : e);
	return str_printf("refused: %s", why ? why : "out of memory");
}

static json_t *describe(const char *folder, const char *name)
{
	cleanup_free char *text = NULL;
	cleanup_error struct cordon_error *e = NULL;
	const struct profile *known = profile_find(name);
	int r = folder ? load_own(folder, name, &text, &e) : 0;

	if (r == 0 && !text && known)
		return json_pack("{s:s, s:s, s:n}", "name", name, "summary", known->summary,
				 "file");
	cleanup_free char *summary = describe_own(text ? text : "", e);
	cleanup_free char *path = str_printf("%s/%s" ENDING, folder ? folder : "", name);
	return json_pack("{s:s, s:o, s:o}", "name", name, "summary",
			 json_string_lossy(summary ? summary : "", summary ? strlen(summary) : 0),
			 "file", json_string_lossy(path ? path : "", path ? strlen(path) : 0));
}

static void print_line(const struct cli *c, const json_t *profile)
{
	cleanup_buf struct buf text = { 0 };

	buf_init(&text, SIZE_MAX);
	(void)buf_add_printable(&text, json_string_value(json_object_get(profile, "summary")));
	printf("%s%-14s%s %s%s\n", cli_style(c, STYLE_BOLD),
	       json_string_value(json_object_get(profile, "name")), cli_style(c, STYLE_PLAIN),
	       json_is_null(json_object_get(profile, "file")) ? "" : "(own) ", buf_text(&text));
}

int profile_print_all(const struct cli *c)
{
	cleanup_free char *folder = own_file_folder(FOLDER);
	cleanup_strlist struct strlist names = { 0 };
	cleanup_json json_t *all = json_array();
	cleanup_free char *text = NULL;
	int r = list_names(folder, &names);

	for (size_t i = 0; r == 0 && i < names.count; i++)
		r = json_array_append_new(all, describe(folder, names.items[i]));
	if (r == 0 && cli_has(c, "json"))
		r = (text = json_text(all, NULL)) ? 0 : -CORDON_NOMEM;
	if (r != 0) {
		cli_error(c, "out of memory");
		return cordon_code_exit_status(CORDON_NOMEM);
	}
	if (text)
		puts(text);
	for (size_t i = 0; !text && i < json_array_size(all); i++)
		print_line(c, json_array_get(all, i));
	return 0;
}
