/* serve/ports/port_tunnels.h - connections between a client and a server in a sandbox that have
 * left HTTP (WebSocket). One thread copies the bytes of all of them. A tunnel ends with either end,
 * and so with its sandbox. */
#pragma once

#include "serve/http/httpd.h"
#include "serve/http/workers.h"

struct port_tunnels;

/* At once: of all clients, and of one. */
enum { PORT_TUNNELS_MAX = 512, PORT_TUNNELS_OWN = 128 };

/* Starts a thread. later: for what may block; outlives the tunnels. */
int port_tunnels_new(struct workers *later, struct port_tunnels **ret,
		     struct cordon_error **reterr);
/* Ends all tunnels and waits for them; later ones are refused. Before httpd_stop. */
void port_tunnels_close(struct port_tunnels *all);
/* Closes first. Accepts NULL; always returns NULL. */
struct port_tunnels *port_tunnels_free(struct port_tunnels *all);

struct port_tunnel_options {
	const void *owner; /* whose it is, for the limit */
	int guest_fd;      /* connected, not blocking; taken over */
	const void *early; /* what the server in the sandbox has sent already; copied */
	size_t len;
};

/* Answers x with 101 and goes on in the background. False: there are too many, or no memory, and
 * there is no answer yet. guest_fd is taken in any case. */
bool port_tunnels_begin(struct port_tunnels *all, struct httpd_exchange *x,
			const struct port_tunnel_options *o);
