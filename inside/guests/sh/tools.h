/* inside/guests/sh/tools.h - host tools as commands. A helper process (this program, started by the
 * shell under a tool's name) sends its arguments and stdin to the session's agent over a socket of
 * its own. The agent uses the wire and returns stdout, stderr and status. */
#pragma once

#include <poll.h>

#include "inside/lib/wire_json.h"

#define TOOLS_CALLS 64 /* at the same time */

struct tools_call {
	int fd; /* the helper's socket; -1: free */
	unsigned long number;
	bool asked;   /* the helper was told whether to send its stdin */
	bool waiting; /* for the host's answer */
	struct bytes in;
	size_t args_len;  /* length of the arguments, the first part of in */
	bool has_context; /* then the helper's directory and environment, before its stdin */
};

struct tools {
	struct json specs; /* the welcome's array; its text lives as long as the agent */
	int listen_fd;     /* helpers send one end of their socket here */
	struct bytes *out; /* output for the wire; sent by whoever calls us */
	unsigned long message_bytes;
	unsigned long count; /* calls of this execution */
	const char *id;      /* id of the execution, as JSON; NULL: none */
	struct tools_call calls[TOOLS_CALLS];
};

/* Makes the socket pair; *ret_fd: the helpers' end. 0 or -1. */
int tools_open(struct tools *t, int *ret_fd);
/* Shell functions for the tools; self: this program's path. */
void tools_functions(const struct tools *t, const char *self, struct bytes *ret);
/* Fills in what to poll; returns the number of entries. */
size_t tools_poll(struct tools *t, struct pollfd *ret);
/* Handles what poll found. */
void tools_serve(struct tools *t, const struct pollfd *fds, size_t count);
/* The host's answer to one call. */
void tools_answer(struct tools *t, struct json message);
/* The execution is over: tells waiting helpers. */
void tools_end(struct tools *t);
