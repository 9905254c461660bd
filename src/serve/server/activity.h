/* serve/server/activity.h - the executions of a tenant, running and recent, and the questions of
 * running ones (tool calls, approvals) that wait for an answer. */
#pragma once

#include "serve/server/tenant.h"
#include "serve/trace/span.h"

enum { ACTIVITY_ID_BYTES = 32, ACTIVITIES_KEPT = 256 };

struct activity {
	char id[ACTIVITY_ID_BYTES]; /* "exec_..." */
	char session[CLIENT_SESSION_ID_BYTES];
	char language[16];
	char outcome[24]; /* "success", an error kind, or the code of an error; "": it runs */
	int64_t begun_ms; /* wall clock */
	uint64_t begun_ns;
	double ms;                     /* how long it took; so far 0 */
	struct httpd_exchange *stream; /* gets its events; NULL: none */
	bool is_running;
	struct span span;
	struct activity *next;
};

struct activity_options {
	const char *session;  /* "": none */
	const char *language; /* NULL: unknown, as there is no such session */
	/* Gets the events: an exchange whose stream has begun. A reference is held until
	 * activity_end. NULL: none. */
	struct httpd_exchange *stream;
	const struct trace_context *parent; /* of its span; NULL: a new trace begins */
	const struct trace_context *link;   /* another span that it has to do with; NULL: none */
};

/* -CORDON_LIMIT: the tenant's executions are all running. */
int activity_begin(struct tenant *t, const struct activity_options *o, struct activity **ret,
		   struct cordon_error **reterr);
/* outcome: as in the struct. result: its text, for its figures; NULL: none. a is not valid
 * afterwards. */
void activity_end(struct tenant *t, struct activity *a, const char *outcome, const char *result);
/* The output of these executions, which are about to end, waits for no reader any more. id NULL: of
 * all in the session; session NULL: of all sessions. */
void activity_hurry(struct tenant *t, const char *session, const char *id);
/* The outcome by the result, JSON text, or NULL and an error. ret: memory for it. */
const char *activity_outcome(const char *result, const struct cordon_error *e, char *ret,
			     size_t size);
/* Whether it is neither over nor unknown. It may not have begun in its session. */
bool activity_is_running(struct tenant *t, const char *id);
/* All, or those of one session, newest first: a JSON array; NULL: out of memory. */
json_t *activity_list(struct tenant *t, const char *session);
/* One, as in the list; NULL: there is none. */
json_t *activity_find(struct tenant *t, const char *session, const char *id);

/* What waits for an answer, of one session or of all: {"tool_calls": [...], "approvals": [...]}. */
json_t *activity_pending(struct tenant *t, const char *session);
/* Whether this one waits in this session; it is no longer listed then. */
bool activity_take_pending(struct tenant *t, const char *session, const char *id);

/* For the sink of the tenant's client. */
bool activity_send(const struct sink_message *m, void *tenant);
void activity_output(const struct sink_output *o, void *tenant);
