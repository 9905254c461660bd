/* net/gateway/resolve.h - looks names up with the host's resolver, in threads beside the loop's. */
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
	size_t count;      /* 0: the lookup failed */
	char problem[128]; /* why */
};

struct resolver;
struct resolve_job;

typedef void (*resolve_fn)(const struct resolve_result *result, void *arg);

int resolver_new(struct loop *l, struct resolver **ret, struct cordon_error **reterr);
/* Waits for lookups that are running. */
struct resolver *resolver_free(struct resolver *r);
/* Gives a name fixed addresses, so it is never looked up. */
int resolver_pin(struct resolver *r, const struct host *name, const struct address *a,
		 struct cordon_error **reterr);
/* Calls fn on the loop's thread, never from within this call. Answers are kept for half a minute.
 * -CORDON_LIMIT: too many wait already. */
int resolver_start(struct resolver *r, const struct host *name, resolve_fn fn, void *arg,
		   struct resolve_job **ret, struct cordon_error **reterr);
/* fn will not be called. Must not be called after fn was. A lookup that still waits for a thread is
 * dropped. */
void resolver_cancel(struct resolve_job *j);

/* For tests: replaces the host's resolver. */
typedef void (*resolve_lookup_fn)(const struct host *name, struct resolve_result *ret);
void resolver_set_lookup(struct resolver *r, resolve_lookup_fn fn);
unsigned resolver_waiting(struct resolver *r);
