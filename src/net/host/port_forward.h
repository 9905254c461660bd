/* net/host/port_forward.h - connections from the host to ports that code listens on in a sandbox,
 * and only in that direction. The host opens each connection: it asks the sandbox for a socket of
 * its network namespace, connects it to the loopback there, and copies bytes. So the code gets no
 * network and no socket of the host.
 *
 * One thread serves all ports of a sandbox. Any thread may call these functions; port_forward_free
 * comes last. The number of connections and the memory of each are bounded. */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"

struct port_forward;

enum { PORT_FORWARD_PORTS = 64, PORT_FORWARD_LINKS = 64 };

struct port_forward_options {
	/* As box_ask_socket; runs in the thread that serves, and must not wait or call the
	 * functions below. */
	int (*ask)(void *arg, int *ret_fd);
	void *arg;
};

struct port_forward_target {
	unsigned port;
	int host_port;    /* as port_listener_options */
	const char *path; /* likewise */
};

int port_forward_new(const struct port_forward_options *o, struct port_forward **ret,
		     struct cordon_error **reterr);
struct port_forward *port_forward_free(struct port_forward *f);

/* Listens for the port. If it does already, at an address that fits, this is the same again, and
 * the result is 1. The caller frees the address. */
int port_forward_add(struct port_forward *f, const struct port_forward_target *t,
		     char **ret_address, struct cordon_error **reterr);
/* Whether it listens for the port. */
bool port_forward_has(struct port_forward *f, unsigned port);
/* Ends its connections too. */
int port_forward_remove(struct port_forward *f, unsigned port, struct cordon_error **reterr);
/* [{"port", "address", "connections"}] */
json_t *port_forward_list(struct port_forward *f);
