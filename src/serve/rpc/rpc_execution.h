/* serve/rpc/rpc_execution.h - one execution for a client: its options, its output while it runs,
 * its result. */
#pragma once

#include <cordon/session.h>

#include "base/buf.h"
#include "serve/rpc/rpc.h"

struct rpc_execution {
	struct cordon_execute_options options;
	struct request *request; /* NULL: it was answered, a command runs in the background */
	struct rpc *rpc;
	const char *session; /* its id, for the notifications */
	uint64_t process;    /* a command: its number; 0: none */
	bool is_base64;      /* output as bytes instead of text */
	void *stdin_bytes;
	char *context;
	char *columns; /* the table of the binary columns, as JSON text */
	/* The beginning of a character that the next chunk completes, per stream. */
	struct {
		char bytes[4];
		size_t len;
	} rest[2];
};

/* Reads code, context, stdin, stdin_base64, timeout_ms, tool_calls, validate, stream, keep_output.
 */
int rpc_execution_read(struct request *q, const char *session, struct rpc_execution *ret,
		       struct cordon_error **reterr);
/* The same without code and variables, for a command. */
int rpc_execution_read_rest(struct request *q, const char *session, struct rpc_execution *ret,
			    struct cordon_error **reterr);
/* Sends the remaining output to the client. */
void rpc_execution_flush(struct rpc_execution *x);
void rpc_execution_done(struct rpc_execution *x);
/* Runs an execution that has begun on the client session. The result is as in docs/result.md. */
int rpc_execution_run(struct request *q, struct client_session *cs, struct buf *ret,
		      struct cordon_error **reterr);
#define cleanup_rpc_execution CLEANUP(rpc_execution_done)
