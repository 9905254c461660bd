/* wire/queue.h - bytes to be sent to the guest: built in place, sent in parts, bounded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue {
	char *data;
	size_t start, end, cap;
	size_t max;    /* unsent bytes never exceed this */
	bool is_short; /* something since queue_mark did not fit (is_nomem: for lack of memory) */
	bool is_nomem;
	size_t mark;
	int fd;       /* goes out with the byte at fd_at; -1: none */
	size_t fd_at; /* from data, as start and end */
};

void queue_init(struct queue *q, size_t max);
void queue_done(struct queue *q);
void queue_drop(struct queue *q); /* all that is unsent */
size_t queue_get_len(const struct queue *q);

/* Add a line piece by piece between queue_mark and queue_seal. If a piece does not fit, the rest is
 * ignored and queue_seal removes the whole line. */
void queue_mark(struct queue *q);
void queue_add_text(struct queue *q, const char *text);
void queue_add_uint(struct queue *q, uint64_t n);
/* A JSON string with its quotes. If the text is not UTF-8, each byte above 0x7f becomes U+FFFD. */
void queue_add_string(struct queue *q, const char *bytes, size_t len);
/* JSON text on one line: newlines between its tokens become spaces. */
void queue_add_json(struct queue *q, const char *json, size_t len);
/* A copy of this descriptor goes out with the first byte of the line begun with queue_mark.
 * -CORDON_LIMIT: another one waits; -errno of dup(2). */
int queue_attach(struct queue *q, int fd);
/* Adds the newline. 0, -CORDON_LIMIT or -CORDON_NOMEM. */
int queue_seal(struct queue *q);

/* One non-blocking send. 0: all sent, 1: some is left, or -errno. */
int queue_send(struct queue *q, int fd);
