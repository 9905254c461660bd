/* serve/rpc/rpc.h - JSON-RPC 2.0, one message a line: everything the library can do, for one
 * client.
 *
 * The thread that reads a slow request also carries it out, and another one takes over the reading:
 * so nothing waits for a hand-over, and cancels, tool answers and other requests go on meanwhile.
 * Requests on files and other quick ones are done by the reader itself, in the order they came. */
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
		*policy;     /* what sessions get that name no level; NULL: standard */
	const char *program; /* `cordon` itself, for doctor.prove; NULL: there is no such method */
};

/* Serves until the client is gone, then ends all it owned. 0, or -CORDON_TIMEOUT when something
 * could not be ended in time: only the end of the process will, and nothing was freed. */
int rpc_serve(const struct rpc_options *o, struct cordon_error **reterr);

/* Lines that come from elsewhere, one after the other, each carried out by the caller. in_fd is not
 * used. NULL: out of memory. */
struct rpc *rpc_new(const struct rpc_options *o);
bool rpc_take_line(struct rpc *c, const char *line, size_t len); /* false: it was the last */
void rpc_free(struct rpc *c);                                    /* ends all the client owned */

/* One client; for the files of this room. */
struct rpc {
	struct linein in;
	struct lineout out;
	uint64_t lines; /* read so far, also those that were too long; the reader's */
	struct client_sessions sessions;
	struct callbacks callbacks;
	struct waitlist waits;
	const struct cordon_policy *policy;
	const char *program;
	pthread_mutex_t reading; /* held by the one thread that reads */
	pthread_mutex_t lock;    /* of the fields below */
	pthread_cond_t changed;
	unsigned threads, waiting, busy; /* in all; for `reading`; with a request */
	bool is_over;
	bool is_at_end;              /* it is over because the input is; set before is_over */
	bool is_alone;               /* no further threads */
	struct client_session *home; /* the sandbox of requests that name none, once created */
	struct proof *proof;         /* the one that runs; NULL: none */
};

/* One request on its way. */
struct request {
	struct rpc *rpc;
	const struct rpc_method *method;
	json_t *message; /* all of it */
	json_t *id;      /* borrowed; NULL: a notification */
	json_t *params;  /* borrowed; NULL: none */
	struct client_session *cs;
	struct cordon_session *loan; /* of the pool's, not used yet; NULL: none */
	bool is_pod_style;           /* it named a sandboxId or nothing instead of a session */
	bool has_begun;              /* an execution of the client session */
};

enum rpc_flags {
	RPC_SLOW = 1 << 0,    /* may take time: not by the reader */
	RPC_SESSION = 1 << 1, /* works on a session */
	RPC_POOL = 1 << 2,    /* works on a pool */
	RPC_EXECUTE = 1 << 3, /* occupies its session */
	RPC_LAST = 1 << 4,    /* the connection ends after the answer */
	RPC_ASLEEP = 1 << 5,  /* also on a session that is offloaded */
	RPC_CLOSE = 1 << 6,   /* ends the session: also while it is moved */
	RPC_WAITS = 1 << 7,   /* needs a session of the pool, and waits for it without a thread */
	RPC_ENDS = 1 << 8,    /* ends something: has a place where all others are taken */
};

/* Writes the result as JSON text. */
typedef int (*rpc_fn)(struct request *q, struct buf *ret, struct cordon_error **reterr);

struct rpc_method {
	const char *name;
	rpc_fn fn;
	int flags;
	const char *params; /* those it takes, beside what it works on, by words; "*": any */
};

#define OPEN_PARAMS_PARAMS                                                                         \
	"guest level policy set tools host_tools env workspace cold audit verbose storage "        \
	"directory"
#define EXECUTION_PARAMS                                                                           \
	"code context stdin stdin_base64 timeout_ms tool_calls validate stream keep_output"

/* Tables end with a zeroed one. */
extern const struct rpc_method rpc_session_methods[];
extern const struct rpc_method rpc_files_methods[];
extern const struct rpc_method rpc_picture_methods[];
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

/* For who has taken a request over: carries it out in a thread of its own, or answers that it will
 * not be. Both free it. */
void rpc_carry_on(struct request *q);
void rpc_refuse(struct request *q, const struct cordon_error *e);
bool rpc_has_id(const struct request *q, const json_t *id);
/* A thread that the end of the client waits for, until rpc_leave(); q: its argument, NULL: c. */
bool rpc_start_thread(struct rpc *c, void *(*fn)(void *), struct request *q);
void rpc_leave(struct rpc *c);

/* A notification to the client; params is JSON text. */
bool rpc_notify(struct rpc *c, const char *method, const char *params, size_t len);
