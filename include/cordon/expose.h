/* cordon/expose.h - ports that code listens on in a sandbox, reached from the host.
 *
 * Connections go in one direction only: the host connects to 127.0.0.1 inside the sandbox. The code
 * gets no network by this: it can reach neither the host nor another sandbox. The policy's `expose`
 * names the ports. Any thread may call these functions at any time, also while code runs. Sessions,
 * contexts and pools have them; a context's ports are its session's. Pods have none, and neither
 * has a machine without user namespaces: CORDON_UNSUPPORTED. */
#pragma once

#include <cordon/error.h>
#include <cordon/session.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct cordon_expose_options {
	/* A port of 127.0.0.1 on the host; -1: any free one. Every user of the machine can connect
	 * to it. 0: a Unix socket of mode 0600. */
	int host_port;
	/* Path of the Unix socket: a new name in a directory in which only this user can write.
	 * NULL: in a directory of our own, which is removed with the session. */
	const char *path;
};

/* Listens on the host and connects each client to this port of the sandbox. *ret_address, to be
 * freed: the path of the Unix socket, or 127.0.0.1:PORT. The program in the sandbox may begin to
 * listen later; until then clients are disconnected. A port that is exposed stays so when the guest
 * is restarted, and until unexpose or the end of the session. opts NULL: a Unix socket. The same
 * again gives the same address. At most 64 ports, and 64 connections at a time: further clients
 * wait. CORDON_DENIED: the policy's `expose` does not name the port. */
int cordon_session_expose(struct cordon_session *s, unsigned port,
			  const struct cordon_expose_options *opts, char **ret_address,
			  struct cordon_error **reterr);
/* Stops listening for this port and ends its connections. CORDON_NOT_FOUND: it is not exposed. */
int cordon_session_unexpose(struct cordon_session *s, unsigned port, struct cordon_error **reterr);
/* JSON, to be freed: an array of {"port", "address", "connections"}. */
char *cordon_session_exposed(struct cordon_session *s);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
