/* cli/shell_command.c - commands of `cordon shell` itself: :help, :files, :policy, :reset, :quit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/shell_state.h"

enum { LIST_MAX = 1000 };

const char *const shell_command_names[] = { ":files", ":help", ":policy", ":quit", ":reset", NULL };

static void help(struct shell *sh, const char *rest)
{
	(void)rest;
	printf(":help         this text\n"
	       ":files [DIR]  the files of the session\n"
	       ":policy       what the code may do\n"
	       ":reset        start again: variables are gone, files stay\n"
	       ":quit         leave; so do ^D and %s\n\n"
	       "Enter runs the code, or begins another line if it is not complete yet. Alt-Enter\n"
	       "always begins another line. ^C stops the running code, or drops what was typed.\n"
	       "Tab completes names and files. Up and down bring back what was typed before, and\n"
	       "^R searches it.\n\n"
	       "Code has no standard input here: input(), readline() and read find its end. With\n"
	       "cordon run -it they ask you, and programs such as less have a terminal.\n",
	       !strcmp(sh->guest, "r")        ? "q()"
	       : !strcmp(sh->guest, "node")   ? ".exit"
	       : !strcmp(sh->guest, "python") ? "exit()"
					      : "exit");
}

struct listing {
	struct strlist rows;
	size_t more;
};

static int add_file(const char *name, const struct cordon_file_info *info, void *arg)
{
	struct listing *l = arg;
	cleanup_buf struct buf row = { 0 };

	buf_init(&row, 1 << 16);
	if (l->rows.count >= LIST_MAX) {
		l->more++;
		return 0;
	}
	(void)buf_add_printable(&row, name);
	if (info->type == CORDON_DIRECTORY)
		(void)buf_add_char(&row, '/');
	else if (info->type == CORDON_SYMLINK)
		(void)buf_add_char(&row, '@');
	else if (info->type == CORDON_FILE)
		(void)buf_printf(&row, "  %llu", (unsigned long long)info->size);
	(void)strlist_add(&l->rows, buf_text(&row));
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void files(struct shell *sh, const char *rest)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *here = shell_directory(sh);
	cleanup_free char *path = rest[0] == '/' || rest[0] == '~'
					  ? str_printf("%s%s", rest[0] == '~' ? "/home/user" : "",
						       rest + (rest[0] == '~'))
					  : str_printf("%s/%s", here ? here : "", rest);
	struct listing l = { 0 };

	if (!path || cordon_file_list(sh->session, path, add_file, &l, &e) < 0)
		cli_error(sh->c, "%s", e ? cordon_error_message(e) : "out of memory");
	if (l.rows.count > 0)
		qsort(l.rows.items, l.rows.count, sizeof(*l.rows.items), by_name);
	for (size_t i = 0; i < l.rows.count; i++)
		puts(l.rows.items[i]);
	if (l.more > 0)
		printf("and %zu more\n", l.more);
	strlist_done(&l.rows);
}

static void policy(struct shell *sh, const char *rest)
{
	cleanup_free char *text = cordon_policy_explain(sh->policy);

	(void)rest;
	(void)fputs(text ? text : "", stdout);
}

static void reset(struct shell *sh, const char *rest)
{
	cleanup_error struct cordon_error *e = NULL;

	(void)rest;
	if (cordon_session_restart(sh->session, &e) < 0)
		cli_error(sh->c, "%s", cordon_error_message(e));
	else
		shell_tell_restarted(sh, NULL);
}

static void quit(struct shell *sh, const char *rest)
{
	(void)rest;
	sh->is_left = true;
}

static const struct command {
	const char *name;
	void (*run)(struct shell *sh, const char *rest);
} commands[] = {
	{ ":files", files }, { ":help", help },   { ":policy", policy },
	{ ":quit", quit },   { ":reset", reset },
};

bool shell_command_is(const char *text)
{
	/* ":" alone and ": word" are commands of a shell. */
	return text[0] == ':' && text[1] >= 'a' && text[1] <= 'z' && !strchr(text, '\n');
}

bool shell_command_run(struct shell *sh, const char *text)
{
	if (!shell_command_is(text))
		return false;
	size_t len = strcspn(text, " \t");
	cleanup_free char *rest = str_dup(text + len + strspn(text + len, " \t"));
	for (char *end = rest + (rest ? strlen(rest) : 0); rest && end > rest && end[-1] == ' ';)
		*--end = '\0';
	for (size_t i = 0; rest && i < sizeof(commands) / sizeof(*commands); i++) {
		if (strlen(commands[i].name) == len && !strncmp(commands[i].name, text, len)) {
			commands[i].run(sh, rest);
			(void)fflush(stdout);
			return true;
		}
	}
	cli_error(sh->c,
		  "unknown command '%.*s'; there are :files, :help, :policy, :quit and "
		  ":reset",
		  (int)len, text);
	return true;
}

static const char *const exits[][6] = {
	{ "python", "exit", "quit", NULL }, { "r", "q", "quit", NULL },
	{ "node", ".exit", NULL },          { "sh", "exit", "logout", NULL },
	{ "pod", "exit", "logout", NULL },
};

/* What may follow the word: nothing, a number, or both in brackets; R's q("no") too. */
static bool is_rest(const char *guest, const char *rest, int *ret_status)
{
	char *end = NULL;
	bool is_r = str_eq(guest, "r"), is_call = rest[0] == '(';

	if (str_eq(guest, "node") || (is_r && !is_call))
		return str_eq(guest, "node") && rest[0] == '\0';
	rest += is_call;
	rest += strspn(rest, " ");
	if (is_r && strcspn(rest, ")") == strlen(rest) - 1)
		return true;
	long status = strtol(rest, &end, 10);
	*ret_status = (int)(status & 255);
	end += strspn(end, " ");
	return str_eq(end, is_call ? ")" : "");
}

/* Whether the line is this word, and what may follow it. */
static bool is_word(const char *guest, const char *line, const char *word, int *ret_status)
{
	size_t len = strlen(word);
	const char *rest = line + len;

	if (strncmp(line, word, len) != 0)
		return false;
	if (rest[0] && rest[0] != '(' && (rest[0] != ' ' || str_eq(guest, "python")))
		return false;
	return is_rest(guest, rest, ret_status);
}

bool shell_command_is_exit(const char *guest, const char *text, int *ret_status)
{
	cleanup_free char *line = str_dup(text + strspn(text, " \t"));

	for (size_t n = line ? strlen(line) : 0; n > 0 && strchr(" \t\n;", line[n - 1]); n--)
		line[n - 1] = '\0';
	for (size_t i = 0; line && i < sizeof(exits) / sizeof(*exits); i++)
		for (size_t k = 1; str_eq(exits[i][0], guest) && exits[i][k]; k++)
			if (is_word(guest, line, exits[i][k], ret_status))
				return true;
	return false;
}
