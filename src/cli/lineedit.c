/* cli/lineedit.c - see lineedit.h. A small line editor: arrows, home, end, delete, ^A ^E ^K ^U ^W,
 * history with up and down. A UTF-8 character moves as one. */
#include "cli/lineedit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

enum { LINE_MAX_BYTES = 65536, HISTORY_MAX = 1000 };

struct lineedit {
	char *path; /* of the history; NULL: not saved */
	struct strlist history;
	size_t position; /* in the history, while a line is edited */
	struct buf line;
	size_t cursor;
	bool is_terminal;
	struct termios saved;
	bool is_raw; /* the terminal is in raw mode */
};

/* ${XDG_STATE_HOME:-~/.local/state}/cordon/history-NAME */
static char *history_path(const char *name)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	cleanup_free char *dir = state && state[0] ? str_printf("%s/cordon", state)
				 : home            ? str_printf("%s/.local/state/cordon", home)
						   : NULL;

	if (!dir)
		return NULL;
	for (char *p = dir + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		(void)mkdir(dir, 0700);
	}
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return NULL;
	return str_printf("%s/history-%s", dir, name);
}

struct lineedit *lineedit_new(const char *name)
{
	struct lineedit *l = mem_alloc(sizeof(*l));
	cleanup_buf struct buf text = { 0 };
	char *save = NULL;

	if (!l)
		return NULL;
	l->is_terminal = isatty(0) && tcgetattr(0, &l->saved) == 0;
	buf_init(&l->line, LINE_MAX_BYTES);
	if (!l->is_terminal)
		return l;
	l->path = history_path(name);
	buf_init(&text, 4 << 20);
	if (l->path && file_load(l->path, 4 << 20, &text, NULL) == 0 && text.len > 0)
		for (char *s = strtok_r(text.data, "\n", &save); s; s = strtok_r(NULL, "\n", &save))
			(void)strlist_add(&l->history, s);
	return l;
}

struct lineedit *lineedit_free(struct lineedit *l)
{
	cleanup_buf struct buf text = { 0 };

	if (!l)
		return NULL;
	lineedit_release(l);
	buf_init(&text, 4 << 20);
	size_t first = l->history.count > HISTORY_MAX ? l->history.count - HISTORY_MAX : 0;
	for (size_t i = first; i < l->history.count; i++)
		(void)buf_printf(&text, "%s\n", l->history.items[i]);
	if (l->path && text.len > 0)
		(void)file_save(l->path, 0600, text.data, text.len, NULL);
	strlist_done(&l->history);
	buf_done(&l->line);
	free(l->path);
	free(l);
	return NULL;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t columns(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += !is_continuation(text[i]);
	return n;
}

static void draw(const struct lineedit *l, const char *prompt)
{
	size_t back = columns(buf_text(&l->line) + l->cursor, l->line.len - l->cursor);

	printf("\r%s%s\x1b[K", prompt, buf_text(&l->line));
	if (back > 0)
		printf("\x1b[%zuD", back);
	fflush(stdout);
}

static void move(struct lineedit *l, int step)
{
	const char *t = buf_text(&l->line);

	if (step < 0 && l->cursor > 0)
		do
			l->cursor--;
		while (l->cursor > 0 && is_continuation(t[l->cursor]));
	else if (step > 0 && l->cursor < l->line.len)
		do
			l->cursor++;
		while (l->cursor < l->line.len && is_continuation(t[l->cursor]));
}

static void cut(struct lineedit *l, size_t from, size_t to)
{
	if (to <= from)
		return;
	memmove(l->line.data + from, l->line.data + to, l->line.len - to + 1);
	l->line.len -= to - from;
	l->cursor = from;
}

static void insert(struct lineedit *l, char c)
{
	if (buf_add_char(&l->line, c) < 0)
		return;
	memmove(l->line.data + l->cursor + 1, l->line.data + l->cursor,
		l->line.len - 1 - l->cursor);
	l->line.data[l->cursor++] = c;
}

static void recall(struct lineedit *l, int step)
{
	if (step < 0 ? l->position == 0 : l->position >= l->history.count)
		return;
	l->position = step < 0 ? l->position - 1 : l->position + 1;
	buf_clear(&l->line);
	if (l->position < l->history.count)
		(void)buf_add_str(&l->line, l->history.items[l->position]);
	l->cursor = l->line.len;
}

static void delete_at(struct lineedit *l, bool before)
{
	size_t here = l->cursor;

	move(l, before ? -1 : 1);
	if (before)
		cut(l, l->cursor, here);
	else
		cut(l, here, l->cursor);
}

/* After ESC: arrows, home, end, delete. */
static void escape(struct lineedit *l)
{
	char a, b, tilde;

	if (read(0, &a, 1) != 1 || (a != '[' && a != 'O') || read(0, &b, 1) != 1)
		return;
	if (b >= '0' && b <= '9' && read(0, &tilde, 1) != 1)
		return;
	switch (b) {
	case 'A':
	case 'B':
		recall(l, b == 'A' ? -1 : 1);
		break;
	case 'C':
	case 'D':
		move(l, b == 'D' ? -1 : 1);
		break;
	case 'H':
	case '1':
		l->cursor = 0;
		break;
	case 'F':
	case '4':
		l->cursor = l->line.len;
		break;
	case '3':
		delete_at(l, false);
		break;
	default:
		break;
	}
}

static void cut_word(struct lineedit *l)
{
	size_t end = l->cursor, at = end;

	while (at > 0 && l->line.data[at - 1] == ' ')
		at--;
	while (at > 0 && l->line.data[at - 1] != ' ')
		at--;
	cut(l, at, end);
}

/* How the key ends the line; LINEEDIT_OPEN: it does not. */
static enum lineedit_end press(struct lineedit *l, char c)
{
	switch (c) {
	case '\r':
	case '\n':
		return LINEEDIT_LINE;
	case 3: /* ^C */
		return LINEEDIT_DROPPED;
	case 4: /* ^D */
		if (l->line.len == 0)
			return LINEEDIT_NONE;
		delete_at(l, false);
		break;
	case 1:
		l->cursor = 0;
		break;
	case 5:
		l->cursor = l->line.len;
		break;
	case 11:
		cut(l, l->cursor, l->line.len);
		break;
	case 21:
		cut(l, 0, l->cursor);
		break;
	case 23:
		cut_word(l);
		break;
	case 8:
	case 127:
		delete_at(l, true);
		break;
	case 27:
		escape(l);
		break;
	default:
		if ((unsigned char)c >= 32 || c == '\t')
			insert(l, c);
	}
	return LINEEDIT_OPEN;
}

/* One line, until a key ends it. */
static enum lineedit_end edit(struct lineedit *l, const char *prompt)
{
	enum lineedit_end end = LINEEDIT_OPEN;
	char c;

	buf_clear(&l->line);
	(void)buf_add_str(&l->line, "");
	l->cursor = 0;
	l->position = l->history.count;
	while (end == LINEEDIT_OPEN) {
		draw(l, prompt);
		end = read(0, &c, 1) == 1 ? press(l, c) : LINEEDIT_NONE;
	}
	putchar('\n');
	return end;
}

void lineedit_release(struct lineedit *l)
{
	if (l->is_raw)
		(void)tcsetattr(0, TCSADRAIN, &l->saved);
	l->is_raw = false;
}

static void set_raw(struct lineedit *l)
{
	struct termios raw = l->saved;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
	raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
	if (!l->is_raw)
		(void)tcsetattr(0, TCSADRAIN, &raw);
	l->is_raw = true;
}

static void remember(struct lineedit *l, const char *text)
{
	size_t n = l->history.count;

	if (text[0] && (n == 0 || !str_eq(l->history.items[n - 1], text)))
		(void)strlist_add(&l->history, text);
}

static enum lineedit_end read_plain(char **ret)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t n = getline(&line, &size, stdin);

	if (n < 0) {
		free(line);
		return LINEEDIT_NONE;
	}
	if (n > 0 && line[n - 1] == '\n')
		line[n - 1] = '\0';
	*ret = line;
	return LINEEDIT_LINE;
}

enum lineedit_end lineedit_read(struct lineedit *l, const char *prompt, char **ret)
{
	if (!l->is_terminal)
		return read_plain(ret);
	set_raw(l);
	enum lineedit_end end = edit(l, prompt);
	if (end != LINEEDIT_LINE)
		return end;
	remember(l, buf_text(&l->line));
	*ret = str_dup(buf_text(&l->line));
	return *ret ? LINEEDIT_LINE : LINEEDIT_NONE;
}
