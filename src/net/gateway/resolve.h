/* net/gateway/resolve.h - names to addresses with the host's resolver, off the loop's thread. */
#pragma once

#include "base/loop.h"
#include "net/gateway/host.h"

enum {
	RESOLVE_ADDRESSES = 16,
	RESOLVE_THREADS = 4,
	RESOLVE_CACHE = 64,
	RESOLVE_KEEP_MS = 30000,
	RESOLVE_WAITING = 256, /* lookups that wait for a thread */
};

struct resolve_result {
	struct address addresses[RESOLVE_ADDRESSES];
	size_t count;      /* 0: it failed */
	char problem[128]; /* why */
};

struct resolver;
struct resolve_job;

typedef void (*resolve_fn)(const struct resolve_result *result, void *arg);

int resolver_new(struct loop *l, struct resolver **ret, struct cordon_error **reterr);
/* Waits for lookups that are under way. */
struct resolver *resolver_free(struct resolver *r);
/* A name that is never asked for: these addresses are its own. */
int resolver_pin(struct resolver *r, const struct host *name, const struct address *a,
		 struct cordon_error **reterr);
/* Calls fn on the loop's thread, never from within this call. Answers are kept for half a minute.
 * -CORDON_LIMIT: too many wait already. */
int resolver_start(struct resolver *r, const struct host *name, resolve_fn fn, void *arg,
		   struct resolve_job **ret, struct cordon_error **reterr);
/* fn will not be called. Not after it was. A lookup that still waits for a thread is dropped. */
void resolver_cancel(struct resolve_job *j);

/* For tests: asks in place of the host's resolver. */
typedef void (*resolve_lookup_fn)(const struct host *name, struct resolve_result *ret);
void resolver_set_lookup(struct resolver *r, resolve_lookup_fn fn);
unsigned resolver_waiting(struct resolver *r);
