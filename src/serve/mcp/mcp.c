/* serve/mcp/mcp.c - see mcp.h. Supports both versions of the protocol: with a handshake, and
 * stateless. */
#include "serve/mcp/mcp.h"

#include <cordon/cordon.h>
#include <string.h>

#include "base/str.h"
#include "serve/mcp/mcpspan.h"
#include "serve/mcp/mcptool.h"

static const char *const old_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
					    "2024-10-07" };
static const char new_version[] = "2026-07-28";

static const char policy_uri[] = "cordon://policy";
static const char policy_text_uri[] = "cordon://policy/text";

static const char instructions[] =
	"Runs code and commands in sandboxes. Without permission from the policy (resource "
	"cordon://policy/text) they have no network and no files of the host; time, memory and "
	"other resources are limited. All languages and the file tools of a sandbox work on the "
	"same files. run_code keeps variables between calls of one language; run_command is a "
	"bash shell. The result says when state was lost. ";
static const char with_defaults[] = "Leave sandbox_id out to use one sandbox for everything. "
				    "Each denial comes with a remedy.";
static const char without_defaults[] =
	"A call without sandbox_id gets a new sandbox; its result has the sandbox_id for further "
	"calls. Each denial comes with a remedy.";

json_t *mcp_error(const json_t *id, int code, const char *message, json_t *data)
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

bool mcp_is_old_version(const char *version)
{
	for (size_t i = 0; i < sizeof(old_versions) / sizeof(*old_versions); i++)
		if (str_eq(version, old_versions[i]))
			return true;
	return false;
}

bool mcp_is_new_version(const char *version)
{
	return str_eq(version, new_version);
}

const char *mcp_version_of(const json_t *params)
{
	return json_string_value(
		json_object_get(json_object_get(params, "_meta"), MCP_META "protocolVersion"));
}

static json_t *versions(void)
{
	json_t *a = json_array();

	json_array_append_new(a, json_string(new_version));
	for (size_t i = 0; i < sizeof(old_versions) / sizeof(*old_versions); i++)
		json_array_append_new(a, json_string(old_versions[i]));
	return a;
}

json_t *mcp_version_error(const json_t *id, const char *requested)
{
	json_t *data = json_object();

	json_object_set_new(data, "supported", versions());
	json_object_set_new(data, "requested", json_string_lossy(requested, strlen(requested)));
	return mcp_error(id, -32022, "this version of the protocol is not supported", data);
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
	json_object_set_new(j, "resources", json_object());
	json_object_set_new(j, "logging", json_object());
	return j;
}

static json_t *instructions_text(const struct mcp *m)
{
	cleanup_free char *text = str_printf(
		"%s%s", instructions, m->options.is_stateless ? without_defaults : with_defaults);

	return text ? json_string(text) : NULL;
}

static json_t *initialize(const struct mcp *m, const json_t *params)
{
	const char *asked = json_string_value(json_object_get(params, "protocolVersion"));
	json_t *j = json_object();

	json_object_set_new(j, "protocolVersion",
			    json_string(mcp_is_old_version(asked) ? asked : old_versions[0]));
	json_object_set_new(j, "capabilities", capabilities());
	json_object_set_new(j, "serverInfo", server_info());
	json_object_set_new(j, "instructions", instructions_text(m));
	return j;
}

/* Marks an answer as cacheable, because it never changes while the program runs. Only the stateless
 * version has this. */
static json_t *lasting(json_t *j)
{
	json_object_set_new(j, "ttlMs", json_integer(3600000));
	json_object_set_new(j, "cacheScope", json_string("public"));
	return j;
}

static json_t *discover(const struct mcp *m)
{
	json_t *j = json_object();

	json_object_set_new(j, "supportedVersions", versions());
	json_object_set_new(j, "capabilities", capabilities());
	json_object_set_new(j, "instructions", instructions_text(m));
	return lasting(j);
}

static json_t *listing(const char *key, json_t *items)
{
	json_t *j = json_object();

	json_object_set_new(j, key, items);
	return lasting(j);
}

static json_t *resource(const char *uri, const char *name, const char *about, const char *mime)
{
	json_t *j = json_object();

	json_object_set_new(j, "uri", json_string(uri));
	json_object_set_new(j, "name", json_string(name));
	json_object_set_new(j, "description", json_string(about));
	json_object_set_new(j, "mimeType", json_string(mime));
	return j;
}

static json_t *resources(void)
{
	json_t *a = json_array();

	json_array_append_new(a,
			      resource(policy_uri, "policy",
				       "what code in the sandboxes may do, and its limits, as JSON",
				       "application/json"));
	json_array_append_new(a, resource(policy_text_uri, "policy in words",
					  "the same policy in plain sentences", "text/plain"));
	return a;
}

static char *policy_text(const struct mcp *m, bool in_words)
{
	struct cordon_policy *own = NULL;
	const struct cordon_policy *p = m->options.policy;

	if (!p && cordon_policy_new(NULL, &own, NULL) < 0)
		return NULL;
	p = p ? p : own;
	char *text = in_words ? cordon_policy_explain(p) : cordon_policy_json(p);
	cordon_policy_free(own);
	return text;
}

static json_t *read_resource(const struct mcp *m, const json_t *params, bool is_new,
			     json_t **ret_error)
{
	const char *uri = json_string_value(json_object_get(params, "uri"));
	bool is_words = str_eq(uri, policy_text_uri);

	if (!is_words && !str_eq(uri, policy_uri)) {
		json_t *data = json_object();
		json_object_set_new(data, "uri", uri ? json_string(uri) : json_null());
		*ret_error = json_pack("{s:i, s:s, s:o}", "code", is_new || !uri ? -32602 : -32002,
				       "message", "there is no such resource", "data", data);
		return NULL;
	}
	cleanup_free char *text = policy_text(m, is_words);
	json_t *part = json_object(), *contents = json_array(), *j = json_object();
	json_object_set_new(part, "uri", json_string(uri));
	json_object_set_new(part, "mimeType",
			    json_string(is_words ? "text/plain" : "application/json"));
	json_object_set_new(part, "text", json_string(text ? text : ""));
	json_array_append_new(contents, part);
	json_object_set_new(j, "contents", contents);
	return lasting(j);
}

static json_t *set_level(struct mcp *m, const json_t *params, json_t **ret_error)
{
	int level = mcpcall_level(json_string_value(json_object_get(params, "level")));

	if (level < 0) {
		*ret_error =
			json_pack("{s:i, s:s}", "code", -32602, "message", "no such log level");
		return NULL;
	}
	pthread_mutex_lock(&m->lock);
	m->log_level = level;
	pthread_mutex_unlock(&m->lock);
	return json_object();
}

static void finish(json_t *result, bool is_new)
{
	if (!is_new) {
		json_object_del(result, "ttlMs");
		json_object_del(result, "cacheScope");
		return;
	}
	json_t *meta = json_object();
	if (!json_object_get(result, "resultType"))
		json_object_set_new(result, "resultType", json_string("complete"));
	json_object_set_new(meta, MCP_META "serverInfo", server_info());
	json_object_set_new(result, "_meta", meta);
}

/* Methods that only the version with the handshake has. */
static json_t *answer_old(struct mcp *m, const char *method, const json_t *params,
			  json_t **ret_error)
{
	if (str_eq(method, "initialize"))
		return initialize(m, params);
	if (str_eq(method, "ping"))
		return json_object();
	if (str_eq(method, "logging/setLevel"))
		return set_level(m, params, ret_error);
	return NULL;
}

static json_t *answer(struct mcp *m, const json_t *message, const struct mcp_sink *sink,
		      struct span *span, bool is_new, json_t **ret_error)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	const json_t *params = json_object_get(message, "params");
	json_t *result = is_new ? NULL : answer_old(m, method, params, ret_error);

	if (result || *ret_error)
		return result;
	if (str_eq(method, "server/discover"))
		return discover(m);
	if (str_eq(method, "tools/list"))
		return listing("tools", mcptool_list(m->options.tools, m->options.lists_all));
	if (str_eq(method, "tools/call"))
		return mcptool_call(m, message, sink, span, ret_error);
	if (str_eq(method, "resources/list"))
		return listing("resources", resources());
	if (str_eq(method, "resources/templates/list"))
		return listing("resourceTemplates", json_array());
	if (str_eq(method, "resources/read"))
		return read_resource(m, params, is_new, ret_error);
	*ret_error = json_pack("{s:i, s:s}", "code", -32601, "message", "unknown method");
	return NULL;
}

static json_t *envelope(const json_t *id, const char *key, json_t *body)
{
	json_t *a = json_object();

	json_object_set_new(a, "jsonrpc", json_string("2.0"));
	json_object_set_new(a, "id", json_deep_copy(id));
	json_object_set_new(a, key, body);
	return a;
}

/* What a request of the stateless version lacks; NULL: nothing. */
static json_t *check_meta(const json_t *id, const char *version, const json_t *params)
{
	const json_t *meta = json_object_get(params, "_meta");

	if (!mcp_is_new_version(version))
		return mcp_version_error(id, version);
	if (!json_is_object(json_object_get(meta, MCP_META "clientCapabilities")))
		return mcp_error(id, -32602, "_meta needs " MCP_META "clientCapabilities", NULL);
	return NULL;
}

/* What is wrong with a message; NULL: nothing. An invalid id is not echoed. */
static json_t *check_message(const json_t *message)
{
	const json_t *id = json_object_get(message, "id"), *params;
	const json_t *method = json_object_get(message, "method");
	bool has_id = json_is_string(id) || json_is_integer(id);
	bool is_answer = !method && id &&
			 (json_object_get(message, "result") || json_object_get(message, "error"));

	if (!str_eq(json_string_value(json_object_get(message, "jsonrpc")), "2.0") ||
	    (!is_answer && !json_is_string(method)) || (id && !has_id))
		return mcp_error(has_id ? id : NULL, -32600, "not a request of JSON-RPC 2.0", NULL);
	params = json_object_get(message, "params");
	if (params && !json_is_object(params))
		return mcp_error(id, -32602, "params must be an object", NULL);
	return NULL;
}

/* A message with a method and an id. */
static json_t *handle_request(struct mcp *m, const json_t *message, const struct mcp_sink *sink)
{
	const json_t *id = json_object_get(message, "id");
	const json_t *params = json_object_get(message, "params");
	const char *method = json_string_value(json_object_get(message, "method"));
	const char *version = mcp_version_of(params);
	json_t *error = version ? check_meta(id, version, params) : NULL;

	if (error)
		return error;
	struct span span;
	mcpspan_begin(&span, m, message, sink);
	json_t *result = answer(m, message, sink, &span, version != NULL, &error);
	mcpspan_end(&span, result, error);
	if (error) {
		json_decref(result);
		return envelope(id, "error", error);
	}
	if (!result)
		return NULL; /* cancelled */
	finish(result, version != NULL || str_eq(method, "server/discover"));
	return envelope(id, "result", result);
}

json_t *mcp_handle(struct mcp *m, const json_t *message, const struct mcp_sink *sink)
{
	const char *method = json_string_value(json_object_get(message, "method"));

	json_t *error = check_message(message);
	if (error)
		return error;
	if (!method)
		return NULL; /* a response, but we never send requests */
	if (json_object_get(message, "id"))
		return handle_request(m, message, sink);
	const json_t *cancelled = json_object_get(json_object_get(message, "params"), "requestId");
	if (cancelled && str_eq(method, "notifications/cancelled"))
		mcpcall_cancel(m, cancelled, NULL);
	return NULL;
}

void mcp_abandon(struct mcp *m, const struct mcp_sink *sink)
{
	mcpcall_cancel(m, NULL, sink);
}

void mcp_init(struct mcp *m, const struct mcp_options *o)
{
	*m = (struct mcp){ .options = *o, .log_level = mcpcall_level("info") };
	if (!m->options.tools)
		m->options.tools = mcptool_table;
	client_sessions_init(&m->sessions);
	m->sessions.quota = o->quota;
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->opening, NULL);
}

void mcp_done(struct mcp *m)
{
	client_sessions_close(&m->sessions);
	client_sessions_done(&m->sessions);
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->opening);
}
