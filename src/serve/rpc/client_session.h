/* serve/rpc/client_session.h - the sessions and pools of one client, by id. They live as long as
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

/* A limit on the sessions of several clients together. */
struct client_session_quota {
	atomic_uint used;
	unsigned max;
	bool (*make_room)(void *arg); /* ends an unused one; false: all are in use */
	void *arg;
	_Atomic uint64_t memory;            /* bytes that the sessions may use, by their policies */
	uint64_t memory_max;                /* 0: no limit */
	atomic_uint executing;              /* executions that run now */
	unsigned executing_max;             /* 0: no limit */
	_Atomic uint64_t attached;          /* bytes of attachments that are in memory */
	uint64_t attached_max;              /* 0: no limit */
	struct client_session_quota *above; /* must have room, too; NULL: none */
};

struct client_sessions {
	pthread_mutex_t lock;   /* also guards the fields of the client sessions */
	pthread_cond_t changed; /* a client session was opened, released, or ended its execution */
	struct client_session *first;
	unsigned sessions, forks, pools;
	unsigned max;        /* sessions; CLIENT_SESSION_SESSIONS_MAX unless changed */
	unsigned pool_count; /* number made so far, for their names */
	bool is_closing;
	bool is_draining; /* no more requests will come: what waits for one must end */
	struct client_session_quota *quota; /* NULL: only the limits above */
	char *loss; /* what a closed session could not save, if not reported yet */
};

enum client_session_kind { CLIENT_SESSION_SESSION, CLIENT_SESSION_POOL };

struct client_session {
	char id[CLIENT_SESSION_ID_BYTES];
	enum client_session_kind kind;
	struct cordon_session *session; /* NULL while it is opened */
	struct cordon_pool *pool;
	struct client_session *lender; /* the pool that lent the session; NULL: none */
	struct client_session
		*owner; /* of a context: that of its sandbox; NULL: it is no context */
	struct cordon_project *project; /* open in the session; NULL: none */
	json_t *open_params; /* the parameters that it was opened with; NULL: it cannot be reopened
			      */
	json_t *history;     /* commands that were run; NULL: none */
	char *state;   /* base64 of its files while it is offloaded and the client has no storage */
	json_t *label; /* name given by the client; NULL: none */
	bool is_fork, is_closing, is_failed;
	bool is_changing;    /* a context of it is being made */
	unsigned leaving;    /* contexts of it that are being closed */
	bool is_suspended;   /* new executions wait until it is resumed */
	bool is_unwanted;    /* the execution was cancelled */
	bool is_offloaded;   /* there is no session; its files are stored elsewhere */
	bool is_moving;      /* its session is being replaced: no new use may begin */
	bool is_exchanging;  /* this execution replaces the session and cannot be cancelled */
	bool has_storage;    /* the client stores the files of offloaded sessions */
	bool is_implicit;    /* made for a call without a sandbox id: may be ended to make room */
	bool is_restored;    /* it was offloaded, and nobody was told that its variables are gone */
	bool has_contexts;   /* an MCP sandbox with several languages */
	bool is_default;     /* made for the calls of an MCP client that name none */
	char guest[16];      /* for information only */
	uint64_t used_ns;    /* when it was last looked up or released */
	uint64_t execution;  /* number of the running one; 0: none */
	json_t *request;     /* id of the request that runs it */
	uint64_t executions; /* number started so far, to number them */
	unsigned snapshots;  /* number made without a name, to number them */
	unsigned outputs;    /* number of MCP results that were kept in files, to number them */
	unsigned places;     /* sessions that it counts for; 0: none */
	uint64_t memory;     /* bytes that it counts for; 0: nothing */
	uint64_t memory_offloaded; /* what it counted for before it was offloaded */
	unsigned refs;             /* including the table's own */
	struct client_session *next;
};

void client_sessions_init(struct client_sessions *t);
void client_sessions_done(struct client_sessions *t);

/* A client session that is not open yet, with one reference for the table and one for the caller.
 * Checks the limits. */
int client_session_new(struct client_sessions *t, bool is_fork, struct client_session **ret,
		       struct cordon_error **reterr);
/* The same for a pool, which counts as the sessions that it may have. */
int client_session_new_pool(struct client_sessions *t, unsigned sessions,
			    struct client_session **ret, struct cordon_error **reterr);
/* A client session for a session lent by a pool, which gets it back when the client session is
 * closed. Does not count towards the limits. */
int client_session_lend(struct client_sessions *t, struct client_session *pool,
			struct cordon_session *session, struct client_session **ret,
			struct cordon_error **reterr);
/* The client session of a context in a sandbox with several languages; makes both where they do not
 * exist. It does not count towards the limits and ends with its owner's. The default context is the
 * owner itself. client_session_put drops the reference. */
int client_session_context(struct client_sessions *t, struct client_session *owner,
			   const char *language, const char *name, struct client_session **ret,
			   struct cordon_error **reterr);
/* Counts the memory that it may use. -CORDON_LIMIT: all sessions together may not use so much.
 * -CORDON_DENIED: it alone may not, either. */
int client_session_charge(struct client_sessions *t, struct client_session *s, uint64_t bytes,
			  struct cordon_error **reterr);
/* It does not count any more, because it is offloaded; client_session_charge counts it again. */
void client_session_discharge(struct client_sessions *t, struct client_session *s);
/* An offloaded session of an earlier run, with its id. Takes params. */
int client_session_restore(struct client_sessions *t, const char *id, json_t *params,
			   uint64_t memory, struct cordon_error **reterr);
/* It is open: takes the session's id. Or opening failed: it leaves the table. */
void client_session_open_session(struct client_sessions *t, struct client_session *s,
				 struct cordon_session *session);
void client_session_open_pool(struct client_sessions *t, struct client_session *s,
			      struct cordon_pool *pool);
void client_session_fail(struct client_sessions *t, struct client_session *s);

/* Looks it up by id and waits until it is open. NULL: not found. client_session_put drops the
 * reference. */
struct client_session *client_session_get(struct client_sessions *t, const char *id,
					  enum client_session_kind kind);
struct client_session *client_session_ref(struct client_sessions *t, struct client_session *s);
void client_session_put(struct client_sessions *t, struct client_session *s);
/* Waits until a client session that the caller holds is open; false: opening failed. */
bool client_session_wait_open(struct client_sessions *t, struct client_session *s);

/* Marks an execution as begun. -CORDON_STATE: one is running. */
int client_session_begin(struct client_sessions *t, struct client_session *s, json_t *request,
			 struct cordon_error **reterr);
/* The same, but waits for the running one to end. -CORDON_CANCELLED: is_over returned true. */
int client_session_begin_in_turn(struct client_sessions *t, struct client_session *s,
				 json_t *request, bool (*is_over)(void *arg), void *arg,
				 struct cordon_error **reterr);
void client_session_end(struct client_sessions *t, struct client_session *s);
/* Called after begin, before executing: waits while the client session is suspended.
 * -CORDON_CANCELLED: do not run. */
int client_session_pass(struct client_sessions *t, struct client_session *s,
			struct cordon_error **reterr);
/* Whether it, or a context of it, executes. Called with the lock held. */
bool client_session_is_busy(const struct client_sessions *t, const struct client_session *s);
/* References to it and to its contexts, besides their own. Called with the lock held. */
unsigned client_session_users(const struct client_sessions *t, const struct client_session *s);
/* Whether nobody uses it, nor a context of it. Called with the lock held. */
bool client_session_is_unused(const struct client_sessions *t, const struct client_session *s);
/* -CORDON_STATE: an execution is running. */
int client_session_suspend(struct client_sessions *t, struct client_session *s,
			   struct cordon_error **reterr);
void client_session_resume(struct client_sessions *t, struct client_session *s);
/* No more requests will come: ends executions that wait for client_session_resume. */
void client_sessions_drain(struct client_sessions *t);
/* Ends the running execution, if any, and waits for its end. False: there was none, or it already
 * replaces the session. It must not wait for that, because a replacement waits for the caller's
 * reference. */
bool client_session_cancel(struct client_sessions *t, struct client_session *s);
/* The client session whose execution runs for this request, or NULL. client_session_put drops the
 * reference. */
struct client_session *client_session_by_request(struct client_sessions *t, const json_t *request);
/* The id of the request that executes in this session, as JSON text; the caller frees it. NULL:
 * none, or no memory. */
char *client_session_request(struct client_sessions *t, const char *session);
/* The client session's id for a session's id. It stays the same when the session is replaced. */
void client_session_name(struct client_sessions *t, const char *session,
			 char ret[CLIENT_SESSION_ID_BYTES]);
/* Called by the holder of the execution: no new use of the client session or of its contexts
 * begins, contexts that run code are closed, and earlier users have left when it returns. others:
 * references that stay, besides the table's and the caller's. -CORDON_CANCELLED: the execution was
 * cancelled or the client session closed meanwhile; nothing is locked. */
int client_session_lock(struct client_sessions *t, struct client_session *s, unsigned others,
			struct cordon_error **reterr);
/* Ends client_session_lock with another session, or none (offloaded), and closes its contexts; or
 * with the same one: then they stay. Returns the old session. */
struct cordon_session *client_session_unlock(struct client_sessions *t, struct client_session *s,
					     struct cordon_session *session);
/* Removes it from the table, ends its execution, waits for all other users, and closes it. Takes
 * the caller's reference. */
void client_session_close(struct client_sessions *t, struct client_session *s);
/* Closes all, executions first. Afterwards no client session is made or found. */
void client_sessions_close(struct client_sessions *t);
/* What a closed session could not save, as text; the caller frees it. NULL: nothing. */
char *client_sessions_take_loss(struct client_sessions *t);
/* Closes an offloaded session. False: somebody uses it, so it stays. */
bool client_session_drop(struct client_sessions *t, const char *id);
/* Ends unused sessions that were not used since then. only_implicit: only those made for calls
 * without a sandbox id. keep: how many may stay regardless of age. */
void client_sessions_expire(struct client_sessions *t, uint64_t before_ns, bool only_implicit,
			    unsigned keep);
/* When the least recently used idle session was last used; UINT64_MAX: there is none. */
uint64_t client_sessions_oldest_ns(struct client_sessions *t);
/* Calls fn for every open session that is no context, under the lock. */
void client_sessions_visit(struct client_sessions *t,
			   void (*fn)(const struct client_session *s, void *arg), void *arg);
