/* serve/rpc/client_session.h - what one client owns: sessions and pools by id. They live as long as
 * they are in use and end with the client. */
#pragma once

#include <cordon/session.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/json.h"

enum {
	CLIENT_SESSION_ID_BYTES = 64,
	CLIENT_SESSION_SESSIONS_MAX = 64,
	CLIENT_SESSION_FORKS_MAX = 16,
	CLIENT_SESSION_POOLS_MAX = 16,
	CLIENT_SESSION_LABEL_MAX = 256,
};

/* Sessions of several clients together. */
struct client_session_quota {
	atomic_uint used;
	unsigned max;
	bool (*make_room)(void *arg); /* ends one that nobody uses; false: all are in use */
	void *arg;
};

struct client_sessions {
	pthread_mutex_t lock;   /* guards the client sessions' fields too */
	pthread_cond_t changed; /* a client session was opened, left, or has ended its execution */
	struct client_session *first;
	unsigned sessions, forks, pools;
	unsigned pool_count; /* ever made: names them */
	bool is_closing;
	bool is_draining;                   /* no request follows: what waits for one must end */
	struct client_session_quota *quota; /* NULL: none but the counts above */
	char *loss; /* what a closed session could not save, not reported yet */
};

enum client_session_kind { CLIENT_SESSION_SESSION, CLIENT_SESSION_POOL };

struct client_session {
	char id[CLIENT_SESSION_ID_BYTES];
	enum client_session_kind kind;
	struct cordon_session *session; /* NULL while it is opened */
	struct cordon_pool *pool;
	struct client_session *lender;  /* the pool that lent the session; NULL: it is its own */
	struct cordon_project *project; /* opened in the session; NULL: none */
	json_t *open_params; /* the parameters that it was opened with; NULL: it cannot be again */
	json_t *history;     /* commands that ran; NULL: none */
	char *state;         /* its files while it is offloaded and the client keeps none; base64 */
	json_t *label;       /* the client's name for it; NULL: none */
	bool is_fork, is_closing, is_failed;
	bool is_suspended;   /* executions that begin wait until it is resumed */
	bool is_unwanted;    /* the execution was cancelled */
	bool is_offloaded;   /* there is no session; its files are put away */
	bool is_moving;      /* its session will be replaced: no new use may begin */
	bool is_exchanging;  /* this execution replaces the session: it cannot be cancelled */
	bool has_storage;    /* the client keeps the files of what is offloaded */
	bool is_implicit;    /* made for a call that named none: may be ended to make room */
	char guest[16];      /* for those who want to know */
	uint64_t used_ns;    /* when somebody last looked it up or left it */
	uint64_t execution;  /* of the running one; 0: none */
	json_t *request;     /* the id of the request that runs it */
	uint64_t executions; /* ever begun: numbers them */
	unsigned snapshots;  /* ever made without a name: numbers them */
	unsigned refs;       /* the table's own is one of them */
	struct client_session *next;
};

void client_sessions_init(struct client_sessions *t);
void client_sessions_done(struct client_sessions *t);

/* A client session that is not open yet, with one reference for the table and one for the caller.
 * The counts are checked here. */
int client_session_new(struct client_sessions *t, enum client_session_kind kind, bool is_fork,
		       struct client_session **ret, struct cordon_error **reterr);
/* A client session for a session that a pool lends; it goes back when the client session is closed.
 * Does not count. */
int client_session_lend(struct client_sessions *t, struct client_session *pool,
			struct cordon_session *session, struct client_session **ret,
			struct cordon_error **reterr);
/* It is open now: the session's id becomes the client session's. Or it failed and leaves the table.
 */
void client_session_open_session(struct client_sessions *t, struct client_session *s,
				 struct cordon_session *session);
void client_session_open_pool(struct client_sessions *t, struct client_session *s,
			      struct cordon_pool *pool);
void client_session_fail(struct client_sessions *t, struct client_session *s);

/* By id; waits until it is open. NULL: there is none. The reference goes with client_session_put.
 */
struct client_session *client_session_get(struct client_sessions *t, const char *id,
					  enum client_session_kind kind);
struct client_session *client_session_ref(struct client_sessions *t, struct client_session *s);
void client_session_put(struct client_sessions *t, struct client_session *s);
/* Waits until a client session one holds is open; false: that failed. */
bool client_session_wait_open(struct client_sessions *t, struct client_session *s);

/* Marks an execution as begun, or -CORDON_STATE when one runs. */
int client_session_begin(struct client_sessions *t, struct client_session *s, json_t *request,
			 struct cordon_error **reterr);
/* The same, but waits for the end of the one that runs. -CORDON_CANCELLED: is_over said so. */
int client_session_begin_in_turn(struct client_sessions *t, struct client_session *s,
				 json_t *request, bool (*is_over)(void *arg), void *arg,
				 struct cordon_error **reterr);
void client_session_end(struct client_sessions *t, struct client_session *s);
/* By who executes, after the beginning: waits while the client session is suspended.
 * -CORDON_CANCELLED: it shall not run any more. */
int client_session_pass(struct client_sessions *t, struct client_session *s,
			struct cordon_error **reterr);
/* -CORDON_STATE: an execution runs. */
int client_session_suspend(struct client_sessions *t, struct client_session *s,
			   struct cordon_error **reterr);
void client_session_resume(struct client_sessions *t, struct client_session *s);
/* No request will come any more: executions that wait for client_session_resume end. */
void client_sessions_drain(struct client_sessions *t);
/* Ends the running execution, if any, and waits until it has ended. false: there was none, or it is
 * a replacement of the session that has begun. The caller holds a reference, for which a
 * replacement waits, so this must not wait for it. */
bool client_session_cancel(struct client_sessions *t, struct client_session *s);
/* The client session whose execution runs for this request, or NULL. The reference goes with
 * client_session_put. */
struct client_session *client_session_by_request(struct client_sessions *t, const json_t *request);
/* The request that executes in this session as JSON text, to be freed; NULL: none, or no memory. */
char *client_session_request(struct client_sessions *t, const char *session);
/* The client session's id, which stays when its session is exchanged, for that of the session. */
void client_session_name(struct client_sessions *t, const char *session,
			 char ret[CLIENT_SESSION_ID_BYTES]);
/* Called by the holder of the execution: removes it from lookups, and waits until earlier users
 * have left. others: references that stay, besides the table's and the caller's. -CORDON_CANCELLED:
 * the execution was cancelled or the client session closed meanwhile; nothing is locked. */
int client_session_lock(struct client_sessions *t, struct client_session *s, unsigned others,
			struct cordon_error **reterr);
/* The end of it, with another session or none (offloaded). The old one is returned. */
struct cordon_session *client_session_unlock(struct client_sessions *t, struct client_session *s,
					     struct cordon_session *session);
/* Takes it out of the table, ends its execution, waits for everybody else, and closes it. Takes the
 * caller's reference. */
void client_session_close(struct client_sessions *t, struct client_session *s);
/* All of it, executions first. No client session is made or found afterwards. */
void client_sessions_close(struct client_sessions *t);
/* What a session that has ended could not keep, in words, to be freed; NULL: nothing. */
char *client_sessions_take_loss(struct client_sessions *t);
/* Ends sessions that are not in use and were not used since then; only_implicit: only those made
 * for calls that named none. keep: how many may stay whatever their age. */
void client_sessions_expire(struct client_sessions *t, uint64_t before_ns, bool only_implicit,
			    unsigned keep);
/* When the session that nobody uses was last used; UINT64_MAX: there is none. */
uint64_t client_sessions_oldest_ns(struct client_sessions *t);
/* Calls fn for every open session, under the lock. */
void client_sessions_visit(struct client_sessions *t,
			   void (*fn)(const struct client_session *s, void *arg), void *arg);
