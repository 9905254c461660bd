/* serve/v1/v1_routes.c - the routes of API v1. docs/openapi.json describes the same. */
#include "serve/v1/v1.h"

#include <string.h>

#include "base/str.h"
#include "serve/server/activity.h"

enum { WAIT_MAX_MS = 60000 };

extern const unsigned char openapi_json[];
extern const unsigned long openapi_json_len;

static void show_openapi(struct httpd_exchange *x, void *server)
{
	(void)server;
	httpd_answer(x, 200, "application/json", openapi_json, openapi_json_len);
}

/* What runs in the session is about to end, also if its client does not read. */
static int hurry(struct tenant *t, json_t *params, struct cordon_error **reterr)
{
	(void)reterr;
	activity_hurry(t, json_string_value(json_object_get(params, "session")), NULL);
	return 0;
}

/* A request holds a thread while it waits, even if its client has left. */
static int limit_wait(struct tenant *t, json_t *params, struct cordon_error **reterr)
{
	const json_t *wait = json_object_get(params, "wait_ms");
	bool is_long =
		wait ? json_integer_value(wait) > WAIT_MAX_MS
		     : json_object_get(params, "process") != NULL; /* it would wait for ever */

	(void)t;
	if (!is_long)
		return 0;
	return json_object_set_new(params, "wait_ms", json_integer(WAIT_MAX_MS)) == 0
		       ? 0
		       : err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* A variable without a value is removed. */
static int set_null(struct tenant *t, json_t *params, struct cordon_error **reterr)
{
	(void)t;
	return json_object_set_new(params, "value", json_null()) == 0
		       ? 0
		       : err_set(reterr, CORDON_NOMEM, "out of memory");
}

#define OPEN "guest level policy set tools env workspace cold directory languages packages"
#define OPEN_POOL "guest level policy set tools env cold directory languages size max_size reuse"
#define EXECUTE                                                                                    \
	"code context variables stdin stdin_base64 timeout_ms tool_calls validate keep_output"

/* A route with a function of its own. */
#define ROUTE(verb, pattern, function, ...)                                                        \
	{                                                                                          \
		.method = (verb), .path = (pattern), .right = HTTPD_KEY, .fn = (function),         \
		.body_max = V1_BODY_MAX, .detail = &(const struct v1_method)                       \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define ADMIN(verb, pattern, function, ...)                                                        \
	{                                                                                          \
		.method = (verb), .path = (pattern), .right = HTTPD_ADMIN, .fn = (function),       \
		.body_max = V1_BODY_MAX, .detail = &(const struct v1_method)                       \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
/* One that is a row: a method of serve/rpc. */
#define CALL(verb, pattern, name, ...) ROUTE(verb, pattern, v1_call, .method = (name), __VA_ARGS__)
/* One that is also answered while the server ends. */
#define AT_END(verb, pattern, function)                                                            \
	{                                                                                          \
		.method = (verb), .path = (pattern), .right = HTTPD_KEY, .fn = (function),         \
		.body_max = V1_BODY_MAX, .flags = HTTPD_AT_END                                     \
	}
/* One whose body is a file. */
#define BYTES(verb, pattern, function)                                                             \
	{                                                                                          \
		.method = (verb), .path = (pattern), .right = HTTPD_KEY, .fn = (function),         \
		.body_max = V1_FILE_MAX, .flags = HTTPD_BODY_FILE                                  \
	}
#define SESSION "/v1/sessions/{session}"

const struct httpd_route v1_routes[] = {
	{ .method = "GET",
	  .path = "/v1/openapi.json",
	  .right = HTTPD_OPEN,
	  .fn = show_openapi,
	  .flags = HTTPD_QUICK },
	CALL("GET", "/v1/version", "version"),
	CALL("GET", "/v1/sessions", "session.list"),
	CALL("POST", "/v1/sessions", "session.open", .body = OPEN, .status = 201,
	     .check = tenant_scope_workspace),
	CALL("GET", SESSION, "session.describe"),
	CALL("DELETE", SESSION, "session.close", .check = hurry),
	ROUTE("POST", SESSION "/executions", v1_execute, .method = "session.execute",
	      .body = EXECUTE " language"),
	ROUTE("GET", SESSION "/executions", v1_list_executions, 0),
	ROUTE("GET", SESSION "/executions/{execution}", v1_show_execution, 0),
	AT_END("DELETE", SESSION "/executions/{execution}", v1_cancel_execution),
	ROUTE("GET", "/v1/executions", v1_list_executions, 0),
	ROUTE("POST", "/v1/executions", v1_execute, .method = "session.run",
	      .body = OPEN " " EXECUTE, .check = tenant_scope_workspace),
	AT_END("GET", SESSION "/questions", v1_list_questions),
	AT_END("GET", "/v1/questions", v1_list_questions),
	AT_END("POST", SESSION "/tool_calls/{call}", v1_answer_tool_call),
	AT_END("POST", SESSION "/approvals/{approval}", v1_answer_approval),
	CALL("POST", SESSION "/interrupt", "session.interrupt"),
	CALL("POST", SESSION "/cancel", "session.cancel", .check = hurry),
	CALL("POST", SESSION "/restart", "session.restart"),
	CALL("POST", SESSION "/fork", "session.fork", .status = 201, .keep = "session"),
	CALL("POST", SESSION "/contexts", "session.context", .body = "language context"),
	CALL("POST", SESSION "/packages", "session.install", .body = "names language timeout_ms"),
	CALL("PUT", SESSION "/environment/{name}", "session.setenv", .body = "value",
	     .status = 204),
	CALL("DELETE", SESSION "/environment/{name}", "session.setenv", .status = 204,
	     .check = set_null),

	ROUTE("POST", SESSION "/commands", v1_execute, .method = "session.command",
	      .body = "command cwd env stdin stdin_base64 timeout_ms keep_output background pty"),
	CALL("GET", SESSION "/processes", "process.list"),
	CALL("GET", SESSION "/processes/{process}", "process.wait", .query = "wait_ms#",
	     .check = limit_wait),
	CALL("DELETE", SESSION "/processes/{process}", "process.kill"),
	CALL("POST", SESSION "/processes/{process}/signal", "process.signal", .body = "signal"),
	CALL("POST", SESSION "/processes/{process}/resize", "process.resize",
	     .body = "rows columns"),
	CALL("POST", SESSION "/processes/{process}/stdin", "process.write", .body = "data eof"),
	CALL("GET", SESSION "/processes/{process}/output", "process.output",
	     .query = "stream offset#"),

	BYTES("GET", SESSION "/files", v1_read_file),
	BYTES("PUT", SESSION "/files", v1_write_file),
	BYTES("GET", SESSION "/tar", v1_get_tar),
	BYTES("PUT", SESSION "/tar", v1_put_tar),
	BYTES("GET", SESSION "/export", v1_export),
	BYTES("PUT", SESSION "/export", v1_import),
	CALL("DELETE", SESSION "/files", "files.remove", .query = "path recursive?", .status = 204),
	CALL("GET", SESSION "/files/list", "files.list", .query = "path"),
	CALL("GET", SESSION "/files/stat", "files.stat", .query = "path"),
	CALL("POST", SESSION "/files/directories", "files.mkdir", .body = "path parents",
	     .status = 204),
	CALL("POST", SESSION "/files/move", "files.move", .body = "from to", .status = 204),
	CALL("POST", SESSION "/watches", "files.watch", .body = "path recursive", .status = 201),
	CALL("GET", SESSION "/watches/{watch}", "files.changes", .query = "wait_ms#",
	     .check = limit_wait),
	CALL("DELETE", SESSION "/watches/{watch}", "files.unwatch", .status = 204),

	CALL("GET", SESSION "/snapshots", "snapshot.list"),
	CALL("POST", SESSION "/snapshots", "snapshot.create", .body = "name", .status = 201),
	CALL("POST", SESSION "/snapshots/{name}/restore", "snapshot.restore", .status = 204),
	CALL("DELETE", SESSION "/snapshots/{name}", "snapshot.remove", .status = 204),

	ROUTE("GET", SESSION "/ports", v1_list_ports, 0),
	ROUTE("PUT", SESSION "/ports/{port}", v1_open_port, 0),
	CALL("DELETE", SESSION "/ports/{port}", "session.unexpose", .status = 204),
	{ .path = SESSION "/ports/{port}/{rest*}",
	  .right = HTTPD_KEY,
	  .fn = v1_pass_port,
	  .body_max = V1_FILE_MAX,
	  .flags = HTTPD_BODY_STREAM },

	CALL("POST", "/v1/pools", "pool.open", .body = OPEN_POOL, .status = 201),
	CALL("GET", "/v1/pools", "pool.list"),
	CALL("GET", "/v1/pools/{pool}", "pool.status"),
	CALL("DELETE", "/v1/pools/{pool}", "pool.close", .status = 204),
	ROUTE("POST", "/v1/pools/{pool}/executions", v1_execute, .method = "pool.execute",
	      .body = EXECUTE " wait_ms", .check = limit_wait),
	CALL("POST", "/v1/pools/{pool}/sessions", "pool.acquire", .body = "wait_ms", .status = 201,
	     .check = limit_wait),

	CALL("POST", "/v1/policies/check", "policy.check", .body = "level policy set"),
	CALL("POST", "/v1/policies/show", "policy.show", .body = "level policy set"),
	CALL("POST", "/v1/policies/diff", "policy.diff", .body = "a b"),
	CALL("POST", "/v1/validate", "validate", .body = "code guest"),
	CALL("GET", "/v1/doctor", "doctor"),
	ADMIN("POST", "/v1/doctor/proof", v1_call, .method = "doctor.prove",
	      .body = "attack guest allow_host control quick"),
	ROUTE("GET", "/v1/audit", v1_list_audit, 0),
	ROUTE("GET", "/v1/audit/verification", v1_verify_audit, 0),
	ADMIN("GET", "/v1/keys", v1_list_keys, 0),
	ADMIN("POST", "/v1/keys", v1_add_key,
	      .body = "name admin policy max_sessions max_executions max_memory_bytes rate "
		      "expires_s"),
	ADMIN("DELETE", "/v1/keys/{name}", v1_revoke_key, 0),
	{ 0 },
};
