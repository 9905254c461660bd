/* session/stdin_feed.h - gives one execution its stdin, from bytes or a descriptor of the caller,
 * as fast as the guest reads. A guest's first execution uses the pipe it was started with, each
 * later one a FIFO of its own. A pod has one pipe for all. */
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
	const char *told;                /* what the guest has to open; NULL: what it has */
	int to;                          /* the guest's stdin; -1: not open yet, or closed */
	bool is_kept;    /* a pod: the pipe stays, and the pod is told which bytes belong to whom */
	bool is_awaited; /* the guest has not opened the FIFO yet */
	unsigned looks;
	const char *bytes; /* still to be written */
	size_t left;
	int source;  /* the caller's, for more; -1: none */
	char *chunk; /* of it; NULL before the first */
};

int stdin_feed_begin(struct stdin_feed *f, struct engine *e, struct workspace *ws,
		     const struct cordon_execute_options *o, struct cordon_error **reterr);
/* Writes what can be written; source_ready: there may be more to read. */
void stdin_feed_go_on(struct stdin_feed *f, bool source_ready);
/* For poll(2): writable, readable; -1: neither is waited for. */
int stdin_feed_to_fd(const struct stdin_feed *f);
int stdin_feed_source_fd(const struct stdin_feed *f);
/* When to continue even if neither is ready; -1: never. */
int stdin_feed_patience_ms(const struct stdin_feed *f);
/* What the guest left unread is gone. */
void stdin_feed_end(struct stdin_feed *f);
