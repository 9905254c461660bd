/* inside/guests/sh/host_wire.h - the shells' end of the wire: unsent output, the token, signals. */
#ifndef GUEST_HOST_H
#define GUEST_HOST_H

#include <stdbool.h>

#include "inside/lib/bytes.h"

enum { HOST_WIRE = 3, HOST_TOKEN_DIGITS = 64 };

/* Sends what the host accepts now; ends the process if the host is gone. */
void host_wire_flush(struct bytes *out);
/* Adds a line and sends what is possible. */
void host_wire_say(struct bytes *out, const struct bytes *line);
/* The session's token, which is then no longer in our environment; "": none. */
void host_take_token(char ret[HOST_TOKEN_DIGITS + 1]);

/* From here on SIGINT, and SIGCHLD if asked, only end a ppoll with an empty mask. */
void host_catch_signals(bool with_children);
/* Milliseconds of the monotonic clock; never 0. */
long host_now_ms(void);

#endif
