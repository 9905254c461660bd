/* serve/rpc/line.h - messages as lines over a pair of descriptors: read with a limit, written
 * whole. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct linein {
	int fd;
	int watch_fd; /* if its reader is gone, that counts as the end of the input; -1: none */
	size_t max;   /* of one line, without its newline */
	struct buf buf;
	size_t scanned; /* this much of buf has no newline */
	size_t used;    /* this much of buf was handed out already */
	bool is_skipping;
};

enum line_state { LINE_OK, LINE_TOO_LONG, LINE_END };

void linein_init(struct linein *in, int fd, int watch_fd, size_t max);
void linein_done(struct linein *in);
/* The next line without its newline, valid until the next call. A line over the limit is read away
 * and told once; a last line without newline is none. */
enum line_state linein_next(struct linein *in, char **ret, size_t *ret_len);

/* Lines from many threads, each whole. */
struct lineout {
	int fd;
	bool is_broken;                  /* the other side is gone: what comes is thrown away */
	_Atomic uint64_t stuck_since_ns; /* a line is being written since then; 0: none is */
	pthread_mutex_t lock;
};

struct line_part {
	const char *text;
	size_t len;
};

void lineout_init(struct lineout *out, int fd);
void lineout_done(struct lineout *out);
/* Writes the parts and a newline as one line. false: the other side is gone. */
bool lineout_send(struct lineout *out, const struct line_part *parts, size_t count);
/* Somebody may still read: the other side is there, and has not left a line unread for long. */
bool lineout_has_reader(const struct lineout *out);
