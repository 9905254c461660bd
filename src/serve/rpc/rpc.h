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
#include "serve/rpc/callback.h"
#include "serve/rpc/client_session.h"
#include "serve/rpc/line.h"
#include "serve/rpc/waitlist.h"

enum { RPC_PROTOCOL = 1, RPC_LINE_MAX = 8 << 20, RPC_REQUESTS_MAX = 256 };

struct rpc_options {
	int in_fd, out_fd;
	const struct cordon_policy
		*policy;     /* default for sessions that name no level; NULL: standard */
	const char *program; /* path of `cordon`, for doctor.prove; NULL: no such method */
};

/* Serves until the client is gone, then ends everything it owned. 0, or -CORDON_TIMEOUT: something
 * did not end in time and was not freed; it ends with the process. -CORDON_OS also if there is no
 * thread to read with; the client has been told. */
int rpc_serve(const struct rpc_options *o, struct cordon_error **reterr);
/* Tells a client that no thread can be started for it, as the answer to its first line. */
void rpc_turn_away(int fd);

/* For lines from another source; the caller's thread runs each request. in_fd is not used. NULL:
 * out of memory. */
struct rpc *rpc_new(const struct rpc_options *o);
bool rpc_take_line(struct rpc *c, const char *line, size_t len); /* false: it was the last */
void rpc_free(struct rpc *c); /* ends everything the client owned */

/* One client; for the files of this room. */
struct rpc {
	struct linein in;
	struct lineout out;
	uint64_t lines; /* read so far, including too long ones; used only by the reader */
	struct client_sessions sessions;
	struct callbacks callbacks;
	struct waitlist waits;
	const struct cordon_policy *policy;
	const char *program;
	pthread_mutex_t reading; /* held by the thread that reads */
	pthread_mutex_t lock;    /* guards the fields below */
	pthread_cond_t changed;
	unsigned threads, waiting, busy; /* total; waiting for `reading`; running a request */
	bool is_over;
	bool is_at_end; /* over because the input ended; set before is_over */
	bool is_alone;  /* no further threads can be started */
	struct client_session
		*home; /* the default sandbox, for requests that name none; NULL: not created */
	struct proof *proof; /* the running one; NULL: none */
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
	bool is_pod_style;           /* it named a sandboxId, or nothing, instead of a session */
	bool has_begun;              /* it has begun an execution of the client session */
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
	"directory"
#define EXECUTION_PARAMS                                                                           \
	"code context stdin stdin_base64 timeout_ms tool_calls validate stream keep_output"

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
