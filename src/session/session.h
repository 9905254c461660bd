/* session/session.h - the inside of a session, shared by the files of this room.
 *
 * A thread holds a session with session_hold(). Only the holder changes the session's parts, and it
 * reads them without a lock. Other threads read `engine`, `network`, `is_closed`, `executions`,
 * `cwd`, `env` and `snapshots` under `lock`, and `workspace` under `files_lock`. So the holder
 * replaces these under the same locks, and frees the old ones only afterwards. wall/wall.h says
 * what other threads may do with an engine's box. A network is used with a reference, because
 * answering it may take a while.
 *
 * A session with several languages owns a place (place.h), in which each of its contexts
 * (context.h) is a session of its own: its own holder, engine, tool calls, environment and wishes.
 * A context's `owner` is the session that owns the place; session_root() gives it. The owner's
 * files, persistence, snapshots, audit log and number of executions are those of all its contexts,
 * and its default context is the owner itself. So contexts execute at the same time, each in the
 * thread that holds it; what they share has the owner's locks:
 *
 * - `renewing`: held while the place is looked up or replaced. Whoever replaces it holds the
 *   owner's files_lock too. A context keeps references to place, network and workspace, so it can
 *   end in a place that was replaced.
 * - `contexts_lock`: the list of contexts.
 * - `lock`: `place`, `active`, `running`, `is_whole`.
 *
 * Locks are taken in this order: renewing, contexts_lock, files_lock, a context's lock, the
 * owner's lock. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit/audit.h"
#include "base/json.h"
#include "cordon/session.h"
#include "files/snapshot.h"
#include "files/workspace.h"
#include "policy/policy.h"
#include "session/engine.h"
#include "session/timeline.h"
#include "tools/tool_calls.h"

enum { SESSION_ID_BYTES = 40, CONTEXT_NAME_BYTES = 65, SESSION_MANAGERS = 3 };

/* What another thread asks of the running execution. Forgotten when that execution is over. */
enum session_wish {
	WISH_CANCEL = 1 << 0,    /* end it: interrupt it, then kill it */
	WISH_INTERRUPT = 1 << 1, /* send it SIGINT, like ^C */
	WISH_KILL = 1 << 2,      /* end it at once */
};

struct cordon_session {
	char id[SESSION_ID_BYTES];
	enum guest_kind kind;
	struct policy policy; /* a copy of its own */
	struct cordon_tools *tools;
	cordon_pre_execute_fn pre_execute;
	void *pre_execute_arg;
	cordon_approval_fn approval;
	void *approval_arg;
	cordon_audit_fn on_audit; /* kept for its forks, as is audit_arg */
	void *audit_arg;
	cordon_log_fn log;
	void *log_arg;
	struct audit *audit;
	struct tool_calls *calls; /* handles its tool calls */
	bool is_cold, is_ahead;
	bool is_once;    /* one execution only: nothing is kept after its result */
	char *directory; /* working directory of new guests; NULL: /home/user */
	char *cwd;       /* current directory as the guest reports it; NULL: where it started */
	bool is_moved;   /* the guest must change to cwd before its next execution */
	bool is_env_old; /* code has run since the guest last told what it exports */
	/* What the holder asks about code instead of running it (docs/wire.md); NULL: it runs. */
	const char *question;

	/* Held while the workspace is replaced, and by threads that use it without holding the
	 * session. */
	pthread_mutex_t files_lock;
	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t idle;  /* signalled when an execution has ended */
	bool is_busy, is_closed;
	json_t *env;           /* session_env() */
	bool is_env_new;       /* the guest does not have all of it yet */
	int cancel_fd;         /* an event (base/os.h), readable when `wishes` is set */
	unsigned wishes;       /* bits of enum session_wish */
	struct engine *engine; /* NULL: it could not be replaced; the next execution tries again */
	struct network *network;       /* its gateway; NULL: the policy opens no network */
	struct workspace *workspace;   /* guarded by files_lock; outlives the engine */
	struct snapshots *snapshots;   /* NULL until the first one */
	struct port_forward *forward;  /* of exposed ports; NULL: none yet */
	struct session_watch *watches; /* of directories; NULL: none */
	uint64_t watch_number;         /* of the last one */
	struct persist *persist;       /* its persistent name; NULL: not persistent */
	uint64_t executions;
	struct cordon_session *installer; /* the sandbox of an installation that runs; or NULL */
	struct strlist
		installed[SESSION_MANAGERS]; /* the holder's: names, as they were asked for */
	struct timeline timeline;
	struct cordon_session *watch_next; /* list of idle_watch.c, guarded by its lock */

	/* Several languages. All zero: a session with one. */
	unsigned languages;              /* of the place, bits of 1 << enum guest_kind */
	struct cordon_session *owner;    /* of a context; NULL: it is none */
	char name[CONTEXT_NAME_BYTES];   /* of a context; "": a command, or the owner */
	bool has_terminal;               /* of a command: it runs on a terminal of this size */
	struct engine_terminal terminal; /* guarded by `lock` */
	struct cordon_session *next_context;
	pthread_mutex_t renewing, contexts_lock; /* the fields below are the owner's */
	struct cordon_session *contexts;
	unsigned context_count, leaving; /* leaving: no longer in the list, not freed yet */
	struct place *place;
	struct processes *processes; /* commands in the background; NULL: none yet */
	unsigned active;             /* contexts that are held */
	uint64_t running;            /* executions that are not counted in `executions` yet */
	bool is_whole;               /* it is held together with all its contexts */
	uint64_t idle_cpu_us;        /* CPU time of the place when an execution ended last */
};

/* The session that owns the files, the audit log and, if there are several languages, the place. */
static inline struct cordon_session *session_root(struct cordon_session *s)
{
	return s->owner ? s->owner : s;
}

/* The policy's value_bytes. */
uint64_t session_value_bytes(const struct cordon_session *s);
/* The policy's memory_bytes: what a copy of the session may use. Of a context, its sandbox's. */
uint64_t session_memory_bytes(struct cordon_session *s);

/* Prepares a pod's packages before its launch. The modules room sets it at program start: that room
 * uses sessions, so sessions cannot call it directly. NULL: it was not linked in. */
extern int (*session_prepare_packages)(const struct policy *p, struct cordon_error **reterr);

/* Installs packages into a session that is being opened; set by the modules room too. names: ended
 * by NULL. */
extern int (*session_install_packages)(struct cordon_session *s, const char *const *names,
				       struct cordon_error **reterr);

/* A reference to the workspace, for a path that is not in a live mount. */
int session_workspace_at(struct cordon_session *s, const char *path, struct workspace **ret,
			 struct cordon_error **reterr);

/* As cordon_session_open. ahead: a pool makes the session before anyone asks for it. */
int session_open(const struct cordon_session_options *opts, bool ahead, struct cordon_session **ret,
		 struct cordon_error **reterr);
/* Opens one that continues another: its audit events have the same id. */
int session_reopen(const struct cordon_session_options *opts, const char *id,
		   struct cordon_session **ret, struct cordon_error **reterr);

void session_drop_engine(struct cordon_session *s);
bool session_is_closed(struct cordon_session *s);

/* Environment changes for later executions: NAME to value or null. Returns a copy that the caller
 * owns, because JSON reference counts are not thread-safe. NULL: no memory. */
json_t *session_env(struct cordon_session *s);
/* Takes ownership of next. The guest gets it before its next execution. */
void session_exchange_env(struct cordon_session *s, json_t *next);
/* A shell tells what its code has exported. It is sent only what is new, so that changes of the
 * code stay. Other guests get the environment with every execution. */
bool session_tells_env(const struct cordon_session *s);
/* What the guest must get now: a copy; NULL: nothing. */
json_t *session_take_env(struct cordon_session *s);
/* The shell is a new one: it gets everything again. */
void session_resend_env(struct cordon_session *s);
/* Asks an idle shell what its code has exported, which then belongs to the session's environment
 * as what cordon_session_setenv() sets. Without an answer the environment stays as it was. */
void session_learn_env(struct cordon_session *s);
void session_learn_env_held(struct cordon_session *s); /* the caller holds the session */
bool session_is_variable(const char *name);            /* it can be the name of one */
/* What is saved besides the files: {"env": {...}, "cwd": "..."}. The caller frees it. */
char *session_state_text(struct cordon_session *s);
void session_take_state(struct cordon_session *s, const char *text);
/* The guest reported its current directory. Ignored if it cannot be the name of one. */
void session_note_cwd(struct cordon_session *s, const char *path, size_t len);

/* Takes path over; NULL: where sessions start. Only for the holder, which may read s->cwd without
 * the lock. */
void session_set_cwd(struct cordon_session *s, char *path);
/* The guest's current directory, as far as it told. */
json_t *session_directory_json(struct cordon_session *s);

/* Holds the session for one operation. Fails if it is closed, or busy (with busy_text). */
int session_hold(struct cordon_session *s, const char *busy_text, struct cordon_error **reterr);
/* The same for a session and all its contexts: none of them may be busy. s is no context. */
int session_hold_whole(struct cordon_session *s, const char *busy_text,
		       struct cordon_error **reterr);
void session_let_go(struct cordon_session *s);
/* The steps of opening and closing, for session_execute.c and context.c. session_init_parts: what a
 * session and a context have in common. session_destroy accepts what they left half done. */
int session_init_parts(struct cordon_session *s, struct cordon_error **reterr);
int session_init(struct cordon_session *s, const struct cordon_session_options *o,
		 struct cordon_error **reterr);
int session_destroy(struct cordon_session *s, struct cordon_error **reterr);
/* Ends the running execution, and no other begins. Returns whether one runs. session_shut also
 * waits for its end. */
bool session_doom(struct cordon_session *s);
void session_shut(struct cordon_session *s);
/* Whether the files are not here: offload. */
bool session_is_offloaded(struct cordon_session *s);
int session_add_env(struct cordon_session *s, const char *const *env, struct cordon_error **reterr);
/* Returns the wishes since the last call, bits of enum session_wish. Only for the thread that
 * executes. */
unsigned session_take_wishes(struct cordon_session *s);
