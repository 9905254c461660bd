/* cli/line_screen.c - see line_screen.h. */
#include "cli/line_screen.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/str.h"

enum { WIDTH = 80, WIDTH_MIN = 8, TAB = 8 };

/* Ranges of code points that take no column, or two. In order. */
static const struct range {
	uint32_t first, last;
	size_t columns;
} ranges[] = {
	{ 0x300, 0x36f, 0 },     { 0x1100, 0x115f, 2 },   { 0x1ab0, 0x1aff, 0 },
	{ 0x1dc0, 0x1dff, 0 },   { 0x200b, 0x200f, 0 },   { 0x202a, 0x202e, 0 },
	{ 0x2060, 0x2069, 0 },   { 0x20d0, 0x20ff, 0 },   { 0x2e80, 0x303e, 2 },
	{ 0x3041, 0x4dbf, 2 },   { 0x4e00, 0xa4cf, 2 },   { 0xac00, 0xd7a3, 2 },
	{ 0xf900, 0xfaff, 2 },   { 0xfe00, 0xfe0f, 0 },   { 0xfe20, 0xfe2f, 0 },
	{ 0xfe30, 0xfe6f, 2 },   { 0xfeff, 0xfeff, 0 },   { 0xff00, 0xff60, 2 },
	{ 0xffe0, 0xffe6, 2 },   { 0x1f300, 0x1f64f, 2 }, { 0x1f680, 0x1f6ff, 2 },
	{ 0x1f900, 0x1f9ff, 2 }, { 0x1fa70, 0x1faff, 2 }, { 0x20000, 0x3fffd, 2 },
};

static size_t width_of(uint32_t c)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges) && c >= ranges[i].first; i++)
		if (c <= ranges[i].last)
			return ranges[i].columns;
	return 1;
}

/* One character of the text as it is shown. */
struct glyph {
	char shown[TAB + 1];
	size_t columns, len; /* len: bytes of the text */
};

static uint32_t code_point(const char *s, int n)
{
	static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = (unsigned char)s[0] & masks[n];

	for (int i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

static struct glyph glyph_at(const char *s, size_t len, size_t column)
{
	int n = str_utf8_next(s, len);
	unsigned char c = (unsigned char)*s;
	struct glyph g = { .len = (size_t)(n < 0 ? -n : n) };

	if (c == '\t') {
		g.columns = TAB - column % TAB;
		memset(g.shown, ' ', g.columns);
	} else if (c < 0x20 || c == 0x7f) {
		(void)snprintf(g.shown, sizeof(g.shown), "^%c", c ^ 0x40);
		g.columns = 2;
	} else if (n < 0 || (n == 2 && c == 0xc2 && (unsigned char)s[1] < 0xa0)) {
		(void)snprintf(g.shown, sizeof(g.shown), "?");
		g.columns = 1;
	} else {
		memcpy(g.shown, s, g.len);
		g.columns = width_of(code_point(s, n));
	}
	return g;
}

size_t line_screen_columns(const char *text, size_t len)
{
	size_t column = 0;

	for (size_t i = 0; i < len;) {
		struct glyph g = glyph_at(text + i, len - i, column);
		column += g.columns;
		i += g.len;
	}
	return column;
}

size_t line_screen_width(void)
{
	struct winsize w = { 0 };

	if (ioctl(1, TIOCGWINSZ, &w) != 0 || w.ws_col == 0)
		return WIDTH;
	return w.ws_col < WIDTH_MIN ? WIDTH_MIN : w.ws_col;
}

struct place {
	size_t row, column, width;
};

/* Breaks the row itself: terminals differ in what they do in their last column. */
static void put(struct place *p, const struct glyph *g)
{
	if (p->column + g->columns > p->width) {
		(void)fputs("\r\n", stdout);
		p->row++;
		p->column = 0;
	}
	(void)fputs(g->shown, stdout);
	p->column += g->columns;
}

static void put_prompt(struct place *p, const struct line_view *v, const char *text)
{
	(void)fputs(v->on, stdout);
	for (size_t i = 0, len = strlen(text); i < len;) {
		struct glyph g = glyph_at(text + i, len - i, p->column);
		put(p, &g);
		i += g.len;
	}
	(void)fputs(v->off, stdout);
}

static void go_up(size_t rows)
{
	if (rows > 0)
		printf("\x1b[%zuA", rows);
	(void)putchar('\r');
}

void line_screen_draw(struct line_screen *s, const struct line_view *v)
{
	struct place p = { .width = line_screen_width() }, cursor = { 0 };

	go_up(s->row);
	(void)fputs("\x1b[J", stdout);
	put_prompt(&p, v, v->prompt);
	for (size_t i = 0; i < v->len;) {
		if (i == v->cursor)
			cursor = p;
		if (v->text[i] == '\n') {
			(void)fputs("\r\n", stdout);
			p.row++;
			p.column = 0;
			put_prompt(&p, v, v->more);
			i++;
			continue;
		}
		struct glyph g = glyph_at(v->text + i, v->len - i, p.column);
		put(&p, &g);
		i += g.len;
	}
	if (v->cursor >= v->len)
		cursor = p;
	if (p.column == p.width) { /* the cursor cannot stand behind the last column */
		(void)fputs("\r\n", stdout);
		p.row++;
	}
	if (cursor.column == p.width) {
		cursor.row++;
		cursor.column = 0;
	}
	go_up(p.row - cursor.row);
	if (cursor.column > 0)
		printf("\x1b[%zuC", cursor.column);
	(void)fflush(stdout);
	s->row = cursor.row;
	s->end = p.row;
}

void line_screen_leave(struct line_screen *s)
{
	if (s->end > s->row)
		printf("\x1b[%zuB", s->end - s->row);
	(void)fputs("\r\n", stdout);
	(void)fflush(stdout);
	*s = (struct line_screen){ 0 };
}
