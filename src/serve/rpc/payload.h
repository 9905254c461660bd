/* serve/rpc/payload.h - bytes that come with a request or an answer: as base64, or in a file of the
 * host, which the server opens as its own user, who is also the client's. */
#pragma once

#include <cordon/session.h>

#include "serve/rpc/rpc.h"

/* data, or the file that from names; open at its start. */
int payload_open(const struct request *q, int *ret_fd, struct cordon_error **reterr);
/* A new file where to names one, else memory. *ret_to is borrowed, NULL for memory. */
int payload_create(const struct request *q, const char **ret_to, int *ret_fd,
		   struct cordon_error **reterr);
/* The end of what payload_create began: {data, length}, or {length} of the file, which is taken
 * away again when r says that filling it failed. */
int payload_answer(const char *to, int fd, int r, struct buf *ret, struct cordon_error **reterr);
/* {data, length} of all of it. */
int payload_add(int fd, struct buf *ret, struct cordon_error **reterr);

/* A session's files as an export in memory, open at its start. */
int payload_export(struct cordon_session *s, int *ret_fd, struct cordon_error **reterr);
/* The same as base64, to be freed; at most max bytes before that. */
int payload_export_text(struct cordon_session *s, size_t max, char **ret,
			struct cordon_error **reterr);
