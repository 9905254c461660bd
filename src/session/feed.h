/* session/feed.h - the stdin of one execution: bytes or a descriptor of the caller's, given to the
 * guest as fast as it reads. The first execution of a guest has the pipe it was started with, each
 * later one an inlet of its own; a pod has one pipe for all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cordon/session.h"
#include "files/inlet.h"
#include "session/engine.h"

struct feed {
	struct engine *engine;
	struct workspace *workspace;
	char path[INLET_PATH_SIZE]; /* of the inlet; "": none */
	const char *told;           /* what the guest has to open; NULL: what it has */
	int to;                     /* the guest's stdin; -1: not open yet, or closed */
	bool is_kept;               /* a pod is told which bytes are whose: the pipe stays */
	bool is_awaited;            /* the guest has not come to the inlet yet */
	unsigned looks;
	const char *bytes; /* still to be written */
	size_t left;
	int source;  /* the caller's, for more; -1: none */
	char *chunk; /* of it; NULL before the first */
};

int feed_begin(struct feed *f, struct engine *e, struct workspace *ws,
	       const struct cordon_execute_options *o, struct cordon_error **reterr);
/* Writes what can be written; source_ready: there may be more to read. */
void feed_go_on(struct feed *f, bool source_ready);
/* For poll(2): writable, readable; -1: neither is waited for. */
int feed_to_fd(const struct feed *f);
int feed_source_fd(const struct feed *f);
/* When to go on without either; -1: never. */
int feed_patience_ms(const struct feed *f);
/* What the guest left unread is gone. */
void feed_end(struct feed *f);
