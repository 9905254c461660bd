/* net/errand.h - a request of the host program itself, within the gateway: follows redirects by
 * hand. Every hop goes through a connection of its own like a guest's, by the same rules. */
#pragma once

#include "base/json.h"

struct hub;
struct errand;

/* spec: {"url", "method", "headers", "body" in base64, "redirects", "https_only"}. The answer's
 * body is written to out_fd, which it takes over; what it was is told on the control line:
 * "fetched". */
int errand_new(struct hub *hub, const json_t *spec, int out_fd, struct errand **ret,
	       struct cordon_error **reterr);
void errand_start(struct errand *e);
/* The hop under way was refused; body is what a guest would have been told. */
void errand_refused(struct errand *e, const json_t *body);
struct errand *errand_free(struct errand *e);
