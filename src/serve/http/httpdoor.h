/* serve/http/httpdoor.h - limits the connections of an HTTP server.
 *
 * Anybody on the machine may connect and send half a request. So more connections are accepted than
 * served. A connection without a valid token is closed after some seconds; if all places are taken,
 * the oldest of these is closed at once. Only authenticated requests take a place that counts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct httpdoor;
struct httpdoor_guest; /* one connection */

struct httpdoor_options {
	unsigned served;    /* requests at once */
	unsigned connected; /* connections at once */
	uint64_t header_ms; /* from the connection to the end of the headers of one who is known */
	uint64_t body_ms;   /* from there to the end of the body */
};

/* Starts a thread that looks at the time. */
int httpdoor_new(const struct httpdoor_options *o, struct httpdoor **ret,
		 struct cordon_error **reterr);
/* When nobody is connected. Accepts NULL; always returns NULL. */
struct httpdoor *httpdoor_free(struct httpdoor *d);

/* From any thread. fd stays open until httpdoor_leave returns. NULL: no memory. */
struct httpdoor_guest *httpdoor_enter(struct httpdoor *d, int fd);
void httpdoor_leave(struct httpdoor *d, struct httpdoor_guest *g);
/* The headers came with a valid token. false: all places are taken. */
bool httpdoor_begin(struct httpdoor *d, struct httpdoor_guest *g);
/* All of the request is there. */
void httpdoor_received(struct httpdoor *d, struct httpdoor_guest *g);
/* The place is free again. Does nothing where none was taken. */
void httpdoor_end(struct httpdoor *d, struct httpdoor_guest *g);
