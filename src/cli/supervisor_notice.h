/* cli/supervisor_notice.h - the protocol of systemd: a socket that was opened for us, and messages
 * that we are ready or ending. */
#pragma once

struct supervisor_notice {
	char address[108]; /* where messages go; "": nowhere */
};

/* The socket of socket activation; 0: none. -1: there is more than one. */
int supervisor_notice_socket(void);
/* Reads where messages go, and removes all of it from the environment of child processes. */
void supervisor_notice_init(struct supervisor_notice *n);
/* "READY=1", "STOPPING=1"; does nothing without a supervisor. */
void supervisor_notice_send(const struct supervisor_notice *n, const char *message);
