/* serve/mcp/mcpcall.h - one running tool call: its request, its sandbox, its progress messages and
 * its result. */
#pragma once

#include <pthread.h>

#include "serve/mcp/mcp.h"

struct mcpcall {
	struct mcp *mcp;
	const struct mcp_sink *sink; /* NULL: nobody listens */
	const json_t *args;          /* NULL: none */
	const json_t *id;
	json_t *number; /* tells it from all others of the client, also from those of the same id */
	const json_t *meta;  /* of the request; NULL: none */
	const json_t *token; /* of progress; NULL: none is wanted */
	int log_level;       /* the least that is wanted; -1: nothing */
	/* The result. */
	json_t *structured; /* as data */
	json_t *content;    /* further parts: images */
	char *text;         /* as text; NULL: the data's */
	bool is_error;
	json_t *refusal; /* {code, message, data}: a JSON-RPC error in place of a result */
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
	char line[512]; /* what the code wrote last */
	size_t line_len;
};

/* A call that was read, but may not have begun in its own thread yet. Without it a cancel that was
 * read later could come first, and find nothing. */
struct mcpcall_notice {
	json_t *id; /* a copy */
	bool is_cancelled;
	struct mcpcall_notice *next;
};
/* By whoever reads, in the order of reading; until the call is over. */
void mcpcall_announce(struct mcp *m, struct mcpcall_notice *n, const json_t *id);
void mcpcall_forget(struct mcp *m, struct mcpcall_notice *n);

/* Puts it among the client's calls. -CORDON_LIMIT: there are too many. */
int mcpcall_begin(struct mcpcall *c, struct mcp *m, const json_t *message,
		  const struct mcp_sink *sink, struct cordon_error **reterr);
void mcpcall_end(struct mcpcall *c);
/* What it works on, with the caller's reference. */
void mcpcall_take_session(struct mcpcall *c, struct client_session *s);
struct client_session *mcpcall_leave_session(struct mcpcall *c); /* the reverse */
bool mcpcall_is_cancelled(struct mcpcall *c);
/* The one with this id, or the one that tells this sink: the other is NULL. */
void mcpcall_cancel(struct mcp *m, const json_t *id, const struct mcp_sink *sink);

/* An argument that is text, or NULL. */
const char *mcpcall_arg(const struct mcpcall *c, const char *name);
int mcpcall_need(const struct mcpcall *c, const char *name, const char **ret,
		 struct cordon_error **reterr);

/* "debug" to "emergency"; -1: no such level. */
int mcpcall_level(const char *name);
/* What the client did not ask for is not sent. */
void mcpcall_log(struct mcpcall *c, const char *level, const char *text);
/* total < 0: unknown. */
void mcpcall_progress(struct mcpcall *c, double progress, double total, const char *message);
/* From here to there the client is told every second how long the code has run and what it wrote
 * last, if it wants to know. */
void mcpcall_watch(struct mcpcall *c);
void mcpcall_wrote(struct mcpcall *c, const char *bytes, size_t len);
void mcpcall_unwatch(struct mcpcall *c);
