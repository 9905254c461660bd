/* serve/rpc/payload.h - bytes of a request or an answer: base64, an attachment, or a file of the
 * host. The server opens the file as its own user, which is also the client's. */
#pragma once

#include <cordon/session.h>

#include "serve/rpc/rpc.h"

/* Attachments of requests with `attached` have at most so many bytes. */
#define PAYLOAD_ATTACHED_MAX ((uint64_t)1 << 30)

/* Opens `data`, the attachment, or the file that `from` names, at its start. */
int payload_open(const struct request *q, int *ret_fd, struct cordon_error **reterr);
/* Creates the file that `to` names, or a memory file. *ret_to is borrowed; NULL: memory. */
int payload_create(const struct request *q, const char **ret_to, int *ret_fd,
		   struct cordon_error **reterr);
/* Completes payload_create: {data, length}, with `attach` {length, buffer} and an attachment, or
 * {length} for a file. If r is an error, the file is removed. */
int payload_answer(struct request *q, const char *to, int fd, int r, struct buf *ret,
		   struct cordon_error **reterr);
/* {data, length} of the whole file. */
int payload_add(int fd, struct buf *ret, struct cordon_error **reterr);

/* Exports a session's files to memory; the descriptor is at its start. */
int payload_export(struct cordon_session *s, int *ret_fd, struct cordon_error **reterr);
/* The same as base64, freed by the caller; at most max bytes before encoding. */
int payload_export_text(struct cordon_session *s, size_t max, char **ret,
			struct cordon_error **reterr);
