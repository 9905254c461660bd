/* net/connect/link.h - a connection to a `cordon serve`, for the protocol of `cordon rpc` or for
 * one answer. One thread. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "net/gateway/tls.h"

enum { LINK_HEAD_MAX = 64 << 10 };

/* Why there is no connection. The names are part of docs/rpc.md. */
enum link_refusal { LINK_UNREACHABLE, LINK_KEY_REFUSED, LINK_BUSY };

struct link {
	int fd; /* not blocking; -1: none */
	struct tls_store *store;
	struct tls *tls; /* NULL: plain text */
	enum link_refusal refusal;
	int status;                /* of HTTP; 0: the server did not say */
	char early[LINK_HEAD_MAX]; /* what came after the welcome */
	size_t early_len;
};

struct link_options {
	const char *server; /* https://HOST[:PORT], http://HOST[:PORT] on the loopback, unix:PATH */
	const char *key;    /* NULL: none */
	const char *path;   /* whose answer is wanted; NULL: the protocol of `cordon rpc` */
	const char *ca_file; /* authorities to trust; NULL: the system's */
};

/* Connects and exchanges the greeting, within 30 seconds. On failure refusal and status say more.
 */
int link_open(struct link *l, const struct link_options *o, struct cordon_error **reterr);
/* Adds the rest of the answer, if a path was named, within another 30 seconds. */
int link_fetch(struct link *l, struct buf *ret, struct cordon_error **reterr);
void link_done(struct link *l);
/* Bytes moved, 0 at the end, or -errno. */
ssize_t link_read(struct link *l, void *to, size_t len);
ssize_t link_write(struct link *l, const void *from, size_t len);
