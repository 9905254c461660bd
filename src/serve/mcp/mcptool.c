/* serve/mcp/mcptool.c - see mcptool.h. The table of tools, their sandboxes, and the form of
 * results. */
#include "serve/mcp/mcptool.h"

#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "serve/rpc/reply.h"

enum { IMPLICIT_MAX = 16 }; /* sandboxes kept for calls without a sandbox_id */

static int open_session(struct mcpcall *c, const char *guest, struct client_session *cs,
			struct cordon_error **reterr)
{
	struct cordon_session_options o = { .guest = guest, .policy = c->mcp->options.policy };
	struct cordon_session *session = NULL;
	int r = cordon_session_open(&o, &session, reterr);

	if (r < 0) {
		client_session_fail(&c->mcp->sessions, cs);
		return r;
	}
	client_session_open_session(&c->mcp->sessions, cs, session);
	mcpcall_take_session(c, cs);
	return 0;
}

int mcptool_open(struct mcpcall *c, const char *guest, const char *label, bool is_implicit,
		 struct cordon_error **reterr)
{
	struct client_session *cs = NULL;

	if (label && strlen(label) > CLIENT_SESSION_LABEL_MAX)
		return err_set(reterr, CORDON_INVALID, "a label has at most %d bytes",
			       CLIENT_SESSION_LABEL_MAX);
	if (is_implicit)
		client_sessions_expire(&c->mcp->sessions, UINT64_MAX, true, IMPLICIT_MAX - 1);
	int r = client_session_new(&c->mcp->sessions, CLIENT_SESSION_SESSION, false, &cs, reterr);
	if (r < 0)
		return r;
	cs->label = label ? json_string(label) : NULL;
	cs->is_implicit = is_implicit;
	(void)str_copy(cs->guest, sizeof(cs->guest), guest);
	return open_session(c, guest, cs, reterr);
}

struct search {
	const char *label;
	char id[CLIENT_SESSION_ID_BYTES];
};

static void match_label(const struct client_session *s, void *arg_search)
{
	struct search *x = arg_search;

	if (s->label && str_eq(json_string_value(s->label), x->label))
		(void)str_copy(x->id, sizeof(x->id), s->id);
}

/* One thread at a time, so that parallel calls share the sandbox. */
static int find_default(struct mcpcall *c, const char *guest, struct cordon_error **reterr)
{
	char label[32];
	struct search x = { .label = label };
	int r = 0;

	snprintf(label, sizeof(label), "default %.20s", guest);
	pthread_mutex_lock(&c->mcp->opening);
	client_sessions_visit(&c->mcp->sessions, match_label, &x);
	if (x.id[0])
		mcpcall_take_session(
			c, client_session_get(&c->mcp->sessions, x.id, CLIENT_SESSION_SESSION));
	if (!c->cs)
		r = mcptool_open(c, guest, label, false, reterr);
	pthread_mutex_unlock(&c->mcp->opening);
	return r;
}

int mcptool_find(struct mcpcall *c, const char *guest, struct cordon_error **reterr)
{
	const char *id = mcpcall_arg(c, "sandbox_id");

	if (id) {
		struct client_session *s =
			client_session_get(&c->mcp->sessions, id, CLIENT_SESSION_SESSION);
		mcpcall_take_session(c, s);
		return s ? 0
			 : err_set(reterr, CORDON_NOT_FOUND,
				   "there is no sandbox '%.100s'; list_sandboxes names them", id);
	}
	if (c->mcp->options.is_stateless)
		return mcptool_open(c, guest, NULL, true, reterr);
	return find_default(c, guest, reterr);
}

int mcptool_find_named(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *id = NULL;
	int r = mcpcall_need(c, "sandbox_id", &id, reterr);

	return r < 0 ? r : mcptool_find(c, "sh", reterr);
}

static int create_sandbox(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *language = mcpcall_arg(c, "language");
	int r = mcptool_open(c, language ? language : "sh", mcpcall_arg(c, "label"), false, reterr);

	if (r == 0)
		json_object_set_new(c->structured, "sandbox_id", json_string(c->cs->id));
	return r;
}

static void add_sandbox(const struct client_session *s, void *arg_list)
{
	json_t *j = json_object();

	json_object_set_new(j, "sandbox_id", json_string(s->id));
	json_object_set(j, "label", s->label ? s->label : json_null());
	json_object_set_new(j, "language", json_string(s->guest));
	json_object_set_new(j, "state",
			    json_string(s->is_suspended ? "suspended"
					: s->execution  ? "running"
							: "idle"));
	json_array_append_new(arg_list, j);
}

static int list_sandboxes(struct mcpcall *c, struct cordon_error **reterr)
{
	json_t *a = json_array();

	(void)reterr;
	client_sessions_visit(&c->mcp->sessions, add_sandbox, a);
	json_object_set_new(c->structured, "sandboxes", a);
	return 0;
}

static int destroy_sandbox(struct mcpcall *c, struct cordon_error **reterr)
{
	int r = mcptool_find_named(c, reterr);

	if (r < 0)
		return r;
	client_session_close(&c->mcp->sessions, mcpcall_leave_session(c));
	cleanup_free char *loss = client_sessions_take_loss(&c->mcp->sessions);
	return loss ? err_set(reterr, CORDON_OS, "%s", loss) : 0;
}

static int fork_sandbox(struct mcpcall *c, struct cordon_error **reterr)
{
	struct client_sessions *sessions = &c->mcp->sessions;
	struct cordon_session *session = NULL;
	struct client_session *cs = NULL;
	int r = mcptool_find_named(c, reterr);

	if (r == 0)
		r = client_session_new(sessions, CLIENT_SESSION_SESSION, true, &cs, reterr);
	if (r < 0)
		return r;
	r = cordon_session_fork(c->cs->session, &session, reterr);
	if (r < 0) {
		client_session_fail(sessions, cs);
		return r;
	}
	(void)str_copy(cs->guest, sizeof(cs->guest), c->cs->guest);
	client_session_open_session(sessions, cs, session);
	json_object_set_new(c->structured, "sandbox_id", json_string(cs->id));
	client_session_put(sessions, cs);
	return 0;
}

static int suspend_sandbox(struct mcpcall *c, struct cordon_error **reterr)
{
	int r = mcptool_find_named(c, reterr);

	return r < 0 ? r : client_session_suspend(&c->mcp->sessions, c->cs, reterr);
}

static int resume_sandbox(struct mcpcall *c, struct cordon_error **reterr)
{
	int r = mcptool_find_named(c, reterr);

	if (r == 0)
		client_session_resume(&c->mcp->sessions, c->cs);
	return r;
}

const struct mcptool mcptool_table[] = {
	{ "run_code",
	  "Run code in a sandbox and get its output and the value of its last expression; plots "
	  "come back as images. Variables stay between calls.",
	  mcptool_run_code,
	  .args = { "code*:the code", "language:python (default), r or node",
		    "sandbox_id:which sandbox; default: one for the language",
		    "timeout_ms#:wall clock" } },
	{ "run_command", "Run a shell command in a sandbox.", mcptool_run_command,
	  .args = { "command*:the command line",
		    "shell:sh (default), or pod for the WebAssembly userland",
		    "sandbox_id:which sandbox; default: one for the shell",
		    "timeout_ms#:wall clock" } },
	{ "read_file", "Read a file of a sandbox. A file that is not text is returned as base64.",
	  mcptool_read_file, .is_read_only = true,
	  .args = { "path*:absolute path", "sandbox_id:which sandbox" } },
	{ "write_file", "Write a file of a sandbox. Missing directories are created.",
	  mcptool_write_file,
	  .args = { "path*:absolute path", "contents*:what to write",
		    "encoding:text (default) or base64", "sandbox_id:which sandbox" } },
	{ "list_directory", "List a directory of a sandbox.", mcptool_list_directory,
	  .is_read_only = true, .args = { "path:default /home/user", "sandbox_id:which sandbox" } },
	{ "create_sandbox", "Make a new sandbox.", create_sandbox,
	  .args = { "language:sh (default), python, r, node or pod",
		    "label:a name for list_sandboxes" } },
	{ "list_sandboxes", "List the sandboxes.", list_sandboxes, .is_read_only = true },
	{ "destroy_sandbox", "End a sandbox and everything in it.", destroy_sandbox,
	  .is_destructive = true, .args = { "sandbox_id*:which" } },
	{ "suspend_sandbox", "Suspend a sandbox: code and commands wait until it is resumed.",
	  suspend_sandbox, .args = { "sandbox_id*:which" } },
	{ "resume_sandbox", "Resume a suspended sandbox.", resume_sandbox,
	  .args = { "sandbox_id*:which" } },
	{ "snapshot", "Take a snapshot of a sandbox's files.", mcptool_snapshot,
	  .args = { "sandbox_id*:which" } },
	{ "restore", "Restore a sandbox's files from a snapshot.", mcptool_restore,
	  .is_destructive = true, .args = { "sandbox_id*:which", "snapshot_id*:which snapshot" } },
	{ "fork", "Make an independent sandbox with the same files.", fork_sandbox,
	  .args = { "sandbox_id*:which" } },
	{ "export_state", "Export a sandbox's files as one blob (base64).", mcptool_export,
	  .is_read_only = true, .args = { "sandbox_id*:which" } },
	{ "import_state", "Import files from a blob into a sandbox, by default a new one.",
	  mcptool_import,
	  .args = { "data*:the blob, base64", "sandbox_id:which", "label:a name for a new one" } },
	{ 0 },
};

static json_t *input_schema(const struct mcptool *t)
{
	json_t *schema = json_object(), *properties = json_object(), *required = json_array();

	for (size_t i = 0; i < MCPTOOL_ARGS && t->args[i]; i++) {
		const char *a = t->args[i], *colon = strchr(a, ':');
		size_t len = strcspn(a, "*#:");
		cleanup_free char *name = str_ndup(a, len);
		json_t *p = json_object();
		json_object_set_new(p, "type", json_string(a[len] == '#' ? "integer" : "string"));
		json_object_set_new(p, "description", json_string(colon + 1));
		json_object_set_new(properties, name ? name : "", p);
		if (a[len] == '*')
			json_array_append_new(required, json_string(name));
	}
	json_object_set_new(schema, "type", json_string("object"));
	json_object_set_new(schema, "properties", properties);
	json_object_set_new(schema, "required", required);
	json_object_set_new(schema, "additionalProperties", json_false());
	return schema;
}

json_t *mcptool_list(const struct mcptool *table)
{
	json_t *list = json_array();

	for (const struct mcptool *tool = table; tool->name; tool++) {
		json_t *t = json_object(), *hints = json_object(), *out = json_object();
		json_object_set_new(t, "name", json_string(tool->name));
		json_object_set_new(t, "description", json_string(tool->description));
		json_object_set_new(t, "inputSchema", input_schema(tool));
		json_object_set_new(out, "type", json_string("object"));
		json_object_set_new(t, "outputSchema", out);
		json_object_set_new(hints, "readOnlyHint", json_boolean(tool->is_read_only));
		json_object_set_new(hints, "destructiveHint", json_boolean(tool->is_destructive));
		json_object_set_new(hints, "openWorldHint", json_false());
		json_object_set_new(t, "annotations", hints);
		json_array_append_new(list, t);
	}
	return list;
}

static json_t *to_result(struct mcpcall *c)
{
	json_t *result = json_object(), *part = json_object();
	cleanup_free char *json = c->text ? NULL : json_text(c->structured, NULL);
	const char *text = c->text ? c->text : json ? json : "";

	json_object_set_new(part, "type", json_string("text"));
	json_object_set_new(part, "text", json_string_lossy(text, strlen(text)));
	json_array_insert_new(c->content, 0, part);
	json_object_set(result, "content", c->content);
	json_object_set(result, "structuredContent", c->structured);
	json_object_set_new(result, "isError", json_boolean(c->is_error));
	return result;
}

static void fail(struct mcpcall *c, const struct cordon_error *e)
{
	free(c->text);
	c->text = err_text(e);
	c->is_error = true;
	json_object_set_new(c->structured, "error", json_string(c->text ? c->text : "failed"));
}

static json_t *refuse(int code, const char *message)
{
	json_t *e = json_object();

	json_object_set_new(e, "code", json_integer(code));
	json_object_set_new(e, "message", json_string(message));
	return e;
}

static const struct mcptool *find_tool(const struct mcptool *t, const char *name)
{
	while (t->name && !str_eq(t->name, name))
		t++;
	return t->name ? t : NULL;
}

static int check_arg(const char *key, const json_t *value, char kind, struct cordon_error **reterr)
{
	if (json_is_null(value)) /* models send null for a missing argument */
		return 0;
	if (kind == '#')
		return json_is_integer(value) && json_integer_value(value) >= 0
			       ? 0
			       : err_set(reterr, CORDON_INVALID,
					 "the argument '%s' must be a non-negative integer", key);
	if (!json_is_string(value))
		return err_set(reterr, CORDON_INVALID, "the argument '%s' must be a string", key);
	/* Only file contents may contain a NUL. Elsewhere, less would run than was sent. */
	if (!str_eq(key, "contents") &&
	    strlen(json_string_value(value)) != json_string_length(value))
		return err_set(reterr, CORDON_INVALID, "the argument '%s' contains a NUL character",
			       key);
	return 0;
}

/* Checks against inputSchema; the tools themselves report missing arguments. */
static int check_args(const struct mcptool *t, const json_t *args, struct cordon_error **reterr)
{
	char names[MCPTOOL_ARGS][32];
	const char *listed[MCPTOOL_ARGS], *key;
	size_t count = 0, i;
	json_t *value;

	for (; count < MCPTOOL_ARGS && t->args[count]; count++) {
		snprintf(names[count], sizeof(names[count]), "%.*s",
			 (int)strcspn(t->args[count], "*#:"), t->args[count]);
		listed[count] = names[count];
	}
	json_object_foreach((json_t *)(uintptr_t)args, key, value)
	{
		for (i = 0; i < count && !str_eq(key, listed[i]); i++)
			;
		if (i == count) {
			const char *nearest = str_nearest(key, listed, count);
			return err_set(reterr, CORDON_INVALID, "unknown argument '%.64s'%s%s%s",
				       key, nearest ? "; did you mean '" : "",
				       nearest ? nearest : "", nearest ? "'?" : "");
		}
		int r = check_arg(key, value, t->args[i][strlen(listed[i])], reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

json_t *mcptool_call(struct mcp *m, const json_t *message, const struct mcp_sink *sink,
		     json_t **ret_error)
{
	cleanup_error struct cordon_error *e = NULL;
	const json_t *params = json_object_get(message, "params");
	const json_t *args = json_object_get(params, "arguments");
	const char *name = json_string_value(json_object_get(params, "name"));
	const struct mcptool *tool = find_tool(m->options.tools, name);
	json_t *result = NULL;
	struct mcpcall c;

	if (!name || (args && !json_is_object(args))) {
		*ret_error = refuse(-32602, "tools/call needs a name, and arguments are an object");
		return NULL;
	}
	if (!tool) {
		*ret_error = refuse(-32602, "there is no such tool");
		return NULL;
	}
	if (mcpcall_begin(&c, m, message, sink, &e) < 0) {
		*ret_error = refuse(cordon_code_rpc(CORDON_LIMIT), cordon_error_message(e));
		return NULL;
	}
	bool is_ours = m->options.tools == mcptool_table;
	if ((is_ours && check_args(tool, args, &e) < 0) || tool->fn(&c, &e) < 0)
		fail(&c, e);
	if (c.refusal)
		*ret_error = json_incref(c.refusal);
	else if (!mcpcall_is_cancelled(&c))
		result = to_result(&c);
	mcpcall_end(&c);
	return result;
}
