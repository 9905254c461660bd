/* serve/mcptool.c - see mcptool.h. */
#include "serve/mcptool.h"

#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "serve/reply.h"

enum { FILE_MAX = 16 << 20 };

/* One call on its way. */
struct call {
	struct mcp *m;
	const json_t *args;
	json_t *request;
	struct seat *seat;
	json_t *structured; /* the result as data */
	json_t *content;    /* further parts: images */
	char *text;         /* the result as text */
	bool is_error;
};

typedef int (*tool_fn)(struct call *c, struct cordon_error **reterr);

static const char *arg(const struct call *c, const char *name)
{
	return json_string_value(json_object_get(c->args, name));
}

static int need(const struct call *c, const char *name, const char **ret,
		struct cordon_error **reterr)
{
	*ret = arg(c, name);
	return *ret ? 0
		    : err_set(reterr, CORDON_INVALID, "the argument '%s' is missing or no text",
			      name);
}

static int open_sandbox(struct call *c, const char *guest, const char *label, struct seat **ret,
			struct cordon_error **reterr)
{
	struct cordon_session_options o = { .guest = guest, .policy = c->m->policy };
	struct cordon_session *session = NULL;
	struct seat *seat = NULL;
	int r = seat_new(&c->m->seats, SEAT_SESSION, false, &seat, reterr);

	if (r < 0)
		return r;
	r = cordon_session_open(&o, &session, reterr);
	if (r < 0) {
		seat_fail(&c->m->seats, seat);
		return r;
	}
	seat->label = label ? json_string(label) : NULL;
	seat_open_session(&c->m->seats, seat, session);
	*ret = seat;
	return 0;
}

struct search {
	const char *label;
	char id[SEAT_ID_BYTES];
};

static void match_label(const struct seat *s, void *arg_search)
{
	struct search *x = arg_search;

	if (s->label && str_eq(json_string_value(s->label), x->label))
		(void)str_copy(x->id, sizeof(x->id), s->id);
}

/* The sandbox that the call names, or the default one of the guest, made when it is first wanted.
 */
static int find_sandbox(struct call *c, const char *guest, struct cordon_error **reterr)
{
	const char *id = arg(c, "sandbox_id");
	char label[32];

	if (id) {
		c->seat = seat_get(&c->m->seats, id, SEAT_SESSION);
		return c->seat ? 0
			       : err_set(reterr, CORDON_NOT_FOUND,
					 "there is no sandbox '%.100s'; list_sandboxes names them",
					 id);
	}
	snprintf(label, sizeof(label), "default %s", guest);
	struct search x = { .label = label };
	seats_visit(&c->m->seats, match_label, &x);
	if (x.id[0])
		c->seat = seat_get(&c->m->seats, x.id, SEAT_SESSION);
	return c->seat ? 0 : open_sandbox(c, guest, label, &c->seat, reterr);
}

static void add_images(struct call *c, const json_t *full)
{
	size_t i;
	json_t *o;

	json_array_foreach(json_object_get(full, "outputs"), i, o)
	{
		const char *mime = json_string_value(json_object_get(o, "mime"));
		if (!str_starts(mime ? mime : "", "image/") ||
		    !str_eq(json_string_value(json_object_get(o, "encoding")), "base64"))
			continue;
		json_t *part = json_object();
		json_object_set_new(part, "type", json_string("image"));
		json_object_set(part, "data", json_object_get(o, "data"));
		json_object_set(part, "mimeType", json_object_get(o, "mime"));
		json_array_append_new(c->content, part);
	}
}

static void describe(struct call *c, struct cordon_result *result, const json_t *full)
{
	static const char *const copied[] = {
		"success",           "stdout",   "stderr", "error", "error_kind", "denials",
		"execution_time_ms", "truncated"
	};
	cleanup_free char *denials = cordon_result_denials_text(result);
	const char *value = cordon_result_value_text(result);
	struct buf b;

	for (size_t i = 0; i < sizeof(copied) / sizeof(*copied); i++)
		json_object_set(c->structured, copied[i], json_object_get(full, copied[i]));
	json_object_set_new(c->structured, "exit_code",
			    json_integer(cordon_result_exit_status(result)));
	json_object_set_new(c->structured, "result", value ? json_string(value) : json_null());
	json_object_set_new(c->structured, "sandbox_id", json_string(c->seat->id));
	buf_init(&b, 4 << 20);
	(void)buf_printf(&b, "%s%s", json_string_value(json_object_get(full, "stdout")),
			 value ? value : "");
	const char *err = json_string_value(json_object_get(full, "stderr"));
	if (err && err[0])
		(void)buf_printf(&b, "%sstderr:\n%s", b.len ? "\n" : "", err);
	if (!cordon_result_success(result))
		(void)buf_printf(&b, "%s%s: %s\n%s", b.len ? "\n" : "",
				 cordon_result_error_kind(result), cordon_result_error(result),
				 denials ? denials : "");
	c->text = b.len ? buf_take(&b) : str_dup("");
	buf_done(&b);
	add_images(c, full);
}

static int execute(struct call *c, const char *code, struct cordon_error **reterr)
{
	struct cordon_execute_options o = { .code = code };
	struct cordon_result *result = NULL;
	cleanup_json json_t *full = NULL;
	const json_t *timeout = json_object_get(c->args, "timeout_ms");

	if (json_is_integer(timeout) && json_integer_value(timeout) > 0)
		o.timeout_ms = (uint64_t)json_integer_value(timeout);
	int r = seat_begin(&c->m->seats, c->seat, c->request, reterr);
	if (r < 0)
		return r;
	r = cordon_session_execute(c->seat->session, &o, &result, reterr);
	seat_end(&c->m->seats, c->seat);
	if (r < 0)
		return r;
	const char *json = cordon_result_json(result);
	r = json_parse(json, strlen(json), 0, &full, reterr);
	if (r == 0)
		describe(c, result, full);
	c->is_error = !cordon_result_success(result);
	cordon_result_free(result);
	return r;
}

static int run_code(struct call *c, struct cordon_error **reterr)
{
	const char *code = NULL, *language = arg(c, "language");
	int r = need(c, "code", &code, reterr);

	if (r == 0)
		r = find_sandbox(c, language ? language : "python", reterr);
	return r < 0 ? r : execute(c, code, reterr);
}

static int run_command(struct call *c, struct cordon_error **reterr)
{
	const char *command = NULL;
	int r = need(c, "command", &command, reterr);

	if (r == 0)
		r = find_sandbox(c, "sh", reterr);
	if (r == 0)
		r = execute(c, command, reterr);
	/* A command that says no has done its work: its status is the answer. */
	if (r == 0 && !json_is_string(json_object_get(c->structured, "error_kind")))
		c->is_error = false;
	return r;
}

static int read_file(struct call *c, struct cordon_error **reterr)
{
	const char *path = NULL;
	char *bytes = NULL;
	size_t len = 0;
	int r = need(c, "path", &path, reterr);

	if (r == 0)
		r = find_sandbox(c, "sh", reterr);
	if (r == 0)
		r = cordon_file_read(c->seat->session, path, &bytes, &len, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "Error reading file");
	bool is_text = len <= FILE_MAX && str_is_utf8(bytes, len) && !memchr(bytes, 0, len);
	cleanup_free char *coded = is_text ? NULL : base64_encode(bytes, len, NULL);
	json_object_set_new(c->structured, "encoding", json_string(is_text ? "text" : "base64"));
	json_object_set_new(c->structured, "contents",
			    is_text ? json_stringn(bytes ? bytes : "", len) : json_string(coded));
	c->text = is_text ? str_ndup(bytes ? bytes : "", len) : str_dup(coded);
	free(bytes);
	return 0;
}

static int write_file(struct call *c, struct cordon_error **reterr)
{
	const char *path = NULL, *contents = NULL;
	cleanup_free void *bytes = NULL;
	size_t len = 0;
	int r = need(c, "path", &path, reterr);

	if (r == 0)
		r = need(c, "contents", &contents, reterr);
	if (r == 0)
		r = find_sandbox(c, "sh", reterr);
	if (r == 0 && str_eq(arg(c, "encoding"), "base64"))
		r = base64_decode(contents, strlen(contents), &bytes, &len, reterr);
	else if (r == 0)
		len = json_string_length(json_object_get(c->args, "contents"));
	if (r == 0)
		r = cordon_file_write(c->seat->session, path, bytes ? bytes : contents, len,
				      reterr);
	if (r < 0)
		return err_wrap(reterr, r, "Error writing file");
	json_object_set_new(c->structured, "bytes", json_integer((json_int_t)len));
	c->text = str_printf("%zu bytes written to %s", len, path);
	return 0;
}

static int add_entry(const char *name, const struct cordon_file_info *info, void *arg_list)
{
	static const char *const types[] = { "file", "directory", "symlink", "other" };
	json_t *e = json_object();

	json_object_set_new(e, "name", json_string_lossy(name, strlen(name)));
	json_object_set_new(e, "type", json_string(types[info->type]));
	json_object_set_new(e, "size", json_integer((json_int_t)info->size));
	return json_array_append_new(arg_list, e) == 0 ? 0 : -CORDON_NOMEM;
}

static int list_directory(struct call *c, struct cordon_error **reterr)
{
	const char *path = arg(c, "path");
	json_t *entries = json_array();
	int r = find_sandbox(c, "sh", reterr);

	json_object_set_new(c->structured, "entries", entries);
	if (r == 0)
		r = cordon_file_list(c->seat->session, path ? path : "/home/user", add_entry,
				     entries, reterr);
	return r < 0 ? err_wrap(reterr, r, "Error listing directory") : 0;
}

static int create_sandbox(struct call *c, struct cordon_error **reterr)
{
	const char *language = arg(c, "language");
	int r = open_sandbox(c, language ? language : "sh", arg(c, "label"), &c->seat, reterr);

	if (r == 0)
		json_object_set_new(c->structured, "sandbox_id", json_string(c->seat->id));
	return r;
}

static void add_sandbox(const struct seat *s, void *arg_list)
{
	json_t *j = json_object();

	json_object_set_new(j, "sandbox_id", json_string(s->id));
	json_object_set(j, "label", s->label ? s->label : json_null());
	json_array_append_new(arg_list, j);
}

static int list_sandboxes(struct call *c, struct cordon_error **reterr)
{
	json_t *a = json_array();

	(void)reterr;
	seats_visit(&c->m->seats, add_sandbox, a);
	json_object_set_new(c->structured, "sandboxes", a);
	return 0;
}

static int need_sandbox(struct call *c, struct cordon_error **reterr)
{
	const char *id = NULL;
	int r = need(c, "sandbox_id", &id, reterr);

	return r < 0 ? r : find_sandbox(c, "sh", reterr);
}

static int destroy_sandbox(struct call *c, struct cordon_error **reterr)
{
	int r = need_sandbox(c, reterr);

	if (r < 0)
		return r;
	seat_close(&c->m->seats, c->seat);
	c->seat = NULL;
	return 0;
}

static int snapshot(struct call *c, struct cordon_error **reterr)
{
	char name[24];
	int r = need_sandbox(c, reterr);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%u", ++c->seat->snapshots);
	r = cordon_snapshot_create(c->seat->session, name, reterr);
	if (r == 0)
		json_object_set_new(c->structured, "snapshot_id", json_string(name));
	return r;
}

static int restore(struct call *c, struct cordon_error **reterr)
{
	const char *name = NULL;
	int r = need(c, "snapshot_id", &name, reterr);

	if (r == 0)
		r = need_sandbox(c, reterr);
	return r < 0 ? r : cordon_snapshot_restore(c->seat->session, name, reterr);
}

static int fork_sandbox(struct call *c, struct cordon_error **reterr)
{
	struct cordon_session *session = NULL;
	struct seat *seat = NULL;
	int r = need_sandbox(c, reterr);

	if (r == 0)
		r = seat_new(&c->m->seats, SEAT_SESSION, true, &seat, reterr);
	if (r < 0)
		return r;
	r = cordon_session_fork(c->seat->session, &session, reterr);
	if (r < 0) {
		seat_fail(&c->m->seats, seat);
		return r;
	}
	seat_open_session(&c->m->seats, seat, session);
	json_object_set_new(c->structured, "sandbox_id", json_string(seat->id));
	seat_put(&c->m->seats, seat);
	return 0;
}

static int export_state(struct call *c, struct cordon_error **reterr)
{
	cleanup_close int fd = memfd_create("cordon-export", MFD_CLOEXEC);
	cleanup_buf struct buf b = { 0 };
	int r = need_sandbox(c, reterr);

	buf_init(&b, FILE_MAX);
	if (r == 0)
		r = cordon_files_export(c->seat->session, fd, reterr);
	if (r == 0 && lseek(fd, 0, SEEK_SET) == 0)
		r = file_read_to_end(fd, &b, reterr);
	if (r < 0)
		return r;
	cleanup_free char *text = base64_encode(b.data, b.len, NULL);
	json_object_set_new(c->structured, "data", json_string(text ? text : ""));
	return 0;
}

static int import_state(struct call *c, struct cordon_error **reterr)
{
	const char *data = NULL;
	cleanup_free void *bytes = NULL;
	cleanup_free char *report = NULL;
	cleanup_close int fd = -1;
	size_t len = 0;
	int r = need(c, "data", &data, reterr);

	if (r == 0)
		r = base64_decode(data, strlen(data), &bytes, &len, reterr);
	if (r == 0)
		r = file_from_bytes("cordon-import", bytes, len, &fd, reterr);
	if (r == 0)
		r = arg(c, "sandbox_id") ? find_sandbox(c, "sh", reterr)
					 : open_sandbox(c, "sh", arg(c, "label"), &c->seat, reterr);
	if (r == 0)
		r = cordon_files_import(c->seat->session, fd, &report, reterr);
	if (r == 0)
		json_object_set_new(c->structured, "sandbox_id", json_string(c->seat->id));
	return r;
}

/* args: "name:what it is", a star after the name of one that is needed. */
static const struct {
	const char *name, *description;
	tool_fn fn;
	bool is_read_only;
	const char *args[6];
} tools[] = {
	{ "run_code",
	  "Run code in a sandbox and get its output and the value of its last expression; plots "
	  "come back as images. Variables stay between calls.",
	  run_code,
	  false,
	  { "code*:the code", "language:python (default), r or node",
	    "sandbox_id:which sandbox; default: one for the language", "timeout_ms#:wall clock" } },
	{ "run_command",
	  "Run a shell command in a sandbox.",
	  run_command,
	  false,
	  { "command*:the command line", "sandbox_id:which sandbox; default: one for the shell",
	    "timeout_ms#:wall clock" } },
	{ "read_file",
	  "Read a file of a sandbox; bytes that are no text come as base64.",
	  read_file,
	  true,
	  { "path*:absolute path", "sandbox_id:which sandbox" } },
	{ "write_file",
	  "Write a file of a sandbox; folders are made.",
	  write_file,
	  false,
	  { "path*:absolute path", "contents*:what to write", "encoding:text (default) or base64",
	    "sandbox_id:which sandbox" } },
	{ "list_directory",
	  "List a directory of a sandbox.",
	  list_directory,
	  true,
	  { "path:default /home/user", "sandbox_id:which sandbox" } },
	{ "create_sandbox",
	  "Make a sandbox of its own.",
	  create_sandbox,
	  false,
	  { "language:sh (default), python, r, node or pod", "label:a name for list_sandboxes" } },
	{ "list_sandboxes", "List the sandboxes.", list_sandboxes, true, { NULL } },
	{ "destroy_sandbox",
	  "End a sandbox and all in it.",
	  destroy_sandbox,
	  false,
	  { "sandbox_id*:which" } },
	{ "snapshot",
	  "Take a picture of a sandbox's files.",
	  snapshot,
	  false,
	  { "sandbox_id*:which" } },
	{ "restore",
	  "Bring a sandbox's files back to a snapshot.",
	  restore,
	  false,
	  { "sandbox_id*:which", "snapshot_id*:which snapshot" } },
	{ "fork",
	  "Make an independent sandbox with the same files.",
	  fork_sandbox,
	  false,
	  { "sandbox_id*:which" } },
	{ "export_state",
	  "A sandbox's files as one blob (base64).",
	  export_state,
	  true,
	  { "sandbox_id*:which" } },
	{ "import_state",
	  "Files from a blob into a sandbox, a new one by default.",
	  import_state,
	  false,
	  { "data*:the blob, base64", "sandbox_id:which", "label:a name for a new one" } },
};

enum { TOOLS = sizeof(tools) / sizeof(*tools) };

static json_t *input_schema(size_t t)
{
	json_t *schema = json_object(), *properties = json_object(), *required = json_array();

	for (size_t i = 0; i < 6 && tools[t].args[i]; i++) {
		const char *a = tools[t].args[i], *colon = strchr(a, ':');
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
	return schema;
}

json_t *mcptool_list(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < TOOLS; i++) {
		json_t *t = json_object(), *hints = json_object(), *out = json_object();
		json_object_set_new(t, "name", json_string(tools[i].name));
		json_object_set_new(t, "description", json_string(tools[i].description));
		json_object_set_new(t, "inputSchema", input_schema(i));
		json_object_set_new(out, "type", json_string("object"));
		json_object_set_new(t, "outputSchema", out);
		json_object_set_new(hints, "readOnlyHint", json_boolean(tools[i].is_read_only));
		json_object_set_new(
			hints, "destructiveHint",
			json_boolean(tools[i].fn == destroy_sandbox || tools[i].fn == restore));
		json_object_set_new(hints, "openWorldHint", json_false());
		json_object_set_new(t, "annotations", hints);
		json_array_append_new(list, t);
	}
	return list;
}

static json_t *to_result(struct call *c)
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

json_t *mcptool_call(struct mcp *m, const char *name, const json_t *args, json_t *request)
{
	cleanup_error struct cordon_error *e = NULL;
	struct call c = { .m = m, .args = args, .request = request };
	size_t i = 0;

	while (i < TOOLS && !str_eq(tools[i].name, name))
		i++;
	if (i == TOOLS)
		return NULL;
	c.structured = json_object();
	c.content = json_array();
	if (tools[i].fn(&c, &e) < 0) {
		free(c.text);
		c.text = reply_chain(e);
		c.is_error = true;
		json_object_set_new(c.structured, "error", json_string(c.text ? c.text : "failed"));
	}
	json_t *result = to_result(&c);
	seat_put(&m->seats, c.seat);
	json_decref(c.structured);
	json_decref(c.content);
	free(c.text);
	return result;
}
