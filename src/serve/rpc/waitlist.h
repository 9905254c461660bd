/* serve/rpc/waitlist.h - requests of one client that wait for a session of a pool, without a thread
 * for each: one thread looks after all of them, and the reader goes on. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/json.h"
#include "cordon/error.h"

struct rpc;
struct request;

enum { WAITLIST_MAX = 256 };

struct waitlist {
	pthread_mutex_t
		lock; /* taken with a pool's lock held: never call a pool while holding it */
	pthread_cond_t changed;
	struct parked *first;
	unsigned count;
	bool has_thread, is_closing;
};

void waitlist_init(struct waitlist *w);
void waitlist_done(struct waitlist *w);

/* A session of the request's pool: 1: request->loan has it. 0: the request waits, and is the list's
 * until it is carried out or refused. Negative: neither. */
int waitlist_take(struct request *q, uint64_t wait_ms, struct cordon_error **reterr);
/* Ends the waiting of a request by its id; false: it does not wait. */
bool waitlist_cancel(struct rpc *c, const json_t *request_id);
/* Refuses all that wait; its thread ends then. */
void waitlist_close(struct rpc *c);
