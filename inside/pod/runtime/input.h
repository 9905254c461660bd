/* inside/pod/runtime/input.h - an execution's standard input, out of the session's one pipe from
 * the host. The host says which bytes of the pipe are this execution's; what earlier ones left
 * unread is skipped.
 */
#pragma once

#include <poll.h>
#include <stdint.h>

#include "inside/lib/wire_json.h"

struct input {
	int guest;            /* what the command reads; -1: none */
	int feed;             /* our end of its pipe; -1: there is none */
	uint64_t seen;        /* bytes read of the session's pipe so far */
	uint64_t from, until; /* which of them are this execution's */
	char *chunk;          /* read and not yet passed on */
	size_t at, kept;
};
#define INPUT_NONE                                                                                 \
	{                                                                                          \
		.guest = -1, .feed = -1                                                            \
	}

/* spec: absent (at its end), {"from": N, "bytes": N}, or true: the session's own pipe as it is. */
void input_open(struct input *i, struct json spec, int null);
/* The command has its end: ours goes, so that feeding notices when nobody reads. */
void input_given(struct input *i);
void input_close(struct input *i);
struct pollfd input_poll(const struct input *i);
void input_feed(struct input *i);
