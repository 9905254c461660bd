/* serve/http/hangup.h - notices that a client closed its connection while it waits for an answer.
 * The HTTP library does not look at such a connection. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct hangup;

/* One connection that is watched; the caller's memory. Zero: not watched. */
struct hangup_entry {
	int fd;
	bool is_watched;
	bool is_ended; /* by hangup_end: the descriptor may be another's now */
	void (*fn)(void *arg);
	void *arg;
	struct hangup_entry *prev, *next;
};

/* Starts a thread. */
int hangup_new(struct hangup **ret, struct cordon_error **reterr);
/* Accepts NULL; always returns NULL. */
struct hangup *hangup_free(struct hangup *h);
/* fn runs once, in the thread of h. The descriptor must stay open until hangup_remove or
 * hangup_end. False: hangup_end was called, and fn does not run. */
bool hangup_add(struct hangup *h, struct hangup_entry *e);
/* The connection ends for another reason: the same as if the client had closed it. */
void hangup_end(struct hangup *h, struct hangup_entry *e);
/* Afterwards fn is not running. Does nothing if it is not watched. Not from fn. */
void hangup_remove(struct hangup *h, struct hangup_entry *e);
