/* inside/pod/runtime/agent.h - a pod session: a shell that outlives its commands, and the agent
 * that controls it. */
#pragma once

#include <poll.h>
#include <stdint.h>

#include "inside/pod/runtime/process.h"

/* One message of a SOCK_SEQPACKET socket, little-endian, then the payload. docs/pod.md. */
struct agent_message {
	uint32_t type;  /* enum agent_type */
	uint32_t id;    /* chosen by the host, echoed */
	int32_t status; /* of a command: its exit status, or 128 + n if signal n ended it */
	uint32_t flags; /* enum agent_flag */
};

enum agent_type {
	AGENT_RUN =
		'R', /* host: payload is the command; three descriptors: stdin, stdout, stderr */
	AGENT_CANCEL = 'C', /* host: end the running command; answered by DONE */
	AGENT_PING = 'P',   /* host; answered by a PING */
	AGENT_READY = 'I',  /* agent: the shell is ready for its first command */
	AGENT_DONE = 'D',   /* agent: payload is the shell's directory */
	AGENT_DENIED = 'N', /* agent: payload is "exec NAME", sent when it happens */
	AGENT_REFUSED = 'E' /* agent: payload says what was wrong with a request */
};

enum agent_flag {
	AGENT_RESTARTED = 1, /* the shell is new: variables and functions are lost */
};

#define AGENT_COMMAND_MAX 65536

/* Callbacks for what happens. */
struct agent_front {
	void (*ready)(void *arg,
		      const char *cwd); /* an idle shell is ready for its first command */
	void (*done)(void *arg, int status, bool restarted, const char *cwd);
	void (*denied)(void *arg, const char *text); /* "exec NAME", before the command is done */
	void *arg;
};

struct agent {
	struct w2c_sys *process;
	char *const *envp; /* for every shell */
	struct agent_front front;
	int channel;  /* to the shell */
	int denials;  /* from all processes of the pod */
	int shell_fd; /* a pidfd */
	pid_t shell;  /* also its process group; 0: none yet */
	bool busy, restarted;
	uint32_t command; /* number of the last one, see jobs.h */
	unsigned deaths;  /* shells in a row that died before their first message */
	char cwd[PATH_MAX];
};

/* Makes the channel for reports of the pod's processes; call before the first shell. */
int agent_open(struct agent *a);
/* Starts the shell. Its process has none of the descriptors that are open here. */
int agent_start(struct agent *a);
/* -EBUSY or -EMSGSIZE; otherwise the front is called when it is done. The caller keeps the
 * descriptors. */
int agent_run(struct agent *a, const char *text, size_t len, const int fds[3]);
/* Signals the shell's process group: the shell and all that the running command started in it. */
void agent_signal(const struct agent *a, int signo);

enum agent_force {
	AGENT_ASK,      /* like ^C at a terminal: the whole process group of the shell */
	AGENT_END_JOBS, /* kills what the command started; the shell may continue */
	AGENT_END_ALL,  /* kills the shell too; a new one will be started */
};
/* Interrupts the running command. */
void agent_interrupt(const struct agent *a, enum agent_force force);
/* Kills what the last command left running. */
void agent_end_jobs(const struct agent *a);

enum { AGENT_FDS = 3 };
void agent_poll(const struct agent *a, struct pollfd ret[AGENT_FDS]);
/* Handles one event; 0, or a negative errno if the agent cannot continue. */
int agent_attend(struct agent *a, const struct pollfd fds[AGENT_FDS]);

/* Serves requests on the agent's descriptor until it closes; returns the exit status. */
int serve_requests(struct w2c_sys *p, char *const *envp);

/* A message with its descriptors, which the caller owns. */
struct agent_packet {
	struct agent_message head;
	size_t bytes; /* of payload, which has room for a NUL */
	int fds[3];   /* -1: none */
	char payload[AGENT_COMMAND_MAX + 1];
};

/* Bytes of payload, 0 with head.type 0 at the end of the stream, or a negative errno. */
int agent_receive(int fd, struct agent_packet *ret);
int agent_send(int fd, const struct agent_message *head, const void *payload, size_t bytes,
	       const int fds[3]);
