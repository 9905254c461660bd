/* serve/rpc/sandboxes.c - methods with the names that pod clients use: create, run, kill, and
 * sandboxes by id. A sandbox is a session whose guest is a shell. */
#include <cordon/cordon.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "serve/rpc/open_params.h"
#include "serve/rpc/rpc_execution.h"
#include "serve/rpc/target.h"

enum { COMMAND_MAX = 64 << 10, HISTORY_MAX = 1000 };

static int add_mounts(json_t *policy, const json_t *mounts, struct cordon_error **reterr)
{
	json_t *list = json_array(), *mount;
	size_t i;

	if (json_object_set_new(policy, "mounts", list) != 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	json_array_foreach(mounts, i, mount)
	{
		int r = target_add_mount(list, mount, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Turns extensions into tools that get argv, stdin, directory and environment. Not 0: out of
 * memory. */
static int add_extensions(json_t *params, const json_t *extensions)
{
	json_t *tools = json_array(), *extension;
	size_t i;
	int r = json_object_set_new(params, "tools", tools);

	json_array_foreach(extensions, i, extension)
	{
		json_t *tool = json_copy(extension);
		bool is_tool = json_is_object(extension);
		r |= is_tool ? json_object_set_new(tool, "command", json_true()) : 0;
		if (is_tool && !json_object_get(tool, "args"))
			r |= json_object_set_new(
				tool, "args",
				json_pack("{s:{s:s,s:b},s:{s:[s,s],s:b},s:{s:s,s:b},s:{s:s,s:b}}",
					  "args", "type", "array", "required", 0, "stdin", "type",
					  "string", "bytes", "required", 0, "cwd", "type", "string",
					  "required", 0, "env", "type", "object", "required", 0));
		r |= json_array_append_new(tools, tool);
	}
	return r;
}

/* Also 0 if the option is absent. */
static int move_option(const json_t *from, const char *key, json_t *policy, const char *name)
{
	json_t *value = json_object_get(from, key);

	return value ? json_object_set(policy, name, value) : 0;
}

/* Translates the options of pod clients to those of session.open. A lost option could be a
 * restriction, so none may be dropped. */
static int translate(struct request *q, json_t **ret, struct cordon_error **reterr)
{
	json_t *given = json_object_get(q->params, "policy"), *value;
	cleanup_json json_t *params = q->params ? json_copy(q->params) : json_object();
	json_t *policy = given ? json_copy(given) : json_object();
	int r = json_object_set_new(params, "policy", policy);

	if (r == 0 && !json_is_object(policy))
		return err_set(reterr, CORDON_INVALID, "/params/policy must be an object");
	if (r == 0)
		r |= move_option(q->params, "timeoutMs", policy, "timeout_ms");
	if (r == 0)
		r |= move_option(q->params, "fsLimitBytes", policy, "fs_bytes");
	if (r == 0)
		r |= move_option(json_object_get(q->params, "security"), "toolAllowlist", policy,
				 "commands");
	if (r == 0 && (value = json_object_get(q->params, "extensions")))
		r |= add_extensions(params, value);
	if (r != 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if ((value = json_object_get(q->params, "mounts")))
		r = add_mounts(policy, value, reterr);
	if (r == 0)
		*ret = TAKE_PTR(params);
	return r;
}

static int open_into(struct request *q, struct client_session *cs, struct cordon_error **reterr)
{
	cleanup_open_params struct open_params o = { 0 };
	cleanup_json json_t *params = NULL;
	struct cordon_session *session = NULL;
	json_t *given = q->params;
	int r = translate(q, &params, reterr);

	if (r < 0)
		return r;
	q->params = params;
	r = open_params_read(q, "sh", &o, reterr);
	if (r == 0)
		r = client_session_charge(&q->rpc->sessions, cs, open_params_memory(&o), reterr);
	if (r == 0)
		r = cordon_session_open(&o.options, &session, reterr);
	if (r == 0) {
		open_params_remember(cs, params, "sh");
		cs->label = json_deep_copy(json_object_get(params, "label"));
		client_session_open_session(&q->rpc->sessions, cs, session);
	}
	q->params = given;
	return r;
}

/* The default sandbox, for requests that name none. The reader has reserved it. */
static int create(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	int r = open_into(q, q->cs, reterr);

	if (r < 0) { /* before the answer: after it, the client may try again */
		target_fail_home(q);
		return r;
	}
	q->makes_home = false;
	return buf_printf(ret, "{\"ok\":true,\"sandboxId\":\"%s\"}", q->cs->id);
}

static int create_sandbox(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct client_session *cs = NULL;
	int r = client_session_new(&q->rpc->sessions, false, &cs, reterr);

	if (r < 0)
		return r;
	r = open_into(q, cs, reterr);
	if (r < 0) {
		client_session_fail(&q->rpc->sessions, cs);
		return r;
	}
	r = buf_printf(ret, "{\"sandboxId\":\"%s\"}", cs->id);
	client_session_put(&q->rpc->sessions, cs);
	return r;
}

static void add_sandbox(const struct client_session *s, void *arg)
{
	json_t *j = json_object();

	json_object_set_new(j, "sandboxId", json_string(s->id));
	json_object_set_new(j, "label", s->label ? json_deep_copy(s->label) : json_null());
	json_array_append_new(arg, j);
}

static int list(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_json json_t *a = json_array();

	client_sessions_visit(&q->rpc->sessions, add_sandbox, a);
	cleanup_free char *text = json_text(a, NULL);
	return text ? buf_printf(ret, "{\"sandboxes\":%s}", text)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int destroy(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	(void)reterr;
	target_close(q);
	return buf_add_str(ret, "{\"ok\":true}");
}

static const char *error_class(const char *kind)
{
	static const char *const limits[] = { "memory",    "cpu",  "processes",
					      "file_size", "disk", "output" };

	if (str_eq(kind, "timeout"))
		return "TIMEOUT";
	if (str_eq(kind, "cancelled"))
		return "CANCELLED";
	if (str_eq(kind, "denied"))
		return "CAPABILITY_DENIED";
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		if (str_eq(kind, limits[i]))
			return "LIMIT_EXCEEDED";
	return NULL;
}

/* The result in the format of pod clients. */
static int add_run_result(struct buf *ret, struct cordon_result *r, struct cordon_error **reterr)
{
	cleanup_json json_t *j = json_object(), *full = NULL;
	const char *class = error_class(cordon_result_error_kind(r)), *text;
	const char *json = cordon_result_json(r);
	cleanup_buf struct buf err = { 0 };
	size_t len;

	buf_init(&err, SIZE_MAX / 2);
	text = cordon_result_stderr(r, &len);
	(void)buf_add(&err, text, len);
	if (str_eq(class, "TIMEOUT"))
		(void)buf_add_str(&err, "command timeout\n");
	if (str_eq(class, "CANCELLED"))
		(void)buf_add_str(&err, "command cancelled\n");
	int rc = json_parse(json, strlen(json), 0, &full, reterr);
	if (rc < 0)
		return rc;
	text = cordon_result_stdout(r, &len);
	json_object_set_new(j, "exitCode", json_integer(cordon_result_exit_status(r)));
	json_object_set_new(j, "stdout", json_string_lossy(text, len));
	json_object_set_new(j, "stderr", json_string_lossy(buf_text(&err), err.len));
	json_object_set(j, "executionTimeMs", json_object_get(full, "execution_time_ms"));
	json_object_set(j, "truncated", json_object_get(full, "truncated"));
	if (class)
		json_object_set_new(j, "errorClass", json_string(class));
	cleanup_free char *line = json_text(j, NULL);
	return line ? buf_add_str(ret, line) : err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* For shell.history.list. */
static void remember(struct request *q, const char *command)
{
	char now[CLOCK_UTC_SIZE];
	struct client_session *s = q->cs;

	clock_utc_text(now);
	json_t *entry = json_pack("{s:s, s:s}", "command", command, "timestamp", now);
	pthread_mutex_lock(&q->rpc->sessions.lock);
	if (!s->history)
		s->history = json_array();
	if (json_array_size(s->history) >= HISTORY_MAX)
		json_array_remove(s->history, 0);
	json_array_append_new(s->history, entry);
	pthread_mutex_unlock(&q->rpc->sessions.lock);
}

static int run(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_rpc_execution struct rpc_execution x = { 0 };
	struct cordon_result *result = NULL;
	const char *command = NULL;
	int r = target_need(q, "command", &command, reterr);

	if (r == 0 && strlen(command) > COMMAND_MAX)
		return err_set(reterr, CORDON_INVALID, "Command too large");
	if (r < 0)
		return r;
	if (json_object_set(q->params, "code", json_object_get(q->params, "command")) != 0 ||
	    move_option(q->params, "timeoutMs", q->params, "timeout_ms") != 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	r = rpc_execution_read(q, q->cs->id, &x, reterr);
	if (r == 0)
		r = client_session_pass(&q->rpc->sessions, q->cs, reterr);
	if (r == 0)
		remember(q, command);
	if (r == 0)
		r = cordon_session_execute(q->cs->session, &x.options, &result, reterr);
	if (r < 0)
		return r;
	rpc_execution_flush(&x);
	r = add_run_result(ret, result, reterr);
	cordon_result_free(result);
	return r;
}

static int set_env(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *name = NULL, *value = NULL;
	int r = target_need(q, "name", &name, reterr);

	if (r == 0)
		r = target_need(q, "value", &value, reterr);
	if (r == 0)
		r = cordon_session_setenv(q->cs->session, name, value, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

static int get_env(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *name = NULL;
	int r = target_need(q, "name", &name, reterr);

	if (r < 0)
		return r;
	cleanup_free char *value = cordon_session_getenv(q->cs->session, name);
	cleanup_json json_t *j = value ? json_string(value) : json_null();
	cleanup_free char *text = json_text(j, NULL);
	return text ? buf_printf(ret, "{\"value\":%s}", text)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int kill_all(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	(void)q;
	(void)reterr;
	return buf_add_str(ret, "{\"ok\":true}");
}

const struct rpc_method rpc_sandbox_methods[] = {
	{ "create", create, RPC_SLOW | RPC_HOME, "*" },
	{ "run", run, RPC_SLOW | RPC_SESSION | RPC_EXECUTE | RPC_CODE,
	  "command timeoutMs stream stdin" },
	{ "kill", kill_all, RPC_LAST, "" },
	{ "env.set", set_env, RPC_SESSION, "name value" },
	{ "env.get", get_env, RPC_SESSION, "name" },
	{ "sandbox.create", create_sandbox, RPC_SLOW, "*" },
	{ "sandbox.list", list, 0, "" },
	{ "sandbox.remove", destroy, RPC_SLOW | RPC_SESSION | RPC_ASLEEP | RPC_CLOSE | RPC_ENDS,
	  "" },
	{ "sandbox.destroy", destroy, RPC_SLOW | RPC_SESSION | RPC_ASLEEP | RPC_CLOSE | RPC_ENDS,
	  "" },
	{ 0 },
};
