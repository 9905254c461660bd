/* A growing run of bytes (inside/lib/bytes.h) for a process that is R's. Not inside/lib/bytes.c, which the
 * other sources here share with the guests: that one ends its process when there is no memory, prints
 * and writes to descriptors, none of which a package of R's may do; here no memory is an R error. */
#include "inside/lib/bytes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>

char *bytes_room(struct bytes *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 256;

	if (b->data && b->cap - b->len >= more)
		return b->data + b->len;
	while (cap - b->len < more)
		cap *= 2;
	char *p = realloc(b->data, cap);
	if (!p)
		Rf_error("out of memory");
	b->data = p;
	b->cap = cap;
	return b->data + b->len;
}

void bytes_add(struct bytes *b, const void *data, size_t len)
{
	if (!len)
		return;
	bytes_room(b, len);
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

void bytes_text(struct bytes *b, const char *text)
{
	bytes_add(b, text, strlen(text));
}

void bytes_char(struct bytes *b, char c)
{
	bytes_add(b, &c, 1);
}

void bytes_format(struct bytes *b, const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n > 0) {
		bytes_room(b, (size_t)n + 1);
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void bytes_drop(struct bytes *b, size_t n)
{
	if (n)
		memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

void bytes_done(struct bytes *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

long bytes_read(struct bytes *b, int fd)
{
	bytes_room(b, 65536);
	long n;
	do
		n = read(fd, b->data + b->len, b->cap - b->len);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		b->len += (size_t)n;
	return n;
}
