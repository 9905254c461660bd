/* serve/server/idempotency.h - requests that a client may send again: the answer to the first one
 * with an Idempotency-Key is kept and sent again. */
#pragma once

#include "serve/server/tenant.h"

enum idempotency {
	IDEMPOTENCY_NEW,   /* run it, then call idempotency_end */
	IDEMPOTENCY_KNOWN, /* the answer is there */
	IDEMPOTENCY_OTHER, /* the key belongs to another request */
	IDEMPOTENCY_FULL,  /* too many are running */
};

/* Waits if the first request still runs. request: what must be the same, such as path and body.
 * KNOWN: *ret is a copy of the answer, freed by the caller. */
enum idempotency idempotency_begin(struct tenant *t, const char *key, const void *request,
				   size_t len, char **ret);
/* answer NULL: it failed before it began, and may be sent again as new. */
void idempotency_end(struct tenant *t, const char *key, const char *answer);
void idempotency_done(struct tenant *t);
