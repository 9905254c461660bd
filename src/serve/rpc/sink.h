/* serve/rpc/sink.h - where the messages to a client go that are no answers: lines of JSON-RPC, or
 * what another protocol makes of them. Any thread may send. */
#pragma once

#include "base/json.h"
#include "serve/rpc/line.h"

struct sink_message {
	const char *method;
	const char *id;      /* of a question that the client answers; NULL: a notification */
	const char *session; /* it is about this one; NULL: see params */
	const char *request; /* the request that executes, as JSON text; NULL: none */
	const char *params;  /* JSON text */
	size_t len;
};

/* A piece of output, in whole characters unless the client wanted bytes. */
struct sink_output {
	const char *session;
	const json_t *request; /* NULL: a command in the background */
	uint64_t process;      /* 0: no command */
	int stream;            /* 1 or 2 */
	const char *bytes;
	size_t len;
};

struct sink {
	bool (*send)(const struct sink_message *m, void *arg); /* false: the client is gone */
	/* Waits while the client reads slowly. NULL: output is a message like others. */
	void (*output)(const struct sink_output *o, void *arg);
	void *arg;
};

/* A sink of lines; arg is the struct lineout. */
bool sink_send_line(const struct sink_message *m, void *lineout);
