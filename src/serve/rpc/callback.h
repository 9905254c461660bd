/* serve/rpc/callback.h - requests from the server to its client: run a tool, decide about an
 * approval. */
#pragma once

#include <cordon/tools.h>
#include <pthread.h>

#include "base/json.h"
#include "serve/rpc/client_session.h"
#include "serve/rpc/sink.h"

enum { CALLBACKS_MAX = 4096 };

struct callbacks {
	const struct sink *sink;
	struct client_sessions *sessions; /* tells which request a call belongs to */
	pthread_mutex_t lock;
	pthread_cond_t answered; /* for threads that wait for an answer */
	struct callback *first;
	unsigned count;
	uint64_t last; /* number of the last one */
	bool is_closing;
	/* The thread that reads answers also executes, because no other thread could be started. A
	 * tool call would then wait for an answer that is never read. */
	_Atomic bool nobody_reads;
};

void callbacks_init(struct callbacks *t, const struct sink *sink, struct client_sessions *sessions);
void callbacks_done(struct callbacks *t);
/* A tool function whose arg is the table. The client gets `tool.call`; its answer goes to the
 * guest. */
enum cordon_answer callback_call_tool(struct cordon_call *call, void *table);
/* Sends a request to the client and waits for the result, a new reference. params: JSON text. */
int callback_request(struct callbacks *t, const char *method, const char *params, json_t **ret,
		     struct cordon_error **reterr);
/* Handles an answer of the client. False: it was not expected. */
bool callback_answer(struct callbacks *t, json_t *message);
/* Fails everything that waits, and all later requests. */
void callbacks_close(struct callbacks *t);
/* A cordon_approval_fn whose arg is the table. The client gets `approval`. */
void callback_ask(const struct cordon_approval *a, void *table);
