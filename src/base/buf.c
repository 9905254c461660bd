/* base/buf.c - see buf.h. */
#include "base/buf.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { BUF_FIRST = 64 };

void buf_init(struct buf *b, size_t max)
{
	/* One less than the maximum, because the NUL must fit too. */
	*b = (struct buf){ .max = max < SIZE_MAX ? max : SIZE_MAX - 1 };
}

void buf_done(struct buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
}

/* Makes room for len more bytes and a NUL. */
static int make_room(struct buf *b, size_t len)
{
	if (len > b->max - b->len)
		return -CORDON_LIMIT;
	size_t want = b->len + len + 1;
	if (want <= b->cap)
		return 0;
	size_t cap = b->cap > SIZE_MAX / 2 ? want : b->cap * 2;
	if (cap < BUF_FIRST)
		cap = BUF_FIRST;
	if (cap > b->max + 1)
		cap = b->max + 1;
	if (cap < want)
		cap = want;
	char *data = mem_grow(b->data, cap, 1);
	if (!data)
		return -CORDON_NOMEM;
	b->data = data;
	b->cap = cap;
	b->data[b->len] = '\0'; /* also if nothing is added: the text always ends with a NUL */
	return 0;
}

int buf_add(struct buf *b, const void *bytes, size_t len)
{
	int r = make_room(b, len);
	if (r < 0)
		return r;
	if (len)
		memcpy(b->data + b->len, bytes, len);
	buf_commit(b, len);
	return 0;
}

int buf_add_str(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_add_char(struct buf *b, char c)
{
	return buf_add(b, &c, 1);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	cleanup_free char *text = str_vprintf(fmt, ap);
	va_end(ap);
	return text ? buf_add_str(b, text) : -CORDON_NOMEM;
}

/* U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: they turn the direction of text. */
static bool is_turn(const unsigned char *s, int n)
{
	if (n == 2)
		return s[0] == 0xd8 && s[1] == 0x9c;
	if (n != 3 || s[0] != 0xe2)
		return false;
	if (s[1] == 0x80)
		return s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xaa && s[2] <= 0xae);
	return s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9;
}

/* A character that a terminal obeys instead of showing it. */
static bool is_control(const unsigned char *s, int n)
{
	if (n == 1)
		return s[0] < 0x20 || s[0] == 0x7f;
	return (n == 2 && s[0] == 0xc2 && s[1] < 0xa0) || is_turn(s, n);
}

int buf_add_printable(struct buf *b, const char *text)
{
	const char *end = text + strlen(text);
	int r = 0;

	for (const char *s = text; s < end && r == 0;) {
		int n = str_utf8_next(s, (size_t)(end - s));
		if (n < 0 || is_control((const unsigned char *)s, n)) {
			n = n < 0 ? -n : n;
			for (int i = 0; i < n && r == 0; i++)
				r = buf_printf(b, "\\x%02x", (unsigned char)s[i]);
		} else {
			r = buf_add(b, s, (size_t)n);
		}
		s += n;
	}
	return r;
}

char *buf_reserve(struct buf *b, size_t len)
{
	return make_room(b, len) < 0 ? NULL : b->data + b->len;
}

void buf_commit(struct buf *b, size_t len)
{
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_consume(struct buf *b, size_t len)
{
	if (len >= b->len) {
		buf_clear(b);
		return;
	}
	memmove(b->data, b->data + len, b->len - len);
	b->len -= len;
	b->data[b->len] = '\0';
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

const char *buf_text(const struct buf *b)
{
	return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
	char *data = b->data ? b->data : mem_alloc(1);

	b->data = NULL;
	b->len = b->cap = 0;
	return data;
}
