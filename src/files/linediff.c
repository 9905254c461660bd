/* files/linediff.c - see linediff.h. Myers' greedy algorithm. */
#include "files/linediff.h"

#include <string.h>

#include "base/mem.h"

enum { MAX_EDITS = 1000, CONTEXT = 3 };

struct line {
	const char *text;
	size_t len; /* including its newline, if any */
};

struct lines {
	struct line *items;
	int count;
};

struct trace {
	int *rows; /* for each d, one after the other: the 2d+1 ends of the furthest paths */
	struct lines a, b;
	char *edits; /* per step: '=', '-', '+' */
	size_t edit_count;
	bool is_out_of_memory;
};

static void trace_done(struct trace *t)
{
	free(t->rows);
	free(t->a.items);
	free(t->b.items);
	free(t->edits);
}

static int split(const char *text, size_t len, struct lines *ret)
{
	size_t count = 0, cap = 0;
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) + 1 : len;
		if (count == cap) {
			cap = cap ? cap * 2 : 64;
			void *p = mem_grow(ret->items, cap, sizeof(*ret->items));
			if (!p)
				return -CORDON_NOMEM;
			ret->items = p;
		}
		ret->items[count++] = (struct line){ text, n };
		text += n;
		len -= n;
	}
	ret->count = (int)count;
	return 0;
}

static bool is_same(const struct trace *t, int x, int y)
{
	const struct line *a = &t->a.items[x], *b = &t->b.items[y];
	return a->len == b->len && !memcmp(a->text, b->text, a->len);
}

static int *row(const struct trace *t, int d)
{
	return t->rows + (size_t)d * (size_t)d + d; /* row d starts at d*d; its middle is k = 0 */
}

static bool goes_down(const int *prev, int d, int k)
{
	return k == -d || (k != d && prev[k - 1] < prev[k + 1]);
}

/* The number of edits; -1: more than we follow. */
static int find_path(struct trace *t)
{
	int n = t->a.count, m = t->b.count;
	for (int d = 0; d <= MAX_EDITS; d++) {
		int *now = row(t, d), *prev = d ? row(t, d - 1) : NULL;
		for (int k = -d; k <= d; k += 2) {
			int x = 0;
			if (d)
				x = goes_down(prev, d, k) ? prev[k + 1] : prev[k - 1] + 1;
			int y = x - k;
			while (x < n && y < m && x >= 0 && y >= 0 && is_same(t, x, y))
				x++, y++;
			now[k] = x;
			if (x >= n && y >= m)
				return d;
		}
	}
	return -1;
}

/* Walks the path backwards and writes its steps in order. */
static int collect(struct trace *t, int d)
{
	int x = t->a.count, y = t->b.count;
	size_t total = (size_t)x + (size_t)y;
	t->edits = mem_alloc(total + 1);
	if (!t->edits)
		return -CORDON_NOMEM;
	size_t at = total;
	for (; d > 0; d--) {
		const int *prev = row(t, d - 1);
		int k = x - y;
		bool down = goes_down(prev, d, k);
		int from_x = down ? prev[k + 1] : prev[k - 1],
		    from_y = from_x - (down ? k + 1 : k - 1);
		int start_x = down ? from_x : from_x + 1;
		while (x > start_x) {
			t->edits[--at] = '=';
			x--, y--;
		}
		t->edits[--at] = down ? '+' : '-';
		x = from_x;
		y = from_y;
	}
	while (x > 0) {
		t->edits[--at] = '=';
		x--;
	}
	t->edit_count = total - at;
	memmove(t->edits, t->edits + at, t->edit_count);
	return 0;
}

static int put_line(struct buf *b, char sign, const struct line *l)
{
	if (!l || b->len + l->len + 32 > b->max)
		return 0;
	int r = buf_add_char(b, sign);
	if (r == 0)
		r = buf_add(b, l->text, l->len);
	if (r == 0 && (!l->len || l->text[l->len - 1] != '\n'))
		r = buf_add_str(b, "\n\\ No newline at end of file\n");
	return r;
}

/* The end of the hunk that starts at i: the next run of equal lines longer than twice the
 * context. */
static size_t hunk_end(const struct trace *t, size_t i)
{
	size_t last = i;
	for (; i < t->edit_count && i - last <= (size_t)2 * CONTEXT + 1; i++)
		if (t->edits[i] != '=')
			last = i;
	return last + 1;
}

static void put_hunk(struct trace *t, size_t from, size_t to, int x, int y, struct buf *b)
{
	int old = 0, new = 0;
	for (size_t i = from; i < to; i++) {
		old += t->edits[i] != '+';
		new += t->edits[i] != '-';
	}
	int r = buf_printf(b, "@@ -%d,%d +%d,%d @@\n", old ? x + 1 : x, old, new ? y + 1 : y, new);
	for (size_t i = from; i < to && r == 0; i++) {
		if (t->edits[i] == '+') {
			r = put_line(b, '+', &t->b.items[y++]);
		} else {
			r = put_line(b, t->edits[i] == '-' ? '-' : ' ', &t->a.items[x++]);
			y += t->edits[i] == '=';
		}
	}
	t->is_out_of_memory |= r == -CORDON_NOMEM;
}

static void put_hunks(struct trace *t, struct buf *b)
{
	int x = 0, y = 0;
	for (size_t i = 0; i < t->edit_count;) {
		if (t->edits[i] == '=') {
			i++, x++, y++;
			continue;
		}
		size_t before = i < CONTEXT ? i : CONTEXT, end = hunk_end(t, i);
		size_t equal = 0;
		while (equal < before && t->edits[i - equal - 1] == '=')
			equal++;
		size_t stop = end + CONTEXT < t->edit_count ? end + CONTEXT : t->edit_count;
		put_hunk(t, i - equal, stop, x - (int)equal, y - (int)equal, b);
		for (; i < stop; i++) {
			x += t->edits[i] != '+';
			y += t->edits[i] != '-';
		}
	}
}

int linediff_compare(const char *old, size_t old_len, const char *new, size_t new_len,
		     struct linediff *ret, struct buf *ret_text)
{
	__attribute__((cleanup(trace_done))) struct trace t = { 0 };
	if (split(old, old_len, &t.a) < 0 || split(new, new_len, &t.b) < 0)
		return -CORDON_NOMEM;
	t.rows = mem_array((size_t)(MAX_EDITS + 1) * (MAX_EDITS + 1), sizeof(*t.rows));
	if (!t.rows)
		return -CORDON_NOMEM;
	int d = find_path(&t);
	if (d < 0) {
		*ret = (struct linediff){ .added = (uint32_t)t.b.count,
					  .removed = (uint32_t)t.a.count };
		return 0;
	}
	if (collect(&t, d) < 0)
		return -CORDON_NOMEM;
	struct linediff l = { .is_exact = true };
	for (size_t i = 0; i < t.edit_count; i++) {
		l.added += t.edits[i] == '+';
		l.removed += t.edits[i] == '-';
	}
	if (ret_text)
		put_hunks(&t, ret_text);
	if (t.is_out_of_memory)
		return -CORDON_NOMEM;
	*ret = l;
	return 0;
}
