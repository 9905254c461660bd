/* serve/rpc/rpc.h - JSON-RPC 2.0, one message per line: the whole library, for one client.
 *
 * The thread that reads a slow request also runs it, and another thread takes over reading. So no
 * request waits to be handed over, and cancels, tool answers and other requests are read meanwhile.
 * The reader itself runs quick requests, such as those on files, in the order of arrival. */
#pragma once

#include <cordon/policy.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/json.h"
#include "serve/rpc/attachment.h"
#include "serve/rpc/callback.h"
#include "serve/rpc/client_session.h"
#include "serve/rpc/line.h"
#include "serve/rpc/sink.h"
#include "serve/rpc/waitlist.h"

enum { RPC_PROTOCOL = 1, RPC_LINE_MAX = 8 << 20, RPC_REQUESTS_MAX = 256 };

/* Where the server itself keeps the files of offloaded sessions, instead of in memory. Any
 * thread. */
struct rpc_storage {
	/* params: those of session.open. The export begins at the descriptor's start. */
	int (*save)(const char *id, const json_t *params, uint64_t memory, int fd, void *arg,
		    struct cordon_error **reterr);
	int (*load)(const char *id, int *ret_fd, void *arg, struct cordon_error **reterr);
	void (*forget)(const char *id, void *arg); /* also one that it does not have */
	void *arg;
};

struct rpc;
struct request;
struct rpc_method;

/* What a server of many clients decides and learns about one; zeroed: nothing. The client's threads
 * call them. */
struct rpc_hooks {
	/* Whether the client may send this, before its session is looked up. It may change params.
	 */
	int (*permit)(const struct rpc_method *m, json_t *params, void *arg,
		      struct cordon_error **reterr);
	/* Around a method that runs code. result: JSON text; NULL: it failed with e. */
	int (*begin)(const struct request *q, void **ret, void *arg, struct cordon_error **reterr);
	void (*end)(void *execution, const char *result, const struct cordon_error *e, void *arg);
	/* Nothing came for a while, so no thread reads any more: rpc_wake is due when in_fd is
	 * readable. A new client begins like that. NULL: a thread always reads. */
	void (*parked)(void *arg);
	/* The client is gone: rpc_finish is due, which this thread may call. */
	void (*over)(void *arg);
	void *arg;
};

struct rpc_options {
	int in_fd, out_fd;
	const struct cordon_policy
		*policy;         /* default for sessions that name no level; NULL: standard */
	const char *program;     /* path of `cordon`, for doctor.prove; NULL: no such method */
	const struct sink *sink; /* instead of lines to out_fd; NULL: those */
	unsigned sessions;       /* at most; 0: CLIENT_SESSION_SESSIONS_MAX */
	struct client_session_quota *quota; /* shared with others; NULL: none */
	const struct rpc_storage *storage;  /* NULL: none */
	bool is_shared;  /* the process serves other clients too: a session's interpreters and audit
			    log are those of policy */
	bool is_limited; /* policy is also what sessions may do at most */
	const struct rpc_hooks *hooks; /* copied; NULL: none */
};

/* Serves until the client is gone, then ends everything it owned. 0, or -CORDON_TIMEOUT: something
 * did not end in time and was not freed; it ends with the process. -CORDON_OS also if there is no
 * thread to read with; the client has been told. */
int rpc_serve(const struct rpc_options *o, struct cordon_error **reterr);
/* The same in parts, for a server that holds no thread for an idle client: rpc_new, rpc_wake when
 * there is input, rpc_finish at the end. False: no thread could be started; nothing has changed. */
bool rpc_wake(struct rpc *c);
/* Ends as rpc_serve does; afterwards c is gone, except after -CORDON_TIMEOUT. */
int rpc_finish(struct rpc *c, struct cordon_error **reterr);
/* Frees what owns nothing any more. */
void rpc_done(struct rpc *c);
/* Tells a client that no thread can be started for it, as the answer to its first line. */
void rpc_turn_away(int fd);

/* For lines from another source; the caller's thread runs each request. in_fd is not used. NULL:
 * out of memory. */
struct rpc *rpc_new(const struct rpc_options *o);
bool rpc_take_line(struct rpc *c, const char *line, size_t len); /* false: it was the last */
void rpc_free(struct rpc *c); /* ends everything the client owned */
/* Cancels all executions and does not wait for their end: they are interrupted at the same time,
 * and killed if they go on. Nobody answers their questions any more. Sessions stay. Any thread. */
void rpc_cancel(struct rpc *c);
/* Ends everything the client owns; later requests fail. Any thread. */
void rpc_close(struct rpc *c);

/* For another protocol, with a sink of its own: runs a method in the caller's thread, any number at
 * once. The result is JSON text. */
struct rpc_call {
	const char *method;
	json_t *params; /* borrowed; NULL: none */
	json_t *id;     /* names it for `cancel` and in messages; borrowed; NULL: no name */
};
int rpc_run(struct rpc *c, const struct rpc_call *call, struct buf *ret,
	    struct cordon_error **reterr);

/* One client; for the files of this room. */
struct rpc {
	struct linein in;
	struct lineout out;
	struct sink sink; /* to out, or another one */
	uint64_t lines;   /* read so far, including too long ones; used only by the reader */
	struct attachment attachment; /* of the message that is being read; the reader's */
	struct client_sessions sessions;
	struct callbacks callbacks;
	struct waitlist waits;
	const struct cordon_policy *policy;
	bool is_shared, is_limited;
	struct rpc_storage storage; /* zero: none */
	const char *program;
	struct rpc_hooks hooks;
	pthread_mutex_t reading; /* held by the thread that reads */
	pthread_mutex_t lock;    /* guards the fields below */
	pthread_cond_t changed;
	unsigned threads, waiting, busy; /* total; waiting for `reading`; running a request */
	bool is_over;
	bool is_at_end; /* over because the input ended; set before is_over */
	bool is_alone;  /* no further threads can be started */
	bool is_parked; /* no thread reads; see rpc_hooks */
	struct client_session
		*home; /* the default sandbox, for requests that name none; NULL: not created */
	struct proof *proof;           /* the running one; NULL: none */
	struct command_call *commands; /* requests that wait for a command */
};

/* One request being handled. */
struct request {
	struct rpc *rpc;
	const struct rpc_method *method;
	json_t *message; /* owned */
	json_t *id;      /* borrowed; NULL: a notification */
	json_t *params;  /* borrowed; NULL: none */
	struct client_session *cs;
	struct cordon_session *loan; /* a session from the pool, not used yet; NULL: none */
	struct attachment attachment;
	struct attachment answer; /* what to send after the result */
	bool is_pod_style;        /* it named a sandboxId, or nothing, instead of a session */
	bool has_begun;           /* it has begun an execution of the client session */
	bool makes_home;          /* its session is the default sandbox, but not open yet */
};

enum rpc_flags {
	RPC_SLOW = 1 << 0,    /* may take time: not in the reader's thread */
	RPC_SESSION = 1 << 1, /* works on a session */
	RPC_POOL = 1 << 2,    /* works on a pool */
	RPC_EXECUTE = 1 << 3, /* occupies its session */
	RPC_LAST = 1 << 4,    /* the connection ends after the answer */
	RPC_ASLEEP = 1 << 5,  /* also on an offloaded session */
	RPC_CLOSE = 1 << 6,   /* ends the session, even while it is being moved */
	RPC_WAITS = 1 << 7,   /* needs a session of the pool, and waits for it without a thread */
	RPC_CONTEXT = 1 << 9, /* also in a context of the session, which it names */
	RPC_HOME = 1 << 11,   /* makes the default sandbox, which is known once it was read */
	RPC_CODE = 1 << 10,   /* runs code: counts as an execution */
	RPC_ENDS = 1 << 8,    /* ends something: gets a place even if all others are taken */
};

/* Writes the result as JSON text. */
typedef int (*rpc_fn)(struct request *q, struct buf *ret, struct cordon_error **reterr);

struct rpc_method {
	const char *name;
	rpc_fn fn;
	int flags;
	const char *params; /* accepted parameters besides the target's, separated by blanks; "*":
			       any */
};

#define OPEN_PARAMS_PARAMS                                                                         \
	"guest level policy set tools host_tools env workspace cold audit verbose storage "        \
	"directory languages packages"
#define EXECUTION_PARAMS                                                                           \
	"code context variables stdin stdin_base64 timeout_ms tool_calls validate stream "         \
	"keep_output buffer buffers"

/* Tables end with a zeroed entry. */
extern const struct rpc_method rpc_session_methods[];
extern const struct rpc_method rpc_files_methods[];
extern const struct rpc_method rpc_workspace_methods[];
extern const struct rpc_method rpc_pool_methods[];
extern const struct rpc_method rpc_machine_methods[];
extern const struct rpc_method rpc_sandbox_methods[];
extern const struct rpc_method rpc_move_methods[];
extern const struct rpc_method rpc_archive_methods[];
extern const struct rpc_method rpc_pod_methods[];
extern const struct rpc_method rpc_fetch_methods[];
extern const struct rpc_method rpc_proof_methods[];
extern const struct rpc_method rpc_process_methods[];
extern const struct rpc_method rpc_port_methods[];
extern const struct rpc_method rpc_watch_methods[];
const struct rpc_method *rpc_find_method(const char *name); /* NULL: there is none */
/* Calls fn for every method of every table. */
void rpc_visit_methods(void (*fn)(const struct rpc_method *m, void *arg), void *arg);

/* For code that has taken over a request: runs it in a thread of its own, or answers with an error.
 * Both free it. */
void rpc_carry_on(struct request *q);
void rpc_refuse(struct request *q, const struct cordon_error *e);
bool rpc_has_id(const struct request *q, const json_t *id);
/* Starts a thread that the end of the client waits for, until rpc_leave(). q: its argument; NULL:
 * c. */
bool rpc_start_thread(struct rpc *c, void *(*fn)(void *), struct request *q);
void rpc_leave(struct rpc *c);

/* Sends a notification to the client; params: JSON text. */
bool rpc_notify(struct rpc *c, const char *method, const char *params, size_t len);
