/* serve/rpc/attachment.h - bytes that follow a line: the binary columns of a value (docs/rpc.md).
 * The line announces their number as `attachment`. */
#pragma once

#include <stdint.h>

#include "base/json.h"
#include "serve/rpc/line.h"

/* Where no session's policy is known yet: the largest that a policy can allow. */
#define ATTACHMENT_MAX ((uint64_t)16 << 30)

struct client_session_quota;

struct attachment {
	int fd;                             /* a file in memory with the bytes; -1: none */
	uint64_t bytes;                     /* announced; 0: none */
	uint64_t max;                       /* if there are more, they were read and dropped */
	struct client_session_quota *quota; /* in which they count; NULL: in none */
};

#define ATTACHMENT_NONE                                                                            \
	{                                                                                          \
		-1, 0, 0, NULL                                                                     \
	}

/* Reads what a message announces; max: more is not kept, and 0 keeps nothing. Nor is what the quota
 * has no room for; NULL: none. False: the input ended. */
bool attachment_read(struct linein *in, const json_t *message, uint64_t max,
		     struct client_session_quota *quota, struct attachment *ret);
void attachment_done(struct attachment *a);
#define cleanup_attachment CLEANUP(attachment_done)
