/* serve/rpc/waitlist.h - requests of one client that wait for a session of a pool. One thread
 * serves all of them, so none needs a thread of its own, and reading goes on. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/json.h"
#include "cordon/error.h"

struct rpc;
struct request;

enum { WAITLIST_MAX = 256 };

struct waitlist {
	pthread_mutex_t lock; /* may be taken while a pool's lock is held, so never call a pool
				 while holding it */
	pthread_cond_t changed;
	struct parked *first;
	unsigned count;
	bool has_thread, is_closing;
};

void waitlist_init(struct waitlist *w);
void waitlist_done(struct waitlist *w);

/* Takes a session from the request's pool. 1: it is in request->loan. 0: the request waits, and the
 * list owns it until it is run or refused. Negative: an error. */
int waitlist_take(struct request *q, uint64_t wait_ms, struct cordon_error **reterr);
/* Cancels a waiting request by its id; false: it does not wait. */
bool waitlist_cancel(struct rpc *c, const json_t *request_id);
/* Refuses all waiting requests; its thread then ends. */
void waitlist_close(struct rpc *c);
