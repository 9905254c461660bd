/* session/pool.h - waits for a session of a pool without blocking a thread. */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "cordon/session.h"

/* A request for a session. Requests are served in order. */
struct pool_waiter {
	deadline_ns deadline; /* 0: none. Over: it only waits for one that is being made anyway */
	/* It is done. Called with the pool's lock held, by any thread: must not wait, nor call
	 * anything of the pool. */
	void (*wake)(struct pool_waiter *w);
	bool is_done;
	struct cordon_session *session; /* what it got; NULL: see the next */
	struct cordon_error *error;     /* owned by the waiter */
	struct pool_waiter *next;
};

/* Stands in the queue until is_done; may be done at once. The memory stays the caller's. */
void pool_queue(struct cordon_pool *p, struct pool_waiter *w);
/* Checks the deadlines of waiters; the pool has no timer for them. */
void pool_check_waiters(struct cordon_pool *p);
/* Leaves the queue; `wake` is not called any more. gives_back: also returns a session it already
 * got. */
void pool_leave(struct cordon_pool *p, struct pool_waiter *w, bool gives_back);
