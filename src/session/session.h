/* session/session.h - the inside of a session, shared by the files of this room.
 *
 * A thread holds a session with session_hold(). Only the holder changes the session's parts, and it
 * reads them without a lock. Other threads read `engine`, `network`, `is_closed`, `executions`,
 * `env` and `snapshots` under `lock`, and `workspace` under `files_lock`. So the holder replaces
 * these under the same locks, and frees the old ones only afterwards. wall/wall.h says what
 * other threads may do with an engine's box. A network is used with a reference, because answering
 * it may take a while. */
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

enum { SESSION_ID_BYTES = 40 };

/* What another thread asks of the running execution. Forgotten when that execution is over. */
enum session_wish {
	WISH_CANCEL = 1 << 0,    /* end it */
	WISH_INTERRUPT = 1 << 1, /* send it SIGINT, like ^C */
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

	/* Held while the workspace is replaced, and by threads that use it without holding the
	 * session. */
	pthread_mutex_t files_lock;
	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t idle;  /* signalled when an execution has ended */
	bool is_busy, is_closed;
	json_t *env;           /* session_env() */
	int cancel_fd;         /* an event (base/os.h), readable when `wishes` is set */
	unsigned wishes;       /* bits of enum session_wish */
	struct engine *engine; /* NULL: it could not be replaced; the next execution tries again */
	struct network *network;     /* its gateway; NULL: the policy opens no network */
	struct workspace *workspace; /* guarded by files_lock; outlives the engine */
	struct snapshots *snapshots; /* NULL until the first one */
	struct persist *persist;     /* its persistent name; NULL: not persistent */
	uint64_t executions, next_id;
	struct timeline timeline;
	struct cordon_session *watch_next; /* list of idle_watch.c, guarded by its lock */
};

/* Prepares a pod's packages before its launch. The modules room sets it at program start: that room
 * uses sessions, so sessions cannot call it directly. NULL: it was not linked in. */
extern int (*session_prepare_packages)(const struct policy *p, struct cordon_error **reterr);

/* As cordon_session_open. ahead: a pool makes the session before anyone asks for it. */
int session_open(const struct cordon_session_options *opts, bool ahead, struct cordon_session **ret,
		 struct cordon_error **reterr);

void session_drop_engine(struct cordon_session *s);
bool session_is_closed(struct cordon_session *s);

/* Environment changes for later executions: NAME to value or null. Returns a copy that the caller
 * owns, because JSON reference counts are not thread-safe. NULL: no memory. */
json_t *session_env(struct cordon_session *s);
/* What is saved besides the files: {"env": {...}, "cwd": "..."}. The caller frees it. */
char *session_state_text(struct cordon_session *s);
void session_take_state(struct cordon_session *s, const char *text);
/* The guest reported its current directory. Ignored if it cannot be the name of one. */
void session_note_cwd(struct cordon_session *s, const char *path, size_t len);

/* Holds the session for one operation. Fails if it is closed, or busy (with busy_text). */
int session_hold(struct cordon_session *s, const char *busy_text, struct cordon_error **reterr);
void session_let_go(struct cordon_session *s);
/* Returns the wishes since the last call, bits of enum session_wish. Only for the thread that
 * executes. */
unsigned session_take_wishes(struct cordon_session *s);

/* Runs one execution on the session's engine; the caller holds the session. *ret_alive: the engine
 * can be used again. */
struct cordon_result;
