/* serve/mcp/mcphttp.c - see mcphttp.h. */
#include "serve/mcp/mcphttp.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/mcp/mcpclient.h"
#include "serve/mcp/mcpstream.h"

enum { CLIENTS = 64, SANDBOXES = 128, IDLE_MS = 1800000 };

struct mcphttp {
	struct mcpclients clients;
	uint64_t idle_ms;
};

static void answer_json(struct httpd_exchange *x, unsigned status, const json_t *j)
{
	size_t len = 0;
	cleanup_free char *text = json_text(j, &len);

	httpd_answer(x, text ? status : 500, "application/json", text, len);
}

static void answer_error(struct httpd_exchange *x, unsigned status, const json_t *id, int code,
			 const char *why)
{
	cleanup_json json_t *j = mcp_error(id, code, why, NULL);

	answer_json(x, status, j);
}

/* Whether a header with a list of MIME types has this one. */
static bool has_type(const char *list, const char *type)
{
	size_t len = strlen(type);

	for (const char *at = list; at && *at; at = strchr(at, ',')) {
		at += strspn(at, ", \t");
		size_t n = strcspn(at, ",; \t");
		if ((n == len && strncasecmp(at, type, n) == 0) ||
		    (n == 3 && strncmp(at, "*/*", 3) == 0))
			return true;
	}
	return false;
}

/* Compares one type, not a list: "text/plain;x=,application/json" is text/plain, which a page of
 * another origin may send without a preflight request. */
static bool is_type(const char *value, const char *type)
{
	size_t n = value ? strcspn(value, "; \t") : 0;

	return n == strlen(type) && strncasecmp(value, type, n) == 0;
}

/* ---- the stateless version */

static unsigned status_new(const json_t *answer)
{
	json_int_t code =
		json_integer_value(json_object_get(json_object_get(answer, "error"), "code"));

	if (code == -32601)
		return 404;
	return code == -32020 || code == -32021 || code == -32022 ? 400 : 200;
}

/* The value that Mcp-Name must have; NULL: none. */
static const char *name_of(const char *method, const json_t *params)
{
	if (str_eq(method, "tools/call") || str_eq(method, "prompts/get"))
		return json_string_value(json_object_get(params, "name"));
	if (str_eq(method, "resources/read"))
		return json_string_value(json_object_get(params, "uri"));
	return NULL;
}

/* Checks a request against its headers: an error answer, or NULL. */
static json_t *check_new(struct httpd_exchange *x, const json_t *message)
{
	const json_t *id = json_object_get(message, "id");
	const json_t *params = json_object_get(message, "params");
	const char *method = json_string_value(json_object_get(message, "method"));
	const char *version = mcp_version_of(params), *name = name_of(method, params);
	const json_t *meta = json_object_get(params, "_meta");

	if (!version)
		return mcp_error(id, -32602, "_meta needs " MCP_META "protocolVersion", NULL);
	if (!str_eq(httpd_header(x, "MCP-Protocol-Version"), version))
		return mcp_error(id, -32020, "MCP-Protocol-Version is not that of the body", NULL);
	if (!mcp_is_new_version(version))
		return mcp_version_error(id, version);
	if (!json_is_object(json_object_get(meta, MCP_META "clientCapabilities")))
		return mcp_error(id, -32602, "_meta needs " MCP_META "clientCapabilities", NULL);
	if (!str_eq(httpd_header(x, "Mcp-Method"), method))
		return mcp_error(id, -32020, "Mcp-Method is not that of the body", NULL);
	if (name && !str_eq(httpd_header(x, "Mcp-Name"), name))
		return mcp_error(id, -32020, "Mcp-Name is not that of the body", NULL);
	return NULL;
}

static void serve_new(struct mcphttp *h, struct httpd_exchange *x, json_t **taken)
{
	const json_t *message = *taken;

	if (!json_object_get(message, "id")) {
		httpd_answer(x, 202, NULL, NULL, 0);
		return;
	}
	cleanup_json json_t *error = check_new(x, message);
	if (error) {
		answer_json(x, 400, error);
		return;
	}
	struct mcpclient *c = mcpclient_stateless(&h->clients, httpd_principal(x));
	if (!c) {
		answer_error(x, 503, json_object_get(message, "id"), -32603, "no room");
		return;
	}
	const struct mcpstream_options o = {
		.clients = &h->clients,
		.client = c,
		.message = TAKE_PTR(*taken),
		.accepts_events = has_type(httpd_header(x, "Accept"), "text/event-stream"),
		.dies_with_connection = true,
		.status = status_new,
	};
	mcpstream_serve(x, &o);
	mcpclient_put(&h->clients, c);
}

/* ---- the version with sessions */

static unsigned status_old(const json_t *answer)
{
	(void)answer;
	return 200;
}

static bool hear_nothing(const json_t *message, void *arg)
{
	(void)message;
	(void)arg;
	return false;
}

static void open_session(struct mcphttp *h, struct httpd_exchange *x, const json_t *message)
{
	struct mcpclient *c = mcpclient_new(&h->clients, httpd_principal(x));

	if (!c) {
		httpd_add_header(x, "Retry-After", "60");
		answer_error(x, 503, json_object_get(message, "id"), -32603,
			     "too many sessions at once");
		return;
	}
	const struct mcp_sink sink = { .send = hear_nothing, .trace = *httpd_trace(x) };
	cleanup_json json_t *answer = mcp_handle(&c->mcp, message, &sink);
	httpd_add_header(x, "Mcp-Session-Id", c->id);
	answer_json(x, 200, answer);
	mcpclient_put(&h->clients, c);
}

/* The session that the request names, or NULL after answering. */
static struct mcpclient *find_session(struct mcphttp *h, struct httpd_exchange *x, const json_t *id)
{
	const char *session = httpd_header(x, "Mcp-Session-Id");
	struct mcpclient *c =
		session ? mcpclient_get(&h->clients, session, httpd_principal(x)) : NULL;

	if (!session)
		answer_error(x, 400, id, -32600, "Mcp-Session-Id is missing: initialize first");
	else if (!c)
		answer_error(x, 404, id, -32600, "there is no such session: initialize again");
	return c;
}

static void serve_old(struct mcphttp *h, struct httpd_exchange *x, json_t **taken)
{
	const json_t *message = *taken;
	const json_t *id = json_object_get(message, "id");
	const char *version = httpd_header(x, "MCP-Protocol-Version");
	const char *method = json_string_value(json_object_get(message, "method"));

	if (id && str_eq(method, "initialize")) {
		open_session(h, x, message);
		return;
	}
	if (version && !mcp_is_old_version(version)) {
		cleanup_json json_t *error = mcp_version_error(id, version);
		answer_json(x, 400, error);
		return;
	}
	struct mcpclient *c = find_session(h, x, id);
	if (!c)
		return;
	if (id && method) {
		const struct mcpstream_options o = {
			.clients = &h->clients,
			.client = c,
			.message = TAKE_PTR(*taken),
			.accepts_events = has_type(httpd_header(x, "Accept"), "text/event-stream"),
			.status = status_old,
		};
		mcpstream_serve(x, &o);
	} else {
		json_decref(mcp_handle(&c->mcp, message, NULL));
		httpd_answer(x, 202, NULL, NULL, 0);
	}
	mcpclient_put(&h->clients, c);
}

static void end_session(struct mcphttp *h, struct httpd_exchange *x)
{
	struct mcpclient *c = find_session(h, x, NULL);

	if (!c)
		return;
	mcpclient_end(&h->clients, c);
	httpd_answer(x, 204, NULL, NULL, 0);
}

static void serve_post(struct mcphttp *h, struct httpd_exchange *x)
{
	cleanup_json json_t *message = NULL;
	const char *version = httpd_header(x, "MCP-Protocol-Version");
	bool says_new = mcp_is_new_version(version);
	size_t len;
	const char *body = httpd_body(x, &len);

	if (!is_type(httpd_header(x, "Content-Type"), "application/json")) {
		answer_error(x, 415, NULL, -32600, "the body must be application/json");
		return;
	}
	if (!has_type(httpd_header(x, "Accept"), "application/json")) {
		answer_error(x, 406, NULL, -32600,
			     "Accept must name application/json and text/event-stream");
		return;
	}
	if (json_parse(body, len, MCP_MESSAGE_MAX, &message, NULL) < 0) {
		answer_error(x, 400, NULL, -32700, "not JSON");
		return;
	}
	const json_t *id = json_object_get(message, "id");
	const json_t *params = json_object_get(message, "params");
	if (!json_is_object(message) || (params && !json_is_object(params)) ||
	    (id && !json_is_string(id) && !json_is_integer(id))) {
		answer_error(x, 400, NULL, -32600, "a body is one message of JSON-RPC 2.0");
		return;
	}
	if (says_new || mcp_version_of(params))
		serve_new(h, x, &message);
	else
		serve_old(h, x, &message);
}

void mcphttp_serve(struct httpd_exchange *x, void *room)
{
	struct mcphttp *h = room;
	const char *method = httpd_method(x);

	if (str_eq(method, "POST")) {
		serve_post(h, x);
	} else if (str_eq(method, "DELETE")) {
		end_session(h, x);
	} else {
		/* The server never sends unsolicited messages, so there is no stream to GET. */
		httpd_add_header(x, "Allow", "POST, DELETE");
		httpd_answer(x, 405, NULL, NULL, 0);
	}
}

const struct httpd_route mcphttp_routes[] = {
	{ .path = "/mcp", .right = HTTPD_KEY, .fn = mcphttp_serve, .body_max = MCP_MESSAGE_MAX },
	{ 0 },
};

int mcphttp_new(const struct mcphttp_options *o, struct mcphttp **ret, struct cordon_error **reterr)
{
	struct mcphttp *h = mem_alloc(sizeof(*h));

	if (!h)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	mcpclients_init(&h->clients, &o->mcp, o->clients ? o->clients : (unsigned)CLIENTS,
			o->sandboxes ? o->sandboxes : (unsigned)SANDBOXES);
	h->clients.quota.above = o->quota;
	mcpclients_on_loss(&h->clients, o->lost, o->lost_arg);
	h->idle_ms = o->idle_ms ? o->idle_ms : IDLE_MS;
	*ret = h;
	return 0;
}

void mcphttp_sweep(struct mcphttp *h)
{
	uint64_t now = clock_now_ns(), idle = h->idle_ms * 1000000;

	mcpclients_expire(&h->clients, now > idle ? now - idle : 0);
}

bool mcphttp_close(struct mcphttp *h)
{
	return mcpclients_close(&h->clients);
}

char *mcphttp_take_loss(struct mcphttp *h)
{
	pthread_mutex_lock(&h->clients.lock);
	char *text = TAKE_PTR(h->clients.loss);
	pthread_mutex_unlock(&h->clients.lock);
	return text;
}

struct mcphttp *mcphttp_free(struct mcphttp *h)
{
	if (!h)
		return NULL;
	mcpclients_done(&h->clients);
	free(h);
	return NULL;
}
