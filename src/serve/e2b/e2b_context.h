/* serve/e2b/e2b_context.h - the interpreters of a sandbox: a default one for each language, and
 * those that clients make. Each runs one execution at a time; others wait their turn. */
#pragma once

#include "serve/e2b/e2b_sandbox.h"

enum { E2B_WAITING_MAX = 16 };

struct e2b_context {
	char id[40];
	char language[16]; /* as clients say it */
	const char *guest;
	bool is_typescript, is_default;
	char *cwd;
	struct cordon_session *session;

	/* Guarded by the sandbox's lock. */
	bool is_busy, is_removed;
	bool is_abandoned;             /* the client of its execution is gone */
	struct httpd_exchange *stream; /* gets the output of its execution */
	unsigned waiting, refs;
	uint64_t executions;
	struct e2b_context *next;
};

/* The one with this id, or the default one of this language (NULL: python), which is made. With a
 * reference. */
int e2b_context_get(struct e2b_sandbox *b, const char *id, const char *language,
		    struct e2b_context **ret, struct cordon_error **reterr);
void e2b_context_put(struct e2b_sandbox *b, struct e2b_context *c);
/* Waits for its turn. stream: gets the output, or NULL. is_over: the client is gone. *ret: the
 * number of this execution. */
int e2b_context_begin(struct e2b_sandbox *b, struct e2b_context *c, struct httpd_exchange *stream,
		      const _Atomic bool *is_over, uint64_t *ret, struct cordon_error **reterr);
void e2b_context_end(struct e2b_sandbox *b, struct e2b_context *c);
/* The client of the execution is gone: it is cancelled, now or as soon as it runs. */
void e2b_context_abandon(struct e2b_sandbox *b, struct e2b_context *c);
/* Cancels again what has begun since. */
void e2b_context_cancel_all(struct e2b_sandbox *b);

/* Kills what they execute; does not wait. */
void e2b_context_end_all(struct e2b_sandbox *b);
/* New interpreters in the same sandbox, after a pause that kept the files only. */
int e2b_context_restart_all(struct e2b_sandbox *b, struct cordon_error **reterr);
/* After the session was closed. */
void e2b_context_free_all(struct e2b_sandbox *b);
