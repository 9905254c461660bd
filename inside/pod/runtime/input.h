/* inside/pod/runtime/input.h - stdin of one execution, as a part of the session's only pipe from
 * the host. The host says which bytes of the pipe belong to this execution. Bytes that earlier ones
 * left unread are skipped. */
#pragma once

#include <poll.h>
#include <stdint.h>

#include "inside/lib/wire_json.h"

struct input {
	int guest;            /* read end for the command; -1: none */
	int feed;             /* our write end of its pipe; -1: none */
	uint64_t seen;        /* bytes of the session's pipe read so far */
	uint64_t from, until; /* the range that belongs to this execution */
	char *chunk;          /* read but not passed on yet */
	size_t at, kept;
};
#define INPUT_NONE                                                                                 \
	{                                                                                          \
		.guest = -1, .feed = -1                                                            \
	}

/* spec: absent (empty), {"from": N, "bytes": N}, or true: the session's pipe itself. */
void input_open(struct input *i, struct json spec, int null);
/* The command has its end: closes ours, so that writing fails when nobody reads. */
void input_given(struct input *i);
void input_close(struct input *i);
struct pollfd input_poll(const struct input *i);
void input_feed(struct input *i);
