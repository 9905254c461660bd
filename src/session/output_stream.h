/* session/output_stream.h - one output stream of the guest: kept up to a limit, drained for ever.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "cordon/session.h"

struct output_stream {
	int fd;     /* read end, non-blocking; -1 after its end */
	int number; /* 1 or 2, for the callback */
	struct buf kept;
	uint64_t max_lines, lines;
	uint64_t max_bytes, seen;
	bool is_truncated;
	bool is_wide; /* its pipe has been given more room */
	bool keeps;   /* false: only the callback sees the bytes */
	cordon_output_fn fn;
	void *arg;
};

struct stream_options {
	int number;
	uint64_t max_bytes, max_lines;
	bool discard;
	cordon_output_fn fn;
	void *arg;
};

/* For one execution; fd stays the caller's. */
void output_stream_begin(struct output_stream *s, int fd, const struct stream_options *o);
/* Reads what is there, a bounded amount at a time. 1: more may be there, 0: nothing now, -1: end.
 */
int output_stream_read(struct output_stream *s);
/* Everything that has arrived so far. */
void output_stream_drain(struct output_stream *s);
/* Takes away what a limit left of a character of UTF-8 at the end. */
void output_stream_trim(struct output_stream *s);
