/* serve/http/tls_pump.h - moves bytes between TLS connections that have left HTTP and sockets with
 * their plain text. One thread for all of them. libmicrohttpd can do that too, but it polls without
 * pause and moves well below a megabyte a second. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct tls_pump;
struct tls_link; /* one connection */

/* Starts a thread. -CORDON_UNSUPPORTED: built without GnuTLS. */
int tls_pump_new(struct tls_pump **ret, struct cordon_error **reterr);
/* When all links are closed. Accepts NULL; always returns NULL. */
struct tls_pump *tls_pump_free(struct tls_pump *p);

/* Any thread. session: of GnuTLS; nobody else uses it or fd until tls_link_close. head: sent first.
 * *ret_fd: the plain text, not blocking, owned by the link. */
int tls_link_open(struct tls_pump *p, void *session, int fd, const char *head,
		  struct tls_link **ret, int *ret_fd, struct cordon_error **reterr);
/* Sends what was written, for a second at most, and ends the connection. Not in the pump's thread.
 */
void tls_link_close(struct tls_link *l);
