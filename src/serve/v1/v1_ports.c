/* serve/v1/v1_ports.c - ports of a session: listed, opened, closed, and requests to them. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "serve/http/problem.h"
#include "serve/ports/port_proxy.h"
#include "serve/server/server.h"
#include "serve/v1/v1.h"

/* "/v1/sessions/S/ports/P" has so many segments. */
enum { SEGMENTS = 5 };

/* Runs a method of serve/rpc with the session and port of the path. */
static int call(struct httpd_exchange *x, const char *method, json_t **ret,
		struct cordon_error **reterr)
{
	static const struct v1_method none = { 0 };
	cleanup_json json_t *params = NULL;
	cleanup_buf struct buf result = { 0 };

	buf_init(&result, SIZE_MAX / 2);
	int r = v1_read_params(x, &none, &params, reterr);
	if (r == 0)
		r = v1_wake(x, params, reterr);
	if (r == 0)
		r = tenant_call(httpd_tenant(x), method, params, NULL, &result, reterr);
	return r < 0 ? r : json_parse(result.data, result.len, 0, ret, reterr);
}

/* What a client needs to know: not where the server's machine listens. */
static json_t *describe(struct httpd_exchange *x, const json_t *port)
{
	json_int_t number = json_integer_value(json_object_get(port, "port"));
	cleanup_free char *path = str_printf("/v1/sessions/%s/ports/%lld/",
					     httpd_param(x, "session"), (long long)number);

	return json_pack("{s:I,s:s?,s:I}", "port", number, "path", path, "connections",
			 json_integer_value(json_object_get(port, "connections")));
}

void v1_list_ports(struct httpd_exchange *x, void *server)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *found = NULL, *answer = NULL;
	json_t *list = json_array(), *port;
	size_t i;

	(void)server;
	int r = call(x, "session.exposed", &found, &e);
	json_array_foreach(json_object_get(found, "ports"), i, port)
	{
		json_array_append_new(list, describe(x, port));
	}
	answer = json_pack("{s:o}", "ports", list);
	if (r < 0)
		problem_answer(x, e);
	else
		v1_answer_json(x, 200, answer);
}

void v1_open_port(struct httpd_exchange *x, void *server)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *found = NULL, *answer = NULL;

	(void)server;
	if (call(x, "session.expose", &found, &e) < 0) {
		problem_answer(x, e);
		return;
	}
	answer = describe(x, found);
	v1_answer_json(x, 200, answer);
}

/* What follows the port in the target, which has the path as it was sent; NULL: nothing. */
static const char *skip_segments(const char *target)
{
	for (int i = 0; i < SEGMENTS && target; i++)
		target = strchr(target + 1, '/');
	return target;
}

void v1_pass_port(struct httpd_exchange *x, void *server)
{
	const struct server *s = server;
	const struct tenant *t = httpd_tenant(x);
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *found = NULL;
	const char *path = skip_segments(httpd_target(x));

	if (!port_proxy_check(x, false))
		return;
	if (!path || call(x, "session.expose", &found, &e) < 0) {
		problem_answer(x, e);
		return;
	}
	cleanup_free char *prefix = str_ndup(httpd_target(x), (size_t)(path - httpd_target(x)));
	const struct port_proxy_target to = {
		.port = (unsigned)json_integer_value(json_object_get(found, "port")),
		.address = json_string_value(json_object_get(found, "address")),
		.path = path,
		.prefix = prefix,
		.owner = t,
	};
	if (prefix && to.address)
		port_proxy_serve(x, &s->ports, &to);
	else
		problem_answer(x, NULL);
}
