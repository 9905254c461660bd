/* session/pool.h - waiting for a session of a pool without a thread that waits. */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "cordon/session.h"

/* Somebody who wants a session. They are served in the order in which they came. */
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
/* Looks at the deadlines of those who wait, for the pool itself has no timer for them. */
void pool_check_waiters(struct cordon_pool *p);
/* Leaves the queue, and nobody wakes it any more. gives_back: also what it has got meanwhile. */
void pool_leave(struct cordon_pool *p, struct pool_waiter *w, bool gives_back);
