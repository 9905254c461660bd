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
	unsigned served;    /* requests served at the same time */
	unsigned connected; /* connections at the same time */
	uint64_t header_ms; /* from the connection to the end of authenticated headers */
	uint64_t body_ms;   /* from there to the end of the body */
};

/* Starts a thread that enforces the time limits. */
int httpdoor_new(const struct httpdoor_options *o, struct httpdoor **ret,
		 struct cordon_error **reterr);
/* Only when no connection is left. Accepts NULL; always returns NULL. */
struct httpdoor *httpdoor_free(struct httpdoor *d);

/* Any thread may call these. fd must stay open until httpdoor_leave returns. NULL: no memory. */
struct httpdoor_guest *httpdoor_enter(struct httpdoor *d, int fd);
void httpdoor_leave(struct httpdoor *d, struct httpdoor_guest *g);
/* The headers arrived with a valid token. False: all places are taken. */
bool httpdoor_begin(struct httpdoor *d, struct httpdoor_guest *g);
/* So much of the body has arrived that body_ms begins again. */
void httpdoor_progress(struct httpdoor *d, struct httpdoor_guest *g);
/* The client has closed its side: what it has sent must be read soon. */
void httpdoor_hurry(struct httpdoor *d, struct httpdoor_guest *g);
/* The whole request has arrived. */
void httpdoor_received(struct httpdoor *d, struct httpdoor_guest *g);
/* The connection left HTTP: it takes no place, and only its owner closes it. */
void httpdoor_upgrade(struct httpdoor *d, struct httpdoor_guest *g);
/* Frees the place. Does nothing if none was taken. */
void httpdoor_end(struct httpdoor *d, struct httpdoor_guest *g);
/* Closes all connections, or all that serve nothing. */
void httpdoor_close(struct httpdoor *d, bool all);
