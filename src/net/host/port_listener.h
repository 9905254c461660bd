/* net/host/port_listener.h - where the host listens for a port of a sandbox: a Unix socket that
 * only this user can use, or a port of the host's loopback. Never another address. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct port_listener_options {
	unsigned port;    /* of the sandbox */
	int host_port;    /* of 127.0.0.1; -1: any free one; 0: a Unix socket */
	const char *path; /* of the Unix socket; NULL: PORT.sock in `directory` */
	/* A directory of mode 0700, made when it is first needed. */
	char **directory;
};

struct port_listener {
	int fd;        /* non-blocking */
	char *address; /* the path, or 127.0.0.1:PORT */
	bool is_path;
	int dir_fd; /* of the socket's file; -1: none */
	uint64_t inode;
};

int port_listener_open(const struct port_listener_options *o, struct port_listener *ret,
		       struct cordon_error **reterr);
/* Closes it and removes the Unix socket. */
void port_listener_close(struct port_listener *l);
