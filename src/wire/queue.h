/* wire/queue.h - bytes to be sent to the guest: built in place, sent in parts, with a limit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue {
	char *data;
	size_t start, end, cap;
	size_t max;    /* unsent bytes never exceed this */
	bool is_short; /* something since queue_mark did not fit (is_nomem tells why) */
	bool is_nomem;
	size_t mark;
};

void queue_init(struct queue *q, size_t max);
void queue_done(struct queue *q);
size_t queue_get_len(const struct queue *q);

/* A line is added piece by piece between queue_mark and queue_seal; when a piece does not fit,
 * the rest is ignored and queue_seal undoes the whole line. */
void queue_mark(struct queue *q);
void queue_add(struct queue *q, const char *bytes, size_t len);
void queue_add_text(struct queue *q, const char *text);
void queue_add_uint(struct queue *q, uint64_t n);
/* A JSON string with its quotes. Text that is not UTF-8 loses its bytes over 0x7f to U+FFFD. */
void queue_add_string(struct queue *q, const char *bytes, size_t len);
/* JSON text in one line: line ends between its tokens become spaces. */
void queue_add_json(struct queue *q, const char *json, size_t len);
/* Adds the newline. 0, -CORDON_LIMIT or -CORDON_NOMEM. */
int queue_seal(struct queue *q);

/* One non-blocking send. 0: empty now, 1: some is left, or -errno. */
int queue_send(struct queue *q, int fd);
