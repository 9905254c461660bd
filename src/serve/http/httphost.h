/* serve/http/httphost.h - where a server listens, and which names Host and Origin may have.
 *
 * A web page can make the browser send requests to the loopback, under the page's own name. So a
 * request whose Host or Origin has another name is refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct httphost {
	struct strlist names; /* lower case, without port */
};

/* address: "127.0.0.1:8080", "[::1]:0". Listens there and fills h->names with the address, the
 * names of the loopback if it is one, and names (ends with NULL; NULL: none). An address outside
 * the loopback needs is_public. text: the address with the actual port. */
int httphost_listen(struct httphost *h, const char *address, bool is_public,
		    const char *const *names, int *ret_fd, char *text, size_t text_size,
		    struct cordon_error **reterr);
/* The same for a socket that listens already, of a supervisor such as systemd. */
int httphost_adopt(struct httphost *h, int fd, bool is_public, const char *const *names, char *text,
		   size_t text_size, struct cordon_error **reterr);
/* Whether only this machine can reach the address, or the socket if address is NULL. */
int httphost_is_near(const char *address, int fd, bool *ret_near, bool *ret_unix,
		     struct cordon_error **reterr);
void httphost_done(struct httphost *h);
/* Checks a Host header, with or without port. NULL: false. */
bool httphost_has(const struct httphost *h, const char *host);
/* The name of a sandbox's port: "PORT-ID.NAME" gives "NAME", port and id (each may be NULL). NULL:
 * it is no such name. */
const char *httphost_split(const char *host, unsigned *ret_port, char *ret_id, size_t size);
/* Whether the origin is that of this Host header. */
bool httphost_is_origin(const char *host, const char *origin);
/* Checks an Origin header: scheme, host, port. */
bool httphost_has_origin(const struct httphost *h, const char *origin);
