/* serve/mcp/mcpcall.h - one running tool call: its request, its sandbox, its progress messages and
 * its result. */
#pragma once

#include <pthread.h>

#include "serve/mcp/mcp.h"

struct mcpcall {
	struct mcp *mcp;
	const struct mcp_sink *sink; /* NULL: no notifications */
	const json_t *args;          /* NULL: none */
	const json_t *id;
	json_t *number;      /* unique among all calls of the client, also those with the same id */
	const json_t *meta;  /* of the request; NULL: none */
	const json_t *token; /* progress token; NULL: no progress wanted */
	int log_level;       /* lowest level wanted; -1: none */
	struct span *span;   /* of the request: the parent of others */
	/* The result. */
	json_t *structured; /* as data */
	json_t *content;    /* further content: images */
	char *text;         /* as text; NULL: the data as text */
	bool is_error;
	bool is_apart;        /* its default sandbox was opened and has one language */
	bool may_use_default; /* a call of manage_sandbox without sandbox_id */
	bool is_replaced;     /* its default sandbox is new, because the earlier one is gone */
	json_t *refusal;      /* {code, message, data}: a JSON-RPC error instead of a result */
	/* Guarded by the client's lock. */
	struct client_session *cs;
	bool is_cancelled;
	struct mcpcall *next;
	/* Progress. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t ticker;
	bool has_ticker, is_over, has_news;
	uint64_t begun_ns, told_ns;
	char line[512]; /* the last line that the code printed */
	size_t line_len;
};

/* A call that was read but may not have started in its own thread yet. Without this, a cancel that
 * is read later could run first and find nothing. */
struct mcpcall_notice {
	json_t *id; /* a copy */
	bool is_cancelled;
	struct mcpcall_notice *next;
};
/* Called by the reader, in the order of reading; valid until the call is over. */
void mcpcall_announce(struct mcp *m, struct mcpcall_notice *n, const json_t *id);
void mcpcall_forget(struct mcp *m, struct mcpcall_notice *n);

/* Adds the call to the client's calls. -CORDON_LIMIT: too many. */
int mcpcall_begin(struct mcpcall *c, struct mcp *m, const json_t *message,
		  const struct mcp_sink *sink, struct cordon_error **reterr);
void mcpcall_end(struct mcpcall *c);
/* Sets the client session that the call works on. Takes the caller's reference. */
void mcpcall_take_session(struct mcpcall *c, struct client_session *s);
struct client_session *mcpcall_leave_session(struct mcpcall *c); /* gives the reference back */
bool mcpcall_is_cancelled(struct mcpcall *c);
/* By id, or by sink; the other is NULL. */
void mcpcall_cancel(struct mcp *m, const json_t *id, const struct mcp_sink *sink);

/* A string argument, or NULL. */
const char *mcpcall_arg(const struct mcpcall *c, const char *name);
int mcpcall_need(const struct mcpcall *c, const char *name, const char **ret,
		 struct cordon_error **reterr);

/* "debug" to "emergency"; -1: no such level. */
int mcpcall_level(const char *name);
/* Sent only if the client asked for this level. */
void mcpcall_log(struct mcpcall *c, const char *level, const char *text);
/* total < 0: unknown. */
void mcpcall_progress(struct mcpcall *c, double progress, double total, const char *message);
/* From here until the end, the client is told regularly how long the code has run and what it
 * printed last, if it asked for progress. */
void mcpcall_watch(struct mcpcall *c);
void mcpcall_wrote(struct mcpcall *c, const char *bytes, size_t len);
void mcpcall_unwatch(struct mcpcall *c);
