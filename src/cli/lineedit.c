/* cli/lineedit.c - see lineedit.h. The text may have several lines; a UTF-8 character moves as one.
 * Keys: arrows, home, end, delete, ^A ^E ^B ^F ^P ^N, ^K ^U ^W ^Y, words with Alt and Ctrl, ^R
 * searches the history, Tab completes, Alt-Enter begins a line, a bracketed paste stays text. */
#include "cli/lineedit.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/line_history.h"
#include "cli/line_screen.h"
#include "cli/line_text.h"

enum { TEXT_MAX = 1 << 20, QUERY_MAX = 200, SEQUENCE_MAX = 16, LISTED_MAX = 120 };
enum { KEY_INTERRUPT = 3, KEY_END = 4, KEY_CANCEL = 7, KEY_SEARCH = 18, KEY_ESCAPE = 27 };

struct lineedit {
	struct lineedit_options o;
	struct line_history history;
	size_t position; /* in the history, while a text is edited */
	char *draft;     /* what was typed before the arrows went into the history; NULL: nothing */
	struct line_text t;
	struct line_screen screen;
	const char *prompt;
	bool is_terminal, is_plain; /* is_plain: a terminal that has no escape sequences */
	struct termios saved;
	bool is_raw;      /* the terminal is in raw mode */
	struct buf early; /* keys that were given back */
	size_t early_at;
};

struct lineedit *lineedit_new(const struct lineedit_options *o)
{
	struct lineedit *l = mem_alloc(sizeof(*l));
	const char *term = getenv("TERM");

	if (!l)
		return NULL;
	l->o = *o;
	l->is_terminal = isatty(0) && tcgetattr(0, &l->saved) == 0;
	l->is_plain = !isatty(1) || !term || !term[0] || str_eq(term, "dumb");
	buf_init(&l->t.text, TEXT_MAX);
	buf_init(&l->t.killed, TEXT_MAX);
	buf_init(&l->early, TEXT_MAX);
	if (l->is_terminal)
		line_history_load(&l->history, o->name);
	return l;
}

struct lineedit *lineedit_free(struct lineedit *l)
{
	if (!l)
		return NULL;
	lineedit_release(l);
	line_history_done(&l->history);
	buf_done(&l->t.text);
	buf_done(&l->t.killed);
	buf_done(&l->early);
	free(l->draft);
	free(l);
	return NULL;
}

bool lineedit_is_terminal(const struct lineedit *l)
{
	return l->is_terminal;
}

/* ---- the terminal */

static void set_mode(struct lineedit *l, bool has_signals)
{
	struct termios raw = l->saved;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN | (has_signals ? 0 : ISIG));
	raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
	raw.c_lflag |= NOFLSH; /* a signal does not drop what is typed ahead */
	(void)tcsetattr(0, TCSADRAIN, &raw);
}

static void set_raw(struct lineedit *l)
{
	if (l->is_raw)
		return;
	set_mode(l, false);
	(void)fputs("\x1b[?2004h", stdout); /* a paste comes between two sequences */
	l->is_raw = true;
}

void lineedit_release(struct lineedit *l)
{
	if (!l->is_raw)
		return;
	(void)fputs("\x1b[?2004l", stdout);
	(void)fflush(stdout);
	(void)tcsetattr(0, TCSADRAIN, &l->saved);
	l->is_raw = false;
}

/* Enter is '\r' in the editor's mode. */
void lineedit_give_back(struct lineedit *l, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		(void)buf_add_char(&l->early, bytes[i] == '\n' ? '\r' : bytes[i]);
}

static bool read_key(struct lineedit *l, char *ret)
{
	ssize_t n;

	if (l->early_at < l->early.len) {
		*ret = l->early.data[l->early_at++];
		return true;
	}
	buf_clear(&l->early);
	l->early_at = 0;
	do
		n = read(0, ret, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

static bool has_input(const struct lineedit *l)
{
	struct pollfd p = { .fd = 0, .events = POLLIN };

	return l->early_at < l->early.len || poll(&p, 1, 0) > 0;
}

static void draw(struct lineedit *l, const char *prompt)
{
	struct line_view v = { .prompt = prompt,
			       .more = "... ",
			       .on = l->o.on ? l->o.on : "",
			       .off = l->o.off ? l->o.off : "",
			       .text = buf_text(&l->t.text),
			       .len = l->t.text.len,
			       .cursor = l->t.cursor };

	if (!has_input(l)) /* what is typed ahead or pasted is drawn once */
		line_screen_draw(&l->screen, &v);
}

static void clear_screen(struct lineedit *l)
{
	(void)fputs("\x1b[H\x1b[2J", stdout);
	l->screen = (struct line_screen){ 0 };
}

/* Text between ESC [200~ and ESC [201~; it is never a key. Without control characters: a paste may
 * come from anywhere. */
static void paste(struct lineedit *l)
{
	static const char end[] = "\x1b[201~";
	size_t matched = 0;
	char c, last = 0;

	while (matched < sizeof(end) - 1 && read_key(l, &c)) {
		matched = c == end[matched] ? matched + 1 : c == end[0];
		if (c == '\r' || (c == '\n' && last != '\r'))
			line_text_insert(&l->t, "\n", 1);
		else if (matched == 0 && ((unsigned char)c >= 32 || c == '\t') && c != 127)
			line_text_insert(&l->t, &c, 1);
		last = c;
	}
}

/* ---- the history */

static void recall(struct lineedit *l, bool is_older)
{
	const struct strlist *e = &l->history.entries;

	if (is_older ? l->position == 0 : l->position >= e->count)
		return;
	if (l->position == e->count) {
		free(l->draft);
		l->draft = str_dup(buf_text(&l->t.text));
	}
	l->position = is_older ? l->position - 1 : l->position + 1;
	line_text_set(&l->t, l->position < e->count ? e->items[l->position]
			     : l->draft             ? l->draft
						    : "");
}

/* Up and down move through the lines of the text first. */
static void go_up(struct lineedit *l)
{
	size_t start = line_text_start_of(&l->t, l->t.cursor), column = l->t.cursor - start;

	if (start == 0) {
		recall(l, true);
		return;
	}
	size_t above = line_text_start_of(&l->t, start - 1);
	l->t.cursor = above + column < start - 1 ? above + column : start - 1;
	while (l->t.cursor > above && line_text_is_continuation(l->t.text.data[l->t.cursor]))
		l->t.cursor--;
}

static void go_down(struct lineedit *l)
{
	size_t column = l->t.cursor - line_text_start_of(&l->t, l->t.cursor),
	       end = line_text_end_of(&l->t, l->t.cursor);

	if (end == l->t.text.len) {
		recall(l, false);
		return;
	}
	size_t last = line_text_end_of(&l->t, end + 1);
	l->t.cursor = end + 1 + column < last ? end + 1 + column : last;
	while (l->t.cursor > end + 1 && l->t.cursor < l->t.text.len &&
	       line_text_is_continuation(l->t.text.data[l->t.cursor]))
		l->t.cursor--;
}

/* ---- completion */

/* What all of them begin with, in whole characters. */
static size_t common(const struct strlist *items)
{
	const char *first = items->items[0];
	size_t n = strlen(first);

	for (size_t i = 1; i < items->count; i++) {
		size_t k = 0;
		while (k < n && items->items[i][k] == first[k])
			k++;
		n = k;
	}
	while (n > 0 && line_text_is_continuation(first[n]))
		n--;
	return n;
}

static void list(struct lineedit *l, const struct strlist *items)
{
	size_t shown = items->count < LISTED_MAX ? items->count : LISTED_MAX, widest = 0,
	       column = 0;
	size_t width = line_screen_width();

	line_screen_leave(&l->screen);
	for (size_t i = 0; i < shown; i++) {
		size_t w = line_screen_columns(items->items[i], strlen(items->items[i]));
		widest = w > widest ? w : widest;
	}
	for (size_t i = 0; i < shown; i++) {
		cleanup_buf struct buf name = { 0 };
		size_t w = line_screen_columns(items->items[i], strlen(items->items[i]));

		if (column > 0 && column + widest > width) {
			(void)fputs("\r\n", stdout);
			column = 0;
		}
		buf_init(&name, TEXT_MAX);
		(void)buf_add_printable(&name, items->items[i]);
		printf("%s%*s", buf_text(&name), (int)(widest - w) + 2, "");
		column += widest + 2;
	}
	if (shown < items->count)
		printf("and %zu more", items->count - shown);
	(void)fputs("\r\n", stdout);
}

static void tab(struct lineedit *l)
{
	struct lineedit_matches m = { 0 };
	size_t start = line_text_start_of(&l->t, l->t.cursor), at = start;

	while (at < l->t.cursor && strchr(" \t", l->t.text.data[at]))
		at++;
	if (at == l->t.cursor) { /* nothing to complete: indent */
		line_text_insert(&l->t, "    ", 4);
		return;
	}
	if (!l->o.complete)
		return;
	set_mode(l, true);
	l->o.complete(buf_text(&l->t.text), l->t.cursor, &m, l->o.arg);
	set_mode(l, false);
	size_t n = m.items.count > 0 ? common(&m.items) : 0;
	if (m.len <= l->t.cursor && (n > m.len || m.items.count == 1)) {
		line_text_cut(&l->t, l->t.cursor - m.len, l->t.cursor);
		line_text_insert(&l->t, m.items.items[0], n);
	} else if (m.items.count > 1) {
		list(l, &m.items);
	}
	strlist_done(&m.items);
}

/* ---- keys */

struct binding {
	const char *keys; /* one byte, or what follows ESC */
	void (*edit)(struct line_text *t);
	void (*press)(struct lineedit *l);
};

static const struct binding keys[] = {
	{ "\x01", line_text_home, NULL },
	{ "\x02", line_text_left, NULL },
	{ "\x05", line_text_end, NULL },
	{ "\x06", line_text_right, NULL },
	{ "\x08", line_text_delete_before, NULL },
	{ "\x7f", line_text_delete_before, NULL },
	{ "\t", NULL, tab },
	{ "\x0b", line_text_kill_end, NULL },
	{ "\x0c", NULL, clear_screen },
	{ "\x0e", NULL, go_down },
	{ "\x10", NULL, go_up },
	{ "\x15", line_text_kill_start, NULL },
	{ "\x17", line_text_kill_word, NULL },
	{ "\x19", line_text_yank, NULL },
	{ NULL, NULL, NULL },
};

static const struct binding sequences[] = {
	{ "[A", NULL, go_up },
	{ "OA", NULL, go_up },
	{ "[B", NULL, go_down },
	{ "OB", NULL, go_down },
	{ "[C", line_text_right, NULL },
	{ "OC", line_text_right, NULL },
	{ "[D", line_text_left, NULL },
	{ "OD", line_text_left, NULL },
	{ "[H", line_text_home, NULL },
	{ "OH", line_text_home, NULL },
	{ "[1~", line_text_home, NULL },
	{ "[7~", line_text_home, NULL },
	{ "[F", line_text_end, NULL },
	{ "OF", line_text_end, NULL },
	{ "[4~", line_text_end, NULL },
	{ "[8~", line_text_end, NULL },
	{ "[3~", line_text_delete_after, NULL },
	{ "[1;5C", line_text_word_right, NULL },
	{ "[1;3C", line_text_word_right, NULL },
	{ "f", line_text_word_right, NULL },
	{ "[1;5D", line_text_word_left, NULL },
	{ "[1;3D", line_text_word_left, NULL },
	{ "b", line_text_word_left, NULL },
	{ "d", line_text_kill_word_after, NULL },
	{ "\x7f", line_text_kill_word_before, NULL },
	{ "\r", line_text_break, NULL },
	{ "\n", line_text_break, NULL },
	{ "[200~", NULL, paste },
	{ NULL, NULL, NULL },
};

static bool press_bound(struct lineedit *l, const struct binding *b, const char *key)
{
	while (b->keys && !str_eq(b->keys, key))
		b++;
	if (b->edit)
		b->edit(&l->t);
	else if (b->press)
		b->press(l);
	return b->keys;
}

/* After ESC: one key, or a sequence up to its final byte. Unknown ones are ignored. */
static void press_sequence(struct lineedit *l)
{
	char s[SEQUENCE_MAX + 1] = "";
	size_t n = 0;
	bool is_over = false;

	while (!is_over && n < SEQUENCE_MAX && read_key(l, &s[n])) {
		n++;
		if (n == 1)
			is_over = s[0] != '[' && s[0] != 'O';
		else
			is_over = s[0] == 'O' || (s[n - 1] >= 0x40 && s[n - 1] <= 0x7e);
	}
	(void)press_bound(l, sequences, s);
}

static enum lineedit_end enter(struct lineedit *l)
{
	bool is_complete = true;

	if (l->o.is_complete && l->t.text.len > 0) {
		set_mode(l, true);
		is_complete = l->o.is_complete(buf_text(&l->t.text), l->t.text.len, l->o.arg);
		set_mode(l, false);
	}
	if (!is_complete)
		line_text_break(&l->t);
	return is_complete ? LINEEDIT_LINE : LINEEDIT_OPEN;
}

static enum lineedit_end search(struct lineedit *l);

/* How the key ends the text; LINEEDIT_OPEN: it does not. */
static enum lineedit_end press(struct lineedit *l, char c)
{
	switch (c) {
	case '\r':
	case '\n':
		return enter(l);
	case KEY_INTERRUPT:
		return LINEEDIT_DROPPED;
	case KEY_END:
		if (l->t.text.len == 0)
			return LINEEDIT_NONE;
		line_text_delete_after(&l->t);
		break;
	case KEY_SEARCH:
		return search(l);
	case KEY_ESCAPE:
		press_sequence(l);
		break;
	default:
		if (!press_bound(l, keys, (char[2]){ c, 0 }) && (unsigned char)c >= 32)
			line_text_insert(&l->t, &c, 1);
	}
	return LINEEDIT_OPEN;
}

struct query {
	char text[QUERY_MAX + 1];
	size_t len;
	size_t at; /* in the history; its length: nothing was found yet */
};

/* Each key narrows the search, ^R again goes further back. False: another key. */
static bool refine(struct lineedit *l, struct query *q, char c)
{
	const struct line_history *h = &l->history;
	size_t before = q->at;

	if (c == 8 || c == 127) {
		do
			q->len -= q->len > 0;
		while (q->len > 0 && line_text_is_continuation(q->text[q->len]));
		q->text[q->len] = '\0';
		return true;
	}
	if ((unsigned char)c >= 32 && q->len < QUERY_MAX) {
		q->text[q->len++] = c;
		q->text[q->len] = '\0';
		before += before < h->entries.count; /* the same entry may still fit */
	} else if (c != KEY_SEARCH) {
		return false;
	}
	if (q->len > 0 && line_history_find(h, q->text, before, &q->at))
		line_text_set(&l->t, h->entries.items[q->at]);
	return true;
}

/* ^R. ^G and ^C give up; any other key takes what was found and does its own work. */
static enum lineedit_end search(struct lineedit *l)
{
	cleanup_free char *before = str_dup(buf_text(&l->t.text));
	struct query q = { .at = l->history.entries.count };
	char c = 0;

	do {
		cleanup_free char *prompt = str_printf("search '%s': ", q.text);

		draw(l, prompt ? prompt : "search: ");
		if (!read_key(l, &c))
			return LINEEDIT_NONE;
	} while (refine(l, &q, c));
	if (c == KEY_CANCEL || c == KEY_INTERRUPT) {
		line_text_set(&l->t, before ? before : "");
		return LINEEDIT_OPEN;
	}
	if (q.at < l->history.entries.count)
		l->position = q.at;
	return press(l, c);
}

/* One text, until a key ends it. */
static enum lineedit_end edit(struct lineedit *l)
{
	enum lineedit_end end = LINEEDIT_OPEN;
	char c;

	line_text_set(&l->t, "");
	l->position = l->history.entries.count;
	l->screen = (struct line_screen){ 0 };
	while (end == LINEEDIT_OPEN) {
		draw(l, l->prompt);
		end = read_key(l, &c) ? press(l, c) : LINEEDIT_NONE;
	}
	line_screen_leave(&l->screen);
	return end;
}

/* Lines up to where the text is complete, or the input ends. */
static enum lineedit_end read_plain(struct lineedit *l)
{
	cleanup_free char *line = NULL;
	size_t size = 0;
	bool is_open = true;

	buf_clear(&l->t.text);
	for (bool is_first = true; is_open; is_first = false) {
		if (l->is_terminal) {
			(void)fputs(is_first ? l->prompt : "... ", stdout);
			(void)fflush(stdout);
		}
		ssize_t n = getline(&line, &size, stdin);
		if (n < 0)
			return is_first ? LINEEDIT_NONE : LINEEDIT_LINE;
		if (n > 0 && line[n - 1] == '\n')
			n--;
		if ((!is_first && buf_add_char(&l->t.text, '\n') < 0) ||
		    buf_add(&l->t.text, line, (size_t)n) < 0)
			return LINEEDIT_DROPPED;
		is_open = l->o.is_complete && l->t.text.len > 0 &&
			  !l->o.is_complete(buf_text(&l->t.text), l->t.text.len, l->o.arg);
	}
	return LINEEDIT_LINE;
}

enum lineedit_end lineedit_read(struct lineedit *l, const char *prompt, char **ret)
{
	bool is_edited = l->is_terminal && !l->is_plain;

	l->prompt = prompt;
	if (is_edited)
		set_raw(l);
	enum lineedit_end end = is_edited ? edit(l) : read_plain(l);
	if (end != LINEEDIT_LINE)
		return end;
	if (is_edited)
		line_history_add(&l->history, buf_text(&l->t.text));
	*ret = str_dup(buf_text(&l->t.text));
	return *ret ? LINEEDIT_LINE : LINEEDIT_NONE;
}
