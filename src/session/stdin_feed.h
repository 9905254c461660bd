/* session/stdin_feed.h - writes stdin for one execution, from bytes or a descriptor of the caller,
 * as fast as the guest reads. The first execution of a guest uses the pipe that it was started
 * with, each later one a FIFO of its own. A pod uses one pipe for all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cordon/session.h"
#include "files/stdin_fifo.h"
#include "session/engine.h"

struct stdin_feed {
	struct engine *engine;
	struct workspace *workspace;
	char path[STDIN_FIFO_PATH_SIZE]; /* of the FIFO; "": none */
	const char
		*told; /* file that the guest must open as stdin; NULL: it keeps the one it has */
	int to;        /* write end of the guest's stdin; -1: not open yet, or closed */
	bool is_kept; /* pod: the pipe stays open, and the pod is told how many bytes belong to this
			 execution */
	bool is_awaited; /* the guest has not opened the FIFO yet */
	unsigned looks;
	const char *bytes; /* not written yet */
	size_t left;
	int source;  /* the caller's descriptor for more; -1: none */
	char *chunk; /* buffer for bytes of source; NULL before the first read */
	size_t chunk_len;
	unsigned held; /* how often the guest had not read it yet */
	const struct cordon_execute_options *options;
};

int stdin_feed_begin(struct stdin_feed *f, struct engine *e, struct workspace *ws,
		     const struct cordon_execute_options *o, struct cordon_error **reterr);
/* Writes as much as possible. source_ready: source may have more to read. */
void stdin_feed_go_on(struct stdin_feed *f, bool source_ready);
/* Descriptors for poll(2), for writing and for reading; -1: not waiting for that one. */
int stdin_feed_to_fd(const struct stdin_feed *f);
int stdin_feed_source_fd(const struct stdin_feed *f);
/* When to call stdin_feed_go_on even if no descriptor is ready; -1: never. */
int stdin_feed_patience_ms(const struct stdin_feed *f);
/* Ends it. Input that the guest did not read is given back (stdin_unread) or discarded. */
void stdin_feed_end(struct stdin_feed *f);
