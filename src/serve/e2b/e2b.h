/* serve/e2b/e2b.h - the E2B-compatible API (docs/e2b.md): control plane, envd and code interpreter
 * on one address, for clients with E2B_API_URL and E2B_SANDBOX_URL. */
#pragma once

#include "serve/server/server.h"

struct e2b;

/* templates: a directory of policy files, NAME.json; NULL: only the base template. */
int e2b_new(struct server *s, const char *templates, struct e2b **ret,
	    struct cordon_error **reterr);
/* No new sandboxes; ends all of them, and so their streams. Before the tenants are closed. */
void e2b_shut(struct e2b *e);
/* After the HTTP server has stopped. Accepts NULL; always returns NULL. */
struct e2b *e2b_free(struct e2b *e);

/* For the divert of httpd.h, with the struct e2b as arg: requests to ports of sandboxes. */
const struct httpd_route *e2b_ports_divert(struct httpd_exchange *x, void **ret_arg, void *arg);
/* For a table of httpd.h, with the struct e2b as arg. */
extern const struct httpd_route e2b_routes[];
