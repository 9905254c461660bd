/* inside/guests/sh/host_wire.h - the shells' end of the wire: what waits for the host to read it,
 * and the signals that come beside it. */
#ifndef GUEST_HOST_H
#define GUEST_HOST_H

#include <stdbool.h>

#include "inside/lib/bytes.h"

enum { HOST_WIRE = 3, HOST_TOKEN_DIGITS = 64 };

/* Sends what the host takes now; ends the process where it has gone. */
void host_wire_flush(struct bytes *out);
/* One more line, and whatever can be sent at once. */
void host_wire_say(struct bytes *out, const struct bytes *line);
/* The session's secret, which no one finds in our environment afterwards; "": none. */
void host_take_token(char ret[HOST_TOKEN_DIGITS + 1]);

/* SIGINT, and SIGCHLD where asked, do nothing but end a ppoll with an empty mask from here on. */
void host_catch_signals(bool with_children);
/* Milliseconds on a clock that nobody sets; never 0. */
long host_now_ms(void);

#endif
