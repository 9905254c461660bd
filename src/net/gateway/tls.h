/* net/gateway/tls.h - TLS on both sides of the gateway. Towards the guest: certificates of an
 * authority that exists only for the session. Towards servers: verification against the system's
 * trust store. Without OpenSSL, tls_store_new() fails and says what to do. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "net/gateway/host.h"
#include "net/gateway/stream.h"

struct tls_store; /* the authority, its certificates, and the trust store for servers */

/* ca_file: trusted authorities for servers, PEM; NULL: the system's. */
int tls_store_new(const char *ca_file, struct tls_store **ret, struct cordon_error **reterr);
struct tls_store *tls_store_free(struct tls_store *t);
/* The authority's certificate in PEM, for the guest's trust store; owned by t. */
const char *tls_store_authority(const struct tls_store *t);

/* A TLS session on a socket that the caller owns. Offers HTTP/1.1 only (ALPN). */
int tls_accept(struct tls_store *store, const struct host *as, int fd, struct tls **ret,
	       struct cordon_error **reterr);
int tls_connect(struct tls_store *store, const struct host *to, int fd, struct tls **ret,
		struct cordon_error **reterr);
struct tls *tls_free(struct tls *t);

/* Passes on bytes that were read before TLS began. Takes the queue's memory. */
void tls_give(struct tls *t, struct fifo *early);
/* Bytes moved, 0 at the end, or -errno. Does the handshake first. */
ssize_t tls_read(struct tls *t, void *to, size_t len);
ssize_t tls_write(struct tls *t, const void *from, size_t len);
void tls_end(struct tls *t); /* sends close_notify */
bool tls_wants_write(const struct tls *t);
/* Why it failed; "": it did not. */
const char *tls_problem(const struct tls *t);
