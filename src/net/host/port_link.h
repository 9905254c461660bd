/* net/host/port_link.h - one connection between the host and a port of a sandbox. The end in the
 * sandbox is hostile: it may never accept, never read, send without end, or reset. Nothing here
 * waits; what is not taken stays in two buffers of fixed size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

/* CONNECT_MS: until the sandbox has accepted. HALF_MS: without a byte, when one end is closed. */
enum { LINK_BUFFER = 64 << 10, LINK_CONNECT_MS = 30000, LINK_HALF_MS = 60000 };

enum link_state {
	LINK_ASKING, /* guest_fd is where the socket comes from (wall_take_socket) */
	LINK_CONNECTING,
	LINK_OPEN,
	LINK_OVER,
};

/* One direction. */
struct link_flow {
	char *bytes; /* LINK_BUFFER of them */
	size_t from, to;
	bool is_eof;  /* nothing more comes in */
	bool is_shut; /* everything went out */
};

struct port_link {
	enum link_state state;
	unsigned port;
	int host_fd, guest_fd;
	struct link_flow up, down;        /* to the guest, to the host */
	bool is_host_hung, is_guest_hung; /* that end sends nothing more */
	deadline_ns deadline;             /* 0: none */
	struct port_link *next;
	int polled[2]; /* for the caller: where host_fd and guest_fd are polled */
};

/* Takes both descriptors over. NULL: no memory; they are closed. */
struct port_link *port_link_new(unsigned port, int host_fd, int reply_fd);
/* Of two ends that are connected already. up, down: what each has sent so far, at most LINK_BUFFER.
 */
struct port_link_early {
	const void *up, *down;
	size_t up_len, down_len;
};
struct port_link *port_link_join(int host_fd, int guest_fd, const struct port_link_early *early);
struct port_link *port_link_free(struct port_link *l);

/* What to poll each end for; 0: nothing. */
short port_link_host_events(const struct port_link *l);
short port_link_guest_events(const struct port_link *l);
/* Goes on after poll. Afterwards, if its state is LINK_OVER, the caller frees it. */
void port_link_step(struct port_link *l, short host, short guest);
