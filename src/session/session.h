/* session/session.h - the inside of a session, shared by the files of this room.
 *
 * A thread holds a session with session_hold(). Only the holder changes the session's parts, and it
 * reads them without a lock. Other threads read `engine`, `network`, `is_closed`, `executions`,
 * `env` and `snapshots` under `lock`, and `workspace` under `files_lock`. So the holder replaces
 * these under the same locks, and frees the old ones only afterwards. wall/box.h says what other
 * threads may do with an engine's box. A network is used with a reference, because answering it may
 * take a while. */
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

/* What another thread asks of the running execution. Dropped when that execution is over. */
enum session_wish {
	WISH_CANCEL = 1 << 0,    /* it must end */
	WISH_INTERRUPT = 1 << 1, /* ^C */
};

struct cordon_session {
	char id[SESSION_ID_BYTES];
	enum guest_kind kind;
	struct policy policy; /* its own copy */
	struct cordon_tools *tools;
	cordon_pre_execute_fn pre_execute;
	void *pre_execute_arg;
	cordon_approval_fn approval;
	void *approval_arg;
	cordon_audit_fn on_audit; /* for its forks, as the next */
	void *audit_arg;
	cordon_log_fn log;
	void *log_arg;
	struct audit *audit;
	struct tool_calls *calls; /* where its tool calls are handled */
	bool is_cold, is_ahead;
	bool is_once;    /* for one execution: nothing is kept after its result */
	char *directory; /* where the code starts; NULL: /home/user */
	char *cwd;       /* where it is now, as the guest says; NULL: where it started */
	bool is_moved;   /* the guest is to go there before it executes again */

	/* Held while the workspace is replaced, and by threads that use it without holding the
	 * session. */
	pthread_mutex_t files_lock;
	pthread_mutex_t lock; /* of the fields below */
	pthread_cond_t idle;  /* signalled when an execution has ended */
	bool is_busy, is_closed;
	json_t *env;     /* session_env() */
	int cancel_fd;   /* eventfd: readable when the running execution is wanted for something */
	unsigned wishes; /* enum session_wish: for what */
	struct engine *engine;   /* NULL: it could not be replaced, and is by the next execution */
	struct network *network; /* its gateway; NULL: the policy opens nothing */
	struct workspace *workspace; /* of files_lock; stays when the engine is lost */
	struct snapshots *snapshots; /* NULL before the first one */
	struct persist *persist;     /* its persistent name; NULL: ephemeral */
	uint64_t executions, next_id;
	struct timeline timeline;
	struct cordon_session *watch_next; /* of idle_watch.c, under its lock */
};

/* Makes a pod's packages ready before its launch. The modules room, which uses sessions itself,
 * sets it when the program starts. NULL: that room was not linked in. */
extern int (*session_prepare_packages)(const struct policy *p, struct cordon_error **reterr);

/* cordon_session_open; ahead: before anyone asks for it. */
int session_open(const struct cordon_session_options *opts, bool ahead, struct cordon_session **ret,
		 struct cordon_error **reterr);

/* A first engine, greeted and ready, with a workspace. The caller holds the session busy. */
int session_start_engine(struct cordon_session *s, struct cordon_error **reterr);
void session_drop_engine(struct cordon_session *s);
bool session_is_closed(struct cordon_session *s);

/* Changes of the environment for later executions, NAME: value or null. A copy that belongs to the
 * caller, because JSON references are not thread-safe; NULL: no memory. */
json_t *session_env(struct cordon_session *s);
/* What is saved besides the files: {"env": {...}, "cwd": "..."}; to be freed. */
char *session_state_text(struct cordon_session *s);
void session_take_state(struct cordon_session *s, const char *text);
/* The guest reported its directory. Ignored if it is not a directory's name. */
void session_note_cwd(struct cordon_session *s, const char *path, size_t len);

/* Holds the session for one piece of work, or fails because it is closed or busy (busy_text). */
int session_hold(struct cordon_session *s, const char *busy_text, struct cordon_error **reterr);
void session_let_go(struct cordon_session *s);
/* Called by the thread that executes: the wishes since the last call, enum session_wish. */
unsigned session_take_wishes(struct cordon_session *s);

/* One execution on the session's engine; the caller holds the session busy. *ret_alive: the engine
 * can go on. */
struct cordon_result;
