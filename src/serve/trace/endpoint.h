/* serve/trace/endpoint.h - where spans go: the URL of a collector, checked before the server
 * starts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { ENDPOINT_HOST_BYTES = 256 };

struct endpoint {
	char *url;                      /* whole, with a port; "localhost" is 127.0.0.1 there */
	char host[ENDPOINT_HOST_BYTES]; /* an IPv6 address without brackets */
	uint16_t port;
	bool is_tls, is_loopback;
};

/* text: http://HOST[:PORT][/PATH] or https://. The path of traces, /v1/traces, is added unless it
 * is there already, or is_whole. -CORDON_INVALID: the error says why. */
int endpoint_parse(const char *text, bool is_whole, struct endpoint *ret,
		   struct cordon_error **reterr);
void endpoint_done(struct endpoint *e);
