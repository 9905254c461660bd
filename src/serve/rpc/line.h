/* serve/rpc/line.h - messages as lines on a pair of descriptors. Lines are read up to a limit and
 * written whole. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct linein {
	int fd;
	int watch_fd; /* if its reader is gone, the input counts as ended; -1: not checked */
	size_t max;   /* limit of one line, without its newline */
	struct buf buf;
	size_t scanned; /* bytes of buf known to have no newline */
	size_t used;    /* bytes of buf already returned */
	bool is_at_end; /* the last read met the end of the input */
	bool is_skipping;
	int idle_ms;  /* linein_next waits no longer for input; 0: for ever */
	int stall_ms; /* linein_read waits no longer for input: it has ended then; 0: for ever */
};

/* LINE_IDLE: nothing came for idle_ms. */
enum line_state { LINE_OK, LINE_TOO_LONG, LINE_END, LINE_IDLE };

void linein_init(struct linein *in, int fd, int watch_fd, size_t max);
void linein_done(struct linein *in);
/* The next line without its newline, valid until the next call. A line over the limit is skipped
 * and reported once. What comes before the end of the input is a line, too. */
enum line_state linein_next(struct linein *in, char **ret, size_t *ret_len);

/* Bytes that were read before the descriptor was handed over. False: out of memory. Before the
 * first line is asked for. */
bool linein_give(struct linein *in, const void *bytes, size_t len);
/* Frees memory that is not used at present. */
void linein_shrink(struct linein *in);

/* Exactly so many bytes after the line that was returned last, which is no longer valid then.
 * False: the input ended before. */
bool linein_read(struct linein *in, void *to, size_t len);

/* Writes lines from many threads, each line whole. */
struct lineout {
	int fd;
	bool is_wide;   /* a pipe was made larger, for files */
	bool is_broken; /* the reader is gone: output is discarded */
	bool is_duplex; /* a socket that is also read: if its input ends, nobody reads the output */
	int stall_ms;   /* a socket whose reader takes nothing for so long is shut down; 0: never */
	_Atomic uint64_t stuck_since_ns; /* since when nothing was written; 0: not writing */
	pthread_mutex_t lock;
};

struct line_part {
	const char *text;
	size_t len;
};

void lineout_init(struct lineout *out, int fd);
void lineout_done(struct lineout *out);
/* Writes the parts and a newline as one line. False: the reader is gone. */
bool lineout_send(struct lineout *out, const struct line_part *parts, size_t count);
/* The same, followed by the first `bytes` of a file. */
bool lineout_send_file(struct lineout *out, const struct line_part *parts, size_t count, int fd,
		       uint64_t bytes);
/* The reader is still there and has not left a line unread for long. */
bool lineout_has_reader(const struct lineout *out);
