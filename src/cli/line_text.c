/* cli/line_text.c - see line_text.h. */
#include "cli/line_text.h"

#include <string.h>

bool line_text_is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static bool is_word(char c)
{
	return (unsigned char)c >= 0x80 || c == '_' || (c >= '0' && c <= '9') ||
	       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

size_t line_text_start_of(const struct line_text *t, size_t at)
{
	while (at > 0 && t->text.data[at - 1] != '\n')
		at--;
	return at;
}

size_t line_text_end_of(const struct line_text *t, size_t at)
{
	while (at < t->text.len && t->text.data[at] != '\n')
		at++;
	return at;
}

void line_text_left(struct line_text *t)
{
	if (t->cursor > 0)
		do
			t->cursor--;
		while (t->cursor > 0 && line_text_is_continuation(t->text.data[t->cursor]));
}

void line_text_right(struct line_text *t)
{
	if (t->cursor < t->text.len)
		do
			t->cursor++;
		while (t->cursor < t->text.len &&
		       line_text_is_continuation(t->text.data[t->cursor]));
}

void line_text_home(struct line_text *t)
{
	t->cursor = line_text_start_of(t, t->cursor);
}

void line_text_end(struct line_text *t)
{
	t->cursor = line_text_end_of(t, t->cursor);
}

static size_t word_before(const struct line_text *t)
{
	size_t at = t->cursor;

	while (at > 0 && !is_word(t->text.data[at - 1]))
		at--;
	while (at > 0 && is_word(t->text.data[at - 1]))
		at--;
	return at;
}

static size_t word_after(const struct line_text *t)
{
	size_t at = t->cursor;

	while (at < t->text.len && !is_word(t->text.data[at]))
		at++;
	while (at < t->text.len && is_word(t->text.data[at]))
		at++;
	return at;
}

void line_text_word_left(struct line_text *t)
{
	t->cursor = word_before(t);
}

void line_text_word_right(struct line_text *t)
{
	t->cursor = word_after(t);
}

void line_text_insert(struct line_text *t, const char *bytes, size_t len)
{
	if (buf_add(&t->text, bytes, len) < 0)
		return;
	memmove(t->text.data + t->cursor + len, t->text.data + t->cursor,
		t->text.len - len - t->cursor);
	memcpy(t->text.data + t->cursor, bytes, len);
	t->cursor += len;
}

void line_text_cut(struct line_text *t, size_t from, size_t to)
{
	if (to <= from)
		return;
	memmove(t->text.data + from, t->text.data + to, t->text.len - to + 1);
	t->text.len -= to - from;
	t->cursor = from;
}

/* Cut text comes back with ^Y. */
static void take_out(struct line_text *t, size_t from, size_t to)
{
	if (to <= from)
		return;
	buf_clear(&t->killed);
	(void)buf_add(&t->killed, t->text.data + from, to - from);
	line_text_cut(t, from, to);
}

void line_text_delete_before(struct line_text *t)
{
	size_t here = t->cursor;

	line_text_left(t);
	line_text_cut(t, t->cursor, here);
}

void line_text_delete_after(struct line_text *t)
{
	size_t here = t->cursor;

	line_text_right(t);
	line_text_cut(t, here, t->cursor);
}

void line_text_kill_end(struct line_text *t)
{
	take_out(t, t->cursor, line_text_end_of(t, t->cursor));
}

void line_text_kill_start(struct line_text *t)
{
	take_out(t, line_text_start_of(t, t->cursor), t->cursor);
}

/* As a shell's ^W: up to the blank before it. */
void line_text_kill_word(struct line_text *t)
{
	size_t at = t->cursor;

	while (at > 0 && strchr(" \t\n", t->text.data[at - 1]))
		at--;
	while (at > 0 && !strchr(" \t\n", t->text.data[at - 1]))
		at--;
	take_out(t, at, t->cursor);
}

void line_text_kill_word_before(struct line_text *t)
{
	take_out(t, word_before(t), t->cursor);
}

void line_text_kill_word_after(struct line_text *t)
{
	take_out(t, t->cursor, word_after(t));
}

void line_text_yank(struct line_text *t)
{
	line_text_insert(t, buf_text(&t->killed), t->killed.len);
}

void line_text_break(struct line_text *t)
{
	line_text_insert(t, "\n", 1);
}

void line_text_set(struct line_text *t, const char *text)
{
	buf_clear(&t->text);
	(void)buf_add_str(&t->text, text);
	t->cursor = t->text.len;
}
