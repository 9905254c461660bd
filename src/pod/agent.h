/* pod/agent.h - a session: a shell that outlives its commands, and the agent that keeps it. */
#ifndef POD_AGENT_H
#define POD_AGENT_H

#include <stdint.h>

#include "process.h"

/* One message of a SOCK_SEQPACKET socket, little-endian, then the payload. docs/pod.md. */
struct agent_message {
	uint32_t type;  /* enum agent_type */
	uint32_t id;    /* chosen by the host, echoed */
	int32_t status; /* of a command: its exit status, 128 + n where signal n ended it */
	uint32_t flags; /* enum agent_flag */
};

enum agent_type {
	AGENT_RUN =
		'R', /* host: payload is the command; three descriptors: stdin, stdout, stderr */
	AGENT_CANCEL = 'C', /* host: end what runs; answered by DONE */
	AGENT_PING = 'P',   /* host; answered by the same */
	AGENT_READY = 'I',  /* agent: the shell waits for its first command */
	AGENT_DONE = 'D',   /* agent: payload is the shell's directory */
	AGENT_DENIED = 'N', /* agent: payload is "exec NAME", at the time it happens */
	AGENT_REFUSED = 'E' /* agent: payload says what was wrong with a request */
};

enum agent_flag {
	AGENT_RESTARTED = 1, /* the shell is a new one: variables and functions are gone */
};

#define AGENT_COMMAND_MAX 65536

/* Serves requests on the agent's descriptor until it closes; returns the exit status. */
int agent_serve(struct w2c_sys *p, char *const *envp);

/* A message with its descriptors, which become the caller's. */
struct agent_packet {
	struct agent_message head;
	size_t bytes; /* of payload, which has room for an end */
	int fds[3];   /* -1: none */
	char payload[AGENT_COMMAND_MAX + 1];
};

/* Bytes of payload, 0 with head.type 0 at the end of the stream, or a negative errno. */
int agent_receive(int fd, struct agent_packet *ret);
int agent_send(int fd, const struct agent_message *head, const void *payload, size_t bytes,
	       const int fds[3]);

#endif
