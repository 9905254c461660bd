/* session/output_stream.h - one output stream of the guest. Output is kept up to a limit; reading
 * goes on beyond it, so the guest never blocks on a full pipe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "cordon/session.h"

struct output_stream {
	int fd;     /* read end, non-blocking; -1: end of file */
	int number; /* 1 (stdout) or 2 (stderr), for the callback */
	struct buf kept;
	uint64_t max_lines, lines;
	uint64_t max_bytes, seen;
	bool is_truncated;
	bool is_wide;    /* the pipe's buffer was enlarged */
	bool keeps;      /* false: only the callback sees the bytes */
	bool passes_all; /* the limits are for what is kept, not for the callback */
	cordon_output_fn fn;
	void *arg;
};

struct stream_options {
	int number;
	uint64_t max_bytes, max_lines;
	bool discard;
	bool passes_all; /* a terminal, which would be dead if its output stopped */
	cordon_output_fn fn;
	void *arg;
};

/* Prepares for one execution. The caller keeps ownership of fd. */
void output_stream_begin(struct output_stream *s, int fd, const struct stream_options *o);
/* Reads a bounded amount of what is available. 1: there may be more, 0: nothing now, -1: end of
 * file. */
int output_stream_read(struct output_stream *s);
/* Reads what has arrived so far. */
void output_stream_drain(struct output_stream *s);
/* Removes an incomplete UTF-8 character that a limit cut off at the end. */
void output_stream_trim(struct output_stream *s);
