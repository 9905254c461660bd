/* net/gateway/host_request.h - an HTTP request of the host program, made inside the gateway. It
 * follows redirects itself. Every hop is a connection of its own and obeys the same rules as a
 * guest's. */
#pragma once

#include "base/json.h"

struct hub;
struct host_request;

/* spec: {"url", "method", "headers", "body" in base64, "redirects", "https_only"}. Writes the
 * answer's body to out_fd, which it owns. Sends the status and headers on the control socket as
 * "fetched". */
int host_request_new(struct hub *hub, const json_t *spec, int out_fd, struct host_request **ret,
		     struct cordon_error **reterr);
void host_request_start(struct host_request *r);
/* The current hop was refused. body: the answer that a guest would have got. */
void host_request_refused(struct host_request *r, const json_t *body);
struct host_request *host_request_free(struct host_request *r);
