/* serve/e2b/e2b_ports.c - requests to ports of a sandbox, by the host name that getHost gives
 * (PORT-ID.DOMAIN) or by the headers E2b-Sandbox-Id and E2b-Sandbox-Port. */
#include <cordon/expose.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "serve/e2b/e2b_state.h"
#include "serve/http/problem.h"
#include "serve/ports/port_proxy.h"

/* Ours: envd and the code interpreter. */
enum { PORT_ENVD = 49983, PORT_INTERPRETER = 49999 };

#define BODY_MAX ((uint64_t)1 << 30)

/* Which port of which sandbox a request is for. False: none. */
static bool read_target(struct httpd_exchange *x, unsigned *ret_port, char ret_id[E2B_ID_BYTES])
{
	const char *id = httpd_header(x, "E2b-Sandbox-Id");
	const char *port = httpd_header(x, "E2b-Sandbox-Port");

	if (httpd_is_for_port(x, ret_port, ret_id, E2B_ID_BYTES))
		return true;
	if (!id || !port || !str_copy(ret_id, E2B_ID_BYTES, id))
		return false;
	size_t n = strspn(port, "0123456789");
	if (n == 0 || n > 5 || port[n])
		return false;
	*ret_port = (unsigned)strtoul(port, NULL, 10);
	return *ret_port > 0 && *ret_port <= UINT16_MAX;
}

/* The sandbox's token, unless its client said that everybody may. */
static unsigned authorize(struct httpd_exchange *x, enum httpd_right right, void *arg)
{
	char id[E2B_ID_BYTES] = "";
	unsigned port = 0;

	(void)right;
	if (!read_target(x, &port, id))
		return 400;
	bool has_token = e2b_has_token(arg, x, id);
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_sandbox_get(arg, id, NULL);
	if (!has_token && !(b && b->is_public))
		return 401;
	/* What everybody may send must not use up the rate of the key. */
	return e2b_enter(arg, x, id, has_token);
}

static int expose(struct e2b *e, struct httpd_exchange *x, unsigned port, char **ret)
{
	cleanup_error struct cordon_error *error = NULL;
	struct e2b_sandbox *b = e2b_target(e, x);

	if (!b)
		return -1;
	int r = cordon_session_expose(b->session, port, NULL, ret, &error);
	/* Not while the connection lasts: who ends the sandbox waits for the references. */
	e2b_sandbox_put(b);
	if (r < 0)
		problem_answer(x, error);
	return r;
}

static void pass(struct httpd_exchange *x, void *arg)
{
	struct e2b *e = arg;
	cleanup_free char *address = NULL;
	char id[E2B_ID_BYTES];
	unsigned port = 0;
	bool has_name = httpd_is_for_port(x, NULL, NULL, 0);

	if (!port_proxy_check(x, has_name) || !read_target(x, &port, id) ||
	    expose(e, x, port, &address) < 0)
		return;
	const struct port_proxy_target to = { .port = port,
					      .address = address,
					      .path = httpd_target(x),
					      .prefix = has_name ? NULL : "",
					      .owner = httpd_tenant(x) };
	port_proxy_serve(x, &e->server->ports, &to);
}

static const struct httpd_route route = {
	.path = "(a port of a sandbox)",
	.right = HTTPD_KEY,
	.fn = pass,
	.body_max = BODY_MAX,
	.flags = HTTPD_BODY_STREAM,
	.authorize = authorize,
	.refuse = e2b_refuse_missing,
};

const struct httpd_route *e2b_ports_divert(struct httpd_exchange *x, void **ret_arg, void *arg)
{
	char id[E2B_ID_BYTES];
	unsigned port = 0;

	if (!read_target(x, &port, id) || port == PORT_ENVD || port == PORT_INTERPRETER)
		return NULL;
	*ret_arg = arg;
	return &route;
}

/* Names below localhost reach this machine without DNS; others need a record *.NAME. An address has
 * no names below it. */
json_t *e2b_ports_domain(struct httpd_exchange *x)
{
	const char *host = httpd_header(x, "Host");
	const char *port = host ? strrchr(host, ':') : NULL;
	char text[300];

	if (!host || host[0] == '[' || strlen(host) > 255)
		return json_null();
	if (str_starts(host, "127.0.0.1")) {
		snprintf(text, sizeof(text), "localhost%s", port ? port : "");
		return json_string(text);
	}
	return isdigit((unsigned char)host[0]) ? json_null() : json_string(host);
}
