/* serve/rpc/callback.h - requests of the server to its client: run a tool, decide about an
 * approval. */
#pragma once

#include <cordon/tools.h>
#include <pthread.h>

#include "base/json.h"
#include "serve/rpc/client_session.h"
#include "serve/rpc/line.h"

enum { CALLBACKS_MAX = 4096 };

struct callbacks {
	struct lineout *out;
	struct client_sessions *sessions; /* tell which request a call belongs to */
	pthread_mutex_t lock;
	pthread_cond_t answered; /* of those who wait themselves */
	struct callback *first;
	unsigned count;
	uint64_t last; /* number of the last one */
	bool is_closing;
	/* The thread that reads answers executes itself, because no other thread could be started.
	 * A tool call now would wait for an answer that nobody reads. */
	_Atomic bool nobody_reads;
};

void callbacks_init(struct callbacks *t, struct lineout *out, struct client_sessions *sessions);
void callbacks_done(struct callbacks *t);
/* A tool's function whose arg is the table: the client gets `tool.call`, its answer the guest. */
enum cordon_answer callback_call_tool(struct cordon_call *call, void *table);
/* Asks the client and waits for its answer: the result, a new reference. params is JSON text. */
int callback_request(struct callbacks *t, const char *method, const char *params, json_t **ret,
		     struct cordon_error **reterr);
/* An answer from the client. false: nobody waits for it. */
bool callback_answer(struct callbacks *t, const json_t *message);
/* Everything that waits fails; so does what comes. */
void callbacks_close(struct callbacks *t);
/* A cordon_approval_fn whose arg is the table: the client gets `approval`. */
void callback_ask(const struct cordon_approval *a, void *table);
