/* wire/queue.c - see queue.h. */
#include "wire/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/str.h"
#include "cordon/error.h"

enum { QUEUE_FIRST = 4096, QUEUE_KEEP = 65536 };

void queue_init(struct queue *q, size_t max)
{
	*q = (struct queue){ .max = max, .fd = -1 };
}

void queue_done(struct queue *q)
{
	free(q->data);
	close_fdp(&q->fd);
	queue_init(q, q->max);
}

void queue_drop(struct queue *q)
{
	q->start = q->end = 0;
	close_fdp(&q->fd);
}

size_t queue_get_len(const struct queue *q)
{
	return q->end - q->start;
}

void queue_mark(struct queue *q)
{
	q->mark = q->end;
	q->is_short = q->is_nomem = false;
}

/* Room for len more bytes at q->end; NULL: none. */
static char *reserve(struct queue *q, size_t len)
{
	if (q->is_short)
		return NULL;
	if (len > q->max || queue_get_len(q) > q->max - len) {
		q->is_short = true;
		return NULL;
	}
	if (q->cap - q->end >= len)
		return q->data + q->end;
	if (q->start > 0) {
		memmove(q->data, q->data + q->start, queue_get_len(q));
		q->mark -= q->start;
		q->fd_at -= q->fd >= 0 ? q->start : 0;
		q->end -= q->start;
		q->start = 0;
	}
	if (q->cap - q->end < len) {
		size_t cap = q->cap ? q->cap : QUEUE_FIRST;
		while (cap - q->end < len)
			cap *= 2;
		char *wider = mem_grow(q->data, cap, 1);
		if (!wider) {
			q->is_short = q->is_nomem = true;
			return NULL;
		}
		q->data = wider;
		q->cap = cap;
	}
	return q->data + q->end;
}

static void add(struct queue *q, const char *bytes, size_t len)
{
	char *to = reserve(q, len);

	if (to && len > 0) {
		memcpy(to, bytes, len);
		q->end += len;
	}
}

void queue_add_text(struct queue *q, const char *text)
{
	add(q, text, strlen(text));
}

void queue_add_uint(struct queue *q, uint64_t n)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	add(q, digits + at, sizeof(digits) - at);
}

/* The short escape for c, or 0. */
static char escape_of(char c)
{
	static const char from[] = "\"\\\n\t\r\b\f", to[] = "\"\\ntrbf";
	const char *at = c ? strchr(from, c) : NULL;

	return at ? to[at - from] : '\0';
}

static size_t escaped_len(const char *bytes, size_t len, bool is_utf8)
{
	size_t n = 2;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];
		if (c >= 0x80)
			n += is_utf8 ? 1 : 6;
		else if (c >= 0x20 && c != '"' && c != '\\')
			n++;
		else
			n += escape_of((char)c) ? 2 : 6;
	}
	return n;
}

static char *put_unit(char *to, unsigned unit)
{
	static const char hex[] = "0123456789abcdef";

	*to++ = '\\';
	*to++ = 'u';
	for (int shift = 12; shift >= 0; shift -= 4)
		*to++ = hex[unit >> shift & 15];
	return to;
}

void queue_add_string(struct queue *q, const char *bytes, size_t len)
{
	bool is_utf8 = str_is_utf8(bytes, len);
	size_t total = escaped_len(bytes, len, is_utf8);
	char *to = reserve(q, total);

	if (!to)
		return;
	*to++ = '"';
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];
		bool is_plain = c >= 0x80 ? is_utf8 : c >= 0x20 && c != '"' && c != '\\';
		if (is_plain) {
			*to++ = (char)c;
		} else if (c < 0x80 && escape_of((char)c)) {
			*to++ = '\\';
			*to++ = escape_of((char)c);
		} else {
			to = put_unit(to, c >= 0x80 ? 0xfffd : c);
		}
	}
	*to = '"';
	q->end += total;
}

void queue_add_json(struct queue *q, const char *json, size_t len)
{
	char *to = reserve(q, len);

	if (!to || len == 0)
		return;
	memcpy(to, json, len);
	for (char *p = to; (p = memchr(p, '\n', (size_t)(to + len - p)));)
		*p = ' ';
	for (char *p = to; (p = memchr(p, '\r', (size_t)(to + len - p)));)
		*p = ' ';
	q->end += len;
}

int queue_attach(struct queue *q, int fd)
{
	if (q->fd >= 0)
		return -CORDON_LIMIT;
	q->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	q->fd_at = q->mark;
	return q->fd < 0 ? -errno : 0;
}

int queue_seal(struct queue *q)
{
	add(q, "\n", 1);
	if (!q->is_short)
		return 0;
	q->end = q->mark;
	if (q->fd >= 0 && q->fd_at == q->mark)
		close_fdp(&q->fd);
	return q->is_nomem ? -CORDON_NOMEM : -CORDON_LIMIT;
}

/* A descriptor belongs to one byte: what comes before it is sent without. The socket does not
 * block. */
static ssize_t send_some(struct queue *q, int fd)
{
	size_t len = queue_get_len(q);

	if (q->fd < 0 || q->fd_at > q->start) {
		len = q->fd < 0 ? len : q->fd_at - q->start;
		return send(fd, q->data + q->start, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	ssize_t n = os_fds_send(fd, q->data + q->start, len, &q->fd, 1);
	if (n > 0)
		close_fdp(&q->fd);
	return n;
}

int queue_send(struct queue *q, int fd)
{
	while (queue_get_len(q) > 0) {
		bool has_fd = q->fd >= 0;
		ssize_t n = send_some(q, fd);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 1 : -errno;
		q->start += (size_t)n;
		if (!has_fd)
			break;
	}
	if (q->start < q->end)
		return 1;
	q->start = q->end = 0;
	if (q->cap > QUEUE_KEEP) {
		free(q->data);
		q->data = NULL;
		q->cap = 0;
	}
	return 0;
}
