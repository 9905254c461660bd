/* net/gateway/host_request.h - a request of the host program itself, within the gateway: follows
 * redirects by hand. Every hop goes through a connection of its own like a guest's, by the same
 * rules. */
#pragma once

#include "base/json.h"

struct hub;
struct host_request;

/* spec: {"url", "method", "headers", "body" in base64, "redirects", "https_only"}. The answer's
 * body is written to out_fd, which it takes over; what it was is told on the control line:
 * "fetched". */
int host_request_new(struct hub *hub, const json_t *spec, int out_fd, struct host_request **ret,
		     struct cordon_error **reterr);
void host_request_start(struct host_request *r);
/* The hop under way was refused; body is what a guest would have been told. */
void host_request_refused(struct host_request *r, const json_t *body);
struct host_request *host_request_free(struct host_request *r);
