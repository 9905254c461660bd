/* session/pool.h - waits for a session of a pool without blocking a thread. */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "cordon/session.h"

/* A request for a session. Requests are served in order. */
struct pool_waiter {
	deadline_ns deadline; /* 0: none. When it has passed, the waiter only gets a session that is
				 already being started */
	/* Called when the request is done, by any thread, with the pool's lock held. Must not block
	 * or call the pool. */
	void (*wake)(struct pool_waiter *w);
	bool is_done;
	struct cordon_session *session; /* the result; NULL: see error */
	struct cordon_error *error;     /* owned by the waiter */
	struct pool_waiter *next;
};

/* Queues the request until is_done, which may be set at once. The caller owns the memory of w. */
void pool_queue(struct cordon_pool *p, struct pool_waiter *w);
/* Checks the deadlines of waiters; the pool has no timer for them. */
void pool_check_waiters(struct cordon_pool *p);
/* Leaves the queue; `wake` is not called afterwards. gives_back: a session that was already
 * assigned is returned to the pool. */
void pool_leave(struct cordon_pool *p, struct pool_waiter *w, bool gives_back);
