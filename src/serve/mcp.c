/* serve/mcp.c - the protocol: both generations of it, without and with a handshake. */
#include "serve/mcp.h"

#include <cordon/cordon.h>
#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "serve/mcptool.h"

enum { LINE_MAX_BYTES = 8 << 20, CALLS_MAX = 64 };

#define META "io.modelcontextprotocol/"

static const char *const old_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
					    "2024-10-07" };
static const char new_version[] = "2026-07-28";

static const char instructions[] =
	"Runs code and commands in sandboxes that hold: no network, no files of the host, limits "
	"on "
	"everything. run_code keeps variables between calls of one language; run_command is a "
	"shell. Both work on the same kind of sandbox: name one with sandbox_id, or leave it out "
	"for the default one of that language. What was refused comes with a remedy.";

static json_t *error_answer(const json_t *id, int code, const char *message, json_t *data)
{
	json_t *e = json_object(), *a = json_object();

	json_object_set_new(e, "code", json_integer(code));
	json_object_set_new(e, "message", json_string(message));
	if (data)
		json_object_set_new(e, "data", data);
	json_object_set_new(a, "jsonrpc", json_string("2.0"));
	json_object_set_new(a, "id", id ? json_deep_copy(id) : json_null());
	json_object_set_new(a, "error", e);
	return a;
}

static json_t *server_info(void)
{
	json_t *j = json_object();

	json_object_set_new(j, "name", json_string("cordon"));
	json_object_set_new(j, "title", json_string("Cordon sandboxes"));
	json_object_set_new(j, "version", json_string(cordon_version()));
	return j;
}

static json_t *capabilities(void)
{
	json_t *j = json_object();

	json_object_set_new(j, "tools", json_object());
	return j;
}

static bool is_old(const char *version)
{
	for (size_t i = 0; i < sizeof(old_versions) / sizeof(*old_versions); i++)
		if (str_eq(version, old_versions[i]))
			return true;
	return false;
}

static json_t *initialize(const json_t *params)
{
	const char *asked = json_string_value(json_object_get(params, "protocolVersion"));
	json_t *j = json_object();

	json_object_set_new(j, "protocolVersion",
			    json_string(is_old(asked) ? asked : old_versions[0]));
	json_object_set_new(j, "capabilities", capabilities());
	json_object_set_new(j, "serverInfo", server_info());
	json_object_set_new(j, "instructions", json_string(instructions));
	return j;
}

static json_t *versions(void)
{
	json_t *a = json_array();

	json_array_append_new(a, json_string(new_version));
	for (size_t i = 0; i < sizeof(old_versions) / sizeof(*old_versions); i++)
		json_array_append_new(a, json_string(old_versions[i]));
	return a;
}

static json_t *discover(void)
{
	json_t *j = json_object();

	json_object_set_new(j, "supportedVersions", versions());
	json_object_set_new(j, "capabilities", capabilities());
	json_object_set_new(j, "instructions", json_string(instructions));
	json_object_set_new(j, "ttlMs", json_integer(3600000));
	json_object_set_new(j, "cacheScope", json_string("public"));
	return j;
}

/* A list that never changes while the program runs. */
static json_t *listing(const char *key, json_t *items)
{
	json_t *j = json_object();

	json_object_set_new(j, key, items);
	json_object_set_new(j, "ttlMs", json_integer(3600000));
	json_object_set_new(j, "cacheScope", json_string("public"));
	return j;
}

static json_t *call(struct mcp *m, const json_t *message, json_t *params, json_t **ret_error)
{
	const char *name = json_string_value(json_object_get(params, "name"));
	json_t *args = json_object_get(params, "arguments");
	json_t *id = json_object_get(message, "id");

	if (!name || (args && !json_is_object(args))) {
		*ret_error = error_answer(id, -32602,
					  "tools/call needs a name, and arguments are "
					  "an object",
					  NULL);
		return NULL;
	}
	json_t *result = mcptool_call(m, name, args, id);
	if (!result)
		*ret_error = error_answer(id, -32602, "there is no such tool", NULL);
	return result;
}

/* The newer generation says its version with every request. */
static const char *version_of(const json_t *params)
{
	return json_string_value(
		json_object_get(json_object_get(params, "_meta"), META "protocolVersion"));
}

static void finish(json_t *result, bool is_new)
{
	json_t *meta = json_object();

	if (!is_new) {
		json_decref(meta);
		json_object_del(result, "ttlMs");
		json_object_del(result, "cacheScope");
		return;
	}
	json_object_set_new(result, "resultType", json_string("complete"));
	json_object_set_new(meta, META "serverInfo", server_info());
	json_object_set_new(result, "_meta", meta);
}

static json_t *answer(struct mcp *m, const json_t *message, const char *method, json_t *params,
		      bool is_new, json_t **ret_error)
{
	if (str_eq(method, "server/discover"))
		return discover();
	if (!is_new && str_eq(method, "initialize"))
		return initialize(params);
	if (!is_new && (str_eq(method, "ping") || str_eq(method, "logging/setLevel")))
		return json_object();
	if (str_eq(method, "tools/list"))
		return listing("tools", mcptool_list());
	if (str_eq(method, "prompts/list"))
		return listing("prompts", json_array());
	if (str_eq(method, "resources/list"))
		return listing("resources", json_array());
	if (str_eq(method, "resources/templates/list"))
		return listing("resourceTemplates", json_array());
	if (str_eq(method, "tools/call"))
		return call(m, message, params, ret_error);
	*ret_error = error_answer(json_object_get(message, "id"), -32601, "unknown method", NULL);
	return NULL;
}

static void cancel(struct mcp *m, const json_t *params)
{
	const json_t *id = json_object_get(params, "requestId");
	struct seat *s = id ? seat_by_request(&m->seats, id) : NULL;

	if (!s)
		return;
	(void)seat_cancel(&m->seats, s);
	seat_put(&m->seats, s);
}

json_t *mcp_handle(struct mcp *m, const json_t *message)
{
	const json_t *id = json_object_get(message, "id");
	const char *method = json_string_value(json_object_get(message, "method"));
	json_t *params = json_object_get(message, "params"), *error = NULL;

	if (!json_is_object(message) || (!method && !id))
		return error_answer(id, -32600, "not a request of JSON-RPC 2.0", NULL);
	if (!method)
		return NULL; /* an answer to a question that was never asked */
	if (!id) {
		if (str_eq(method, "notifications/cancelled"))
			cancel(m, params);
		return NULL;
	}
	const char *version = version_of(params);
	if (version && !str_eq(version, new_version)) {
		json_t *data = json_object();
		json_object_set_new(data, "supported", versions());
		json_object_set_new(data, "requested", json_string(version));
		return error_answer(id, -32022, "this version of the protocol is not spoken here",
				    data);
	}
	json_t *result = answer(m, message, method, params, version != NULL, &error);
	if (!result)
		return error;
	finish(result, version != NULL || str_eq(method, "server/discover"));
	json_t *a = json_object();
	json_object_set_new(a, "jsonrpc", json_string("2.0"));
	json_object_set_new(a, "id", json_deep_copy(id));
	json_object_set_new(a, "result", result);
	return a;
}

void mcp_init(struct mcp *m, const struct mcp_options *o, struct lineout *out)
{
	*m = (struct mcp){ .policy = o->policy, .out = out };
	seats_init(&m->seats);
}

void mcp_done(struct mcp *m)
{
	seats_close(&m->seats);
	seats_done(&m->seats);
}

/* ---- lines over stdio: a thread for every call that runs code */

struct service {
	struct mcp mcp;
	struct linein in;
	struct lineout out;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	unsigned calls;
};

struct work {
	struct service *s;
	json_t *message;
};

static void respond(struct service *s, const json_t *message)
{
	cleanup_json json_t *a = mcp_handle(&s->mcp, message);
	size_t len = 0;
	cleanup_free char *text = a ? json_text(a, &len) : NULL;
	const struct line_part part = { text, len };

	if (text)
		(void)lineout_send(&s->out, &part, 1);
}

static void *work_thread(void *arg)
{
	cleanup_free struct work *w = arg;
	struct service *s = w->s;

	respond(s, w->message);
	json_decref(w->message);
	pthread_mutex_lock(&s->lock);
	s->calls--;
	pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static bool start(struct service *s, json_t *message)
{
	struct work *w = mem_alloc(sizeof(*w));
	pthread_t thread;

	if (!w)
		return false;
	*w = (struct work){ s, json_incref(message) };
	pthread_mutex_lock(&s->lock);
	bool fits = s->calls < CALLS_MAX;
	if (fits)
		s->calls++;
	pthread_mutex_unlock(&s->lock);
	if (fits && pthread_create(&thread, NULL, work_thread, w) == 0) {
		(void)pthread_detach(thread);
		return true;
	}
	if (fits) {
		pthread_mutex_lock(&s->lock);
		s->calls--;
		pthread_mutex_unlock(&s->lock);
	}
	json_decref(w->message);
	free(w);
	return false;
}

static void take(struct service *s, const char *line, size_t len)
{
	cleanup_json json_t *message = NULL;

	if (json_parse(line, len, 0, &message, NULL) < 0) {
		static const char junk[] =
			"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":"
			"\"not JSON\"}}";
		const struct line_part part = { junk, sizeof(junk) - 1 };
		(void)lineout_send(&s->out, &part, 1);
		return;
	}
	const char *method = json_string_value(json_object_get(message, "method"));
	bool is_slow = str_eq(method, "tools/call") || str_eq(method, "notifications/cancelled");
	if (!is_slow || !start(s, message))
		respond(s, message);
}

int mcp_serve(const struct mcp_options *o, int in_fd, int out_fd, struct cordon_error **reterr)
{
	struct service *s = mem_alloc(sizeof(*s));
	enum line_state state;
	char *line;
	size_t len;

	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	linein_init(&s->in, in_fd, out_fd, LINE_MAX_BYTES);
	lineout_init(&s->out, out_fd);
	mcp_init(&s->mcp, o, &s->out);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->idle, NULL);
	while ((state = linein_next(&s->in, &line, &len)) != LINE_END)
		if (state == LINE_OK && len > 0)
			take(s, line, len);
	seats_close(&s->mcp.seats);
	pthread_mutex_lock(&s->lock);
	while (s->calls > 0)
		pthread_cond_wait(&s->idle, &s->lock);
	pthread_mutex_unlock(&s->lock);
	mcp_done(&s->mcp);
	linein_done(&s->in);
	lineout_done(&s->out);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->idle);
	free(s);
	return 0;
}
