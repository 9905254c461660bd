/* cli/shell_complete.c - Tab in `cordon shell`: commands of the shell, names that the guest knows,
 * and files of the session. */
#include <string.h>

#include "base/buf.h"
#include "cli/shell_state.h"

enum { MATCHES_MAX = 500 };

/* What goes into the line must be text that can be shown and typed. */
static bool is_printable(const char *text)
{
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, 1 << 16);
	return buf_add_printable(&b, text) == 0 && str_eq(buf_text(&b), text);
}

static void add(struct lineedit_matches *m, const char *text)
{
	if (m->items.count < MATCHES_MAX && is_printable(text))
		(void)strlist_add(&m->items, text);
}

static void add_commands(const char *word, struct lineedit_matches *ret)
{
	ret->len = strlen(word);
	for (size_t i = 0; shell_command_names[i]; i++)
		if (str_starts(shell_command_names[i], word))
			add(ret, shell_command_names[i]);
}

/* ---- names */

static void add_names(struct shell *sh, const char *text, size_t len, struct lineedit_matches *ret)
{
	cleanup_json json_t *j = shell_inspect(sh, CORDON_COMPLETE, text, len);
	json_t *m;
	size_t i;

	if (!j)
		return;
	ret->len = json_string_length(json_object_get(j, "token"));
	json_array_foreach(json_object_get(j, "matches"), i, m) add(ret, json_string_value(m));
}

/* ---- files */

struct search {
	const char *base, *head; /* what the name begins with; what stands before it */
	char quote;              /* the word is in this; 0: a shell's plain word */
	struct lineedit_matches *ret;
};

static int add_file(const char *name, const struct cordon_file_info *info, void *arg)
{
	struct search *s = arg;
	cleanup_buf struct buf b = { 0 };

	if (!str_starts(name, s->base) || (name[0] == '.' && s->base[0] != '.'))
		return 0;
	if (s->quote ? strchr(name, s->quote) || strchr(name, '\\') : strpbrk(name, "'\"\\\n") != 0)
		return 0; /* it would have to be written in another way */
	buf_init(&b, 1 << 16);
	(void)buf_add_str(&b, s->head);
	for (const char *p = name; *p; p++) {
		if (!s->quote && strchr(" \t$&|;()<>*?[]{}!#`~", *p))
			(void)buf_add_char(&b, '\\');
		(void)buf_add_char(&b, *p);
	}
	if (info->type == CORDON_DIRECTORY)
		(void)buf_add_char(&b, '/');
	add(s->ret, buf_text(&b));
	return 0;
}

static void add_files(struct shell *sh, const char *word, char quote, struct lineedit_matches *ret)
{
	const char *slash = strrchr(word, '/');
	cleanup_free char *head = str_ndup(word, slash ? (size_t)(slash + 1 - word) : 0);
	cleanup_free char *here = shell_directory(sh);
	struct search s = { .base = slash ? slash + 1 : word, .head = head, .quote = quote };

	if (!head || !here)
		return;
	bool is_home = str_starts(head, "~/");
	cleanup_free char *path = head[0] == '/' ? str_dup(head)
				  : is_home      ? str_printf("/home/user/%s", head + 2)
						 : str_printf("%s/%s", here, head);
	ret->len = strlen(word);
	s.ret = ret;
	if (path)
		(void)cordon_file_list(sh->session, path, add_file, &s, NULL);
}

/* ---- where the cursor is */

/* The quote that is open at the end of the line; 0: none. */
static char open_quote(const char *line, size_t len, size_t *ret_start)
{
	char quote = 0;

	for (size_t i = 0; i < len; i++) {
		if (line[i] == '\\') {
			i++;
		} else if (quote ? line[i] == quote : strchr("'\"`", line[i]) != NULL) {
			quote = quote ? 0 : line[i];
			*ret_start = i + 1;
		}
	}
	return quote;
}

/* Where the shell word at the end of the line begins, and whether a command's name belongs there.
 */
static size_t shell_word(const char *line, size_t len, bool *ret_is_command)
{
	size_t at = len, before;

	while (at > 0 && !strchr(" \t;&|()<>=\"'`", line[at - 1]))
		at--;
	before = at;
	while (before > 0 && strchr(" \t", line[before - 1]))
		before--;
	*ret_is_command = before == 0 || strchr(";&|(`", line[before - 1]);
	return at;
}

void shell_complete_at(const char *text, size_t cursor, struct lineedit_matches *ret, void *arg)
{
	struct shell *sh = arg;
	cleanup_free char *until = str_ndup(text, cursor);
	bool is_shell = str_eq(sh->guest, "sh") || str_eq(sh->guest, "pod"), is_command = false;
	size_t start = 0;

	if (!until)
		return;
	if (shell_command_is(text) && !strchr(until, ' ')) {
		add_commands(until, ret);
		return;
	}
	const char *newline = strrchr(until, '\n'), *line = newline ? newline + 1 : until;
	size_t len = strlen(line);
	char quote = open_quote(line, len, &start);
	if (shell_command_is(text))
		add_files(sh, line + shell_word(line, len, &is_command), '"', ret);
	else if (quote)
		add_files(sh, line + start, quote, ret);
	else if (!is_shell)
		add_names(sh, until, cursor, ret);
	else {
		const char *word = line + shell_word(line, len, &is_command);
		if (word[0] == '$' || (is_command && !strchr(word, '/')))
			add_names(sh, until, cursor, ret);
		if (ret->items.count == 0)
			add_files(sh, word, 0, ret);
	}
}
