/* inside/lib/bytes.c - see bytes.h. */
#include "inside/lib/bytes.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void run_out(void)
{
	fputs("cordon-sh: out of memory\n", stderr);
	_exit(1);
}

char *bytes_room(struct bytes *b, size_t more)
{
	if (b->data && b->cap - b->len >= more)
		return b->data + b->len;
	size_t cap = b->cap ? b->cap : 256;
	while (cap - b->len < more)
		cap *= 2;
	char *p = realloc(b->data, cap);
	if (!p)
		run_out();
	else
		b->data = p;
	b->cap = cap;
	return b->data + b->len;
}

void bytes_add(struct bytes *b, const void *data, size_t len)
{
	if (!len)
		return;
	(void)bytes_room(b, len);
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
	va_list ap;
	char *text = NULL;

	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		run_out();
	bytes_add(b, text, (size_t)n);
	free(text);
}

void bytes_drop(struct bytes *b, size_t n)
{
	b->len -= n;
	memmove(b->data, b->data + n, b->len);
}

void bytes_done(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){ 0 };
}

void bytes_shell(struct bytes *b, const char *data, size_t len)
{
	bytes_char(b, '\'');
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\'')
			bytes_text(b, "'\\''");
		else if (data[i]) /* a shell variable cannot hold NUL */
			bytes_char(b, data[i]);
	}
	bytes_char(b, '\'');
}

long bytes_read(struct bytes *b, int fd)
{
	(void)bytes_room(b, 65536);
	ssize_t n;
	do
		n = read(fd, b->data + b->len, 65536);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		b->len += (size_t)n;
	return n;
}

int bytes_write(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}
