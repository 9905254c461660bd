/* serve/e2b/e2b_filesystem.c - envd's filesystem.Filesystem: what is where, and how it is moved.
 * The trees /home/user, /tmp and /workspace can be reached; the rest is the template's and unknown.
 */
#include <string.h>

#include "base/str.h"
#include "serve/e2b/connect_rpc.h"
#include "serve/e2b/e2b_entry.h"
#include "serve/e2b/e2b_state.h"

enum { ENTRIES_MAX = 20000, DEPTH_MAX = 64 };

/* One request: its sandbox and message. */
struct call {
	struct e2b_sandbox *b;
	json_t *m;
	char *path, *other;
};

static void call_done(struct call *c)
{
	e2b_sandbox_put(c->b);
	json_decref(c->m);
	free(c->path);
	free(c->other);
}
#define cleanup_call CLEANUP(call_done)

static int take_path(const json_t *m, const char *key, char **ret, struct cordon_error **reterr)
{
	const char *path = json_string_value(json_object_get(m, key));

	if (json_object_get(m, key) && !path)
		return err_set(reterr, CORDON_INVALID, "%s must be a text", key);
	*ret = e2b_entry_path(path ? path : "");
	return *ret ? 0 : err_set(reterr, CORDON_LIMIT, "%s is too long", key);
}

/* False: the answer is given. */
static bool begin(struct httpd_exchange *x, void *arg, const char *key, const char *other,
		  struct call *ret)
{
	cleanup_error struct cordon_error *e = NULL;

	ret->b = e2b_target(arg, x);
	if (!ret->b)
		return false;
	int r = connect_rpc_read(x, &ret->m, &e);
	if (r == 0)
		r = take_path(ret->m, key, &ret->path, &e);
	if (r == 0 && other)
		r = take_path(ret->m, other, &ret->other, &e);
	if (r < 0)
		connect_rpc_fail(x, e);
	return r == 0;
}

static void answer_entry(struct httpd_exchange *x, struct e2b_sandbox *b, const char *path)
{
	cleanup_error struct cordon_error *e = NULL;
	json_t *entry = NULL, *j;

	if (e2b_entry_describe(b->session, path, &entry, &e) < 0) {
		connect_rpc_fail(x, e);
		return;
	}
	j = json_object();
	json_object_set_new(j, "entry", entry);
	connect_rpc_answer(x, j);
}

void e2b_filesystem_stat(struct httpd_exchange *x, void *arg)
{
	cleanup_call struct call c = { 0 };

	if (begin(x, arg, "path", NULL, &c))
		answer_entry(x, c.b, c.path);
}

void e2b_filesystem_make_dir(struct httpd_exchange *x, void *arg)
{
	cleanup_call struct call c = { 0 };
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_file_info info;

	if (!begin(x, arg, "path", NULL, &c))
		return;
	if (cordon_file_stat(c.b->session, c.path, &info, NULL) == 0)
		connect_rpc_fail_as(
			x, info.type == CORDON_DIRECTORY ? "already_exists" : "invalid_argument",
			info.type == CORDON_DIRECTORY
				? "the directory is there already"
				: "the path is there already and is not a directory");
	else if (cordon_file_mkdir(c.b->session, c.path, true, &e) < 0)
		connect_rpc_fail(x, e);
	else
		answer_entry(x, c.b, c.path);
}

/* The directory that the new name is in is made, as envd does. */
void e2b_filesystem_move(struct httpd_exchange *x, void *arg)
{
	cleanup_call struct call c = { 0 };
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_file_info info;

	if (!begin(x, arg, "source", "destination", &c))
		return;
	cleanup_free char *parent = str_ndup(c.other, (size_t)(e2b_entry_name(c.other) - c.other));
	int r = cordon_file_stat(c.b->session, c.path, &info, &e);
	if (r == 0 && parent && strlen(parent) > 1)
		(void)cordon_file_mkdir(c.b->session, parent, true, NULL);
	if (r == 0)
		r = cordon_file_move(c.b->session, c.path, c.other, &e);
	if (r < 0)
		connect_rpc_fail(x, e);
	else
		answer_entry(x, c.b, c.other);
}

/* What is not there is removed already. */
void e2b_filesystem_remove(struct httpd_exchange *x, void *arg)
{
	cleanup_call struct call c = { 0 };
	cleanup_error struct cordon_error *e = NULL;

	if (!begin(x, arg, "path", NULL, &c))
		return;
	int r = cordon_file_remove(c.b->session, c.path, true, &e);
	if (r < 0 && r != -CORDON_NOT_FOUND)
		connect_rpc_fail(x, e);
	else
		connect_rpc_answer(x, json_object());
}

/* ---- a directory, and those below it */

struct names {
	struct strlist list;
	bool is_failed;
};

static int add_name(const char *name, const struct cordon_file_info *info, void *arg)
{
	struct names *n = arg;

	(void)info;
	return strlist_add(&n->list, name);
}

static int list_below(struct cordon_session *s, const char *path, unsigned depth, json_t *all,
		      struct cordon_error **reterr)
{
	cleanup_strlist struct strlist names = { 0 };
	struct names n = { 0 };
	int r = cordon_file_list(s, path, add_name, &n, reterr);

	names = n.list;
	for (size_t i = 0; i < names.count && r == 0; i++) {
		cleanup_free char *full =
			str_printf("%s%s%s", path, str_eq(path, "/") ? "" : "/", names.items[i]);
		json_t *j = NULL;

		if (!full)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
		if (json_array_size(all) >= ENTRIES_MAX)
			return err_set(reterr, CORDON_LIMIT, "there are more than %d entries",
				       ENTRIES_MAX);
		if (e2b_entry_describe(s, full, &j, NULL) < 0)
			continue; /* gone meanwhile */
		bool is_directory = str_eq(json_string_value(json_object_get(j, "type")),
					   "FILE_TYPE_DIRECTORY");
		json_array_append_new(all, j);
		if (is_directory && depth > 1)
			r = list_below(s, full, depth - 1, all, reterr);
	}
	return r;
}

void e2b_filesystem_list(struct httpd_exchange *x, void *arg)
{
	cleanup_call struct call c = { 0 };
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_file_info info;
	uint64_t depth = 1;

	if (!begin(x, arg, "path", NULL, &c))
		return;
	json_t *all = json_array(), *j;
	int r = json_get_uint(c.m, "", "depth", &depth, &e);
	if (r == 0)
		r = cordon_file_stat(c.b->session, c.path, &info, &e);
	if (r == 0 && info.type == CORDON_FILE)
		r = err_set(&e, CORDON_INVALID, "'%.200s' is not a directory", c.path);
	depth = depth == 0 ? 1 : depth > DEPTH_MAX ? DEPTH_MAX : depth;
	if (r == 0)
		r = list_below(c.b->session, c.path, (unsigned)depth, all, &e);
	if (r < 0) {
		json_decref(all);
		connect_rpc_fail(x, e);
		return;
	}
	j = json_object();
	json_object_set_new(j, "entries", all);
	connect_rpc_answer(x, j);
}
