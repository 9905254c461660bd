/* session/files.c - the public files API: a session's workspace from the host's side. It works
 * while the guest runs, is stuck or is gone; snapshots and restores hold the session. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cordon/files.h"
#include "files/export.h"
#include "files/offload.h"
#include "files/pack.h"
#include "files/review.h"
#include "files/unpack.h"
#include "guest/mounts.h"
#include "policy/public.h"
#include "session/persist.h"
#include "session/place.h"
#include "session/session.h"
#include "session/session_process.h"

#define BUSY_TEXT "the session is executing; wait for the current execution to complete."

/* Takes a reference, because an execution in another thread may replace the guest and with it the
 * session's workspace. */
static int workspace_of(struct cordon_session *s, struct workspace **ret,
			struct cordon_error **reterr)
{
	s = session_root(s);
	pthread_mutex_lock(&s->files_lock);
	*ret = session_is_closed(s) ? NULL : workspace_ref(s->workspace);
	pthread_mutex_unlock(&s->files_lock);
	return *ret ? 0 : err_set(reterr, CORDON_STATE, "Session is not running.");
}

/* Every change schedules a save of a persistent workspace. */
static int touched(struct cordon_session *s, int r)
{
	persist_touch(session_root(s)->persist);
	return r;
}

bool session_is_offloaded(struct cordon_session *s)
{
	struct cordon_session *root = session_root(s);

	if (s != root) /* the holder of the owner needs no lock */
		pthread_mutex_lock(&root->files_lock);
	bool is = root->workspace && workspace_is_offloaded(root->workspace);
	if (s != root)
		pthread_mutex_unlock(&root->files_lock);
	return is;
}

/* Called after a change. False: a renewal may have copied the files before the change, and the
 * session now has another workspace. Waits for a renewal in progress. */
static bool is_current(struct cordon_session *s, const struct workspace *ws)
{
	s = session_root(s);
	pthread_mutex_lock(&s->files_lock);
	bool is = s->workspace == ws;
	pthread_mutex_unlock(&s->files_lock);
	return is;
}

static int changed(struct cordon_session *s, const struct workspace *ws, int r,
		   struct cordon_error **reterr)
{
	persist_touch(session_root(s)->persist);
	if (r < 0 || is_current(s, ws))
		return r;
	return err_set(
		reterr, CORDON_STATE,
		"the session was restarted meanwhile and may have lost this change: make it again");
}

/* A live mount is not in the workspace. The caller can use the host's path instead. */
int session_workspace_at(struct cordon_session *s, const char *path, struct workspace **ret,
			 struct cordon_error **reterr)
{
	if (!path)
		return err_set(reterr, CORDON_INVALID, "the path is missing");
	cleanup_free char *full = str_printf("%s%s", *path == '/' ? "" : "/home/user/", path);
	const struct policy_mount *m = full ? mounts_live_at(&s->policy, full) : NULL;

	if (m)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "'%s' is a live mount of the host's '%s', which the files API does "
			       "not reach: use the host's path",
			       m->guest, m->host);
	return workspace_of(s, ret, reterr);
}

int cordon_file_read(struct cordon_session *s, const char *path, char **ret, size_t *ret_len,
		     struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	int r = session_workspace_at(s, path, &ws, reterr);

	return r < 0 ? r : workspace_read(ws, path, 0, ret, ret_len, reterr);
}

int cordon_file_read_at(struct cordon_session *s, const char *path, uint64_t offset, void *bytes,
			size_t len, size_t *ret_len, struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	int r = session_workspace_at(s, path, &ws, reterr);

	return r < 0 ? r : workspace_read_at(ws, path, offset, bytes, len, ret_len, reterr);
}

int cordon_file_write(struct cordon_session *s, const char *path, const void *bytes, size_t len,
		      struct cordon_error **reterr)
{
	for (;;) {
		cleanup_workspace struct workspace *ws = NULL;
		int r = session_workspace_at(s, path, &ws, reterr);

		if (r == 0)
			r = workspace_write(ws, path, bytes, len, reterr);
		/* Writing replaces the whole file, so it can be repeated. */
		if (r < 0 || is_current(s, ws))
			return touched(s, r);
	}
}

int cordon_file_append(struct cordon_session *s, const char *path, const void *bytes, size_t len,
		       struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	int r = session_workspace_at(s, path, &ws, reterr);

	return r < 0 ? r : changed(s, ws, workspace_append(ws, path, bytes, len, reterr), reterr);
}

int cordon_file_stat(struct cordon_session *s, const char *path, struct cordon_file_info *ret,
		     struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	int r = session_workspace_at(s, path, &ws, reterr);

	return r < 0 ? r : workspace_stat(ws, path, ret, reterr);
}

int cordon_file_list(struct cordon_session *s, const char *path, cordon_file_list_fn fn, void *arg,
		     struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	int r = session_workspace_at(s, path, &ws, reterr);

	return r < 0 ? r : workspace_list(ws, path, fn, arg, reterr);
}

int cordon_file_mkdir(struct cordon_session *s, const char *path, bool parents,
		      struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	int r = session_workspace_at(s, path, &ws, reterr);

	return r < 0 ? r : changed(s, ws, workspace_mkdir(ws, path, parents, reterr), reterr);
}

int cordon_file_move(struct cordon_session *s, const char *from, const char *to,
		     struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL, *same = NULL;
	int r = session_workspace_at(s, from, &ws, reterr);

	if (r == 0)
		r = session_workspace_at(s, to, &same, reterr);

	return r < 0 ? r : changed(s, ws, workspace_move(ws, from, to, reterr), reterr);
}

int cordon_file_remove(struct cordon_session *s, const char *path, bool recursive,
		       struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	int r = session_workspace_at(s, path, &ws, reterr);

	return r < 0 ? r : changed(s, ws, workspace_remove(ws, path, recursive, reterr), reterr);
}

char *session_state_text(struct cordon_session *s)
{
	cleanup_json json_t *o = json_object(), *env = session_env(s);

	json_object_set_new(o, "env", env ? json_incref(env) : json_object());
	if (s->cwd)
		json_object_set_new(o, "cwd", json_string(s->cwd));
	return json_text(o, NULL);
}

void session_note_cwd(struct cordon_session *s, const char *path, size_t len)
{
	if (len == 0 || len >= PATH_MAX || path[0] != '/' || memchr(path, 0, len))
		return;
	char *copy = str_ndup(path, len);
	persist_lock(s->persist); /* a save may be reading it */
	session_set_cwd(s, copy);
	persist_unlock(s->persist);
}

void session_set_cwd(struct cordon_session *s, char *path)
{
	pthread_mutex_lock(&s->lock);
	char *old = s->cwd;
	s->cwd = path;
	pthread_mutex_unlock(&s->lock);
	free(old);
}

json_t *session_directory_json(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	const char *at = s->cwd ? s->cwd : s->directory ? s->directory : "/home/user";
	json_t *j = json_string_lossy(at, strlen(at));
	pthread_mutex_unlock(&s->lock);
	return j;
}

/* NULL: the directory where sessions start. */
static void move_to(struct cordon_session *s, const char *path)
{
	if (str_eq(path, s->cwd))
		return;
	session_set_cwd(s, str_dup(path));
	s->is_moved = true;
}

/* Variables that were set since the snapshot must go: null unsets them in the guest. In a shell
 * they may also be changed ones that it began with, such as PATH: false makes them what they were
 * then. */
void session_take_state(struct cordon_session *s, const char *text)
{
	cleanup_json json_t *o = NULL;
	const char *name;
	json_t *value;

	if (!text || json_parse(text, strlen(text), 0, &o, NULL) < 0)
		return;
	json_t *env = json_object_get(o, "env");
	if (!json_is_object(env))
		return;
	cleanup_json json_t *now = session_env(s);
	json_t *next = json_deep_copy(env);
	json_object_foreach(now, name, value) if (!json_object_get(next, name))
		json_object_set_new(next, name, session_tells_env(s) ? json_false() : json_null());
	session_exchange_env(s, next);
	persist_lock(s->persist);
	const char *cwd = json_string_value(json_object_get(o, "cwd"));
	move_to(s, cwd && cwd[0] == '/' && strlen(cwd) < PATH_MAX ? cwd : NULL);
	persist_unlock(s->persist);
}

/* s is no context. */
static int hold_workspace(struct cordon_session *s, struct workspace **ret,
			  struct cordon_error **reterr)
{
	uint64_t process = session_process_running(s);
	cleanup_free char *why =
		process ? str_printf("the command %llu runs in the background: wait for its end, "
				     "or end it first",
				     (unsigned long long)process)
			: NULL;
	int r = session_hold_whole(s, why ? why : BUSY_TEXT, reterr);

	if (r < 0)
		return r;
	r = workspace_of(s, ret, reterr);
	if (r < 0)
		session_let_go(s);
	return r;
}

/* Created on first use, freed with the session. */
static struct snapshots *snapshots_of(struct cordon_session *s)
{
	s = session_root(s);
	pthread_mutex_lock(&s->lock);
	struct snapshots *all = s->snapshots;
	pthread_mutex_unlock(&s->lock);
	return all;
}

int cordon_snapshot_create(struct cordon_session *s, const char *name, struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	s = session_root(s);
	session_learn_env(s);
	int r = hold_workspace(s, &ws, reterr);

	if (r < 0)
		return r;
	cleanup_free char *state = session_state_text(s);
	struct snapshots *all = snapshots_of(s);
	if (!all)
		r = snapshots_new(&(struct snapshots_options){ 0 }, &all, reterr);
	if (r == 0) {
		pthread_mutex_lock(&s->lock);
		s->snapshots = all;
		pthread_mutex_unlock(&s->lock);
		r = snapshots_create(all, ws, name, state, NULL, reterr);
	}
	session_let_go(s);
	return r;
}

int cordon_snapshot_restore(struct cordon_session *s, const char *name,
			    struct cordon_error **reterr)
{
	cleanup_free char *state = NULL;
	cleanup_workspace struct workspace *ws = NULL;
	s = session_root(s);
	session_learn_env(s);
	int r = hold_workspace(s, &ws, reterr);

	if (r < 0)
		return r;
	r = s->snapshots ? snapshots_restore(s->snapshots, ws, name, &state, reterr)
			 : err_set(reterr, CORDON_NOT_FOUND, "no such snapshot: %s", name);
	if (r == 0)
		session_take_state(s, state);
	(void)touched(s, r); /* before release: a close may be waiting for it */
	session_let_go(s);
	return r;
}

int cordon_snapshot_remove(struct cordon_session *s, const char *name, struct cordon_error **reterr)
{
	struct snapshots *all = snapshots_of(s);

	return all ? snapshots_remove(all, name, reterr)
		   : err_set(reterr, CORDON_NOT_FOUND, "no such snapshot: %s", name);
}

char *cordon_snapshot_list(struct cordon_session *s)
{
	struct snapshots *all = snapshots_of(s);

	return all ? snapshots_list(all) : str_dup("[]");
}

int cordon_session_fork(struct cordon_session *s, struct cordon_session **ret,
			struct cordon_error **reterr)
{
	struct cordon_session *child = NULL;
	cleanup_workspace struct workspace *ws = NULL;
	s = session_root(s);
	session_learn_env(s);
	int r = hold_workspace(s, &ws, reterr);

	if (r < 0)
		return r;
	struct cordon_policy policy;
	const char *languages[GUEST_KIND_POD + 1] = { 0 };
	r = policy_copy(&policy.p, &s->policy, reterr);
	if (r == 0) {
		struct cordon_session_options o = { .guest = guest_name(s->kind),
						    .languages = place_names(s, languages),
						    .policy = &policy,
						    .tools = s->tools,
						    .pre_execute = s->pre_execute,
						    .pre_execute_arg = s->pre_execute_arg,
						    .approval = s->approval,
						    .approval_arg = s->approval_arg,
						    .audit = s->on_audit,
						    .audit_arg = s->audit_arg,
						    .log = s->log,
						    .log_arg = s->log_arg,
						    .cold = s->is_cold };
		r = cordon_session_open(&o, &child, reterr);
		policy_done(&policy.p);
	}
	if (r == 0)
		r = snapshot_fork(ws, child->workspace, reterr);
	if (r == 0)
		session_exchange_env(child, session_env(s));
	if (r == 0)
		move_to(child, s->cwd);
	session_let_go(s);
	if (r < 0) {
		cordon_session_close(child);
		return r;
	}
	*ret = child;
	return 0;
}

int cordon_files_export(struct cordon_session *s, int fd, struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	s = session_root(s);
	session_learn_env(s);
	int r = hold_workspace(s, &ws, reterr);

	if (r < 0)
		return r;
	cleanup_free char *state = session_state_text(s);
	r = export_write(ws, state, fd, reterr);
	session_let_go(s);
	return r;
}

int cordon_files_import(struct cordon_session *s, int fd, char **ret_report_json,
			struct cordon_error **reterr)
{
	cleanup_free char *state = NULL;
	cleanup_workspace struct workspace *ws = NULL;
	s = session_root(s);
	session_learn_env(s);
	int r = hold_workspace(s, &ws, reterr);

	if (r < 0)
		return r;
	r = export_read(ws, fd, false, ret_report_json, &state, reterr);
	if (r == 0)
		session_take_state(s, state);
	(void)touched(s, r); /* before release: a close may be waiting for it */
	session_let_go(s);
	return r;
}

struct storage {
	cordon_storage_save_fn save;
	cordon_storage_load_fn load;
	void *arg;
};

static int keep(const char *id, const void *bytes, size_t len, void *arg,
		struct cordon_error **reterr)
{
	const struct storage *st = arg;
	int r = st->save(id, bytes, len, st->arg);

	return r < 0 ? err_set(reterr, (enum cordon_code) - r, "the storage did not accept '%s'",
			       id)
		     : 0;
}

static int fetch(const char *id, void **ret, size_t *ret_len, void *arg,
		 struct cordon_error **reterr)
{
	const struct storage *st = arg;
	int r = st->load(id, ret, ret_len, st->arg);

	return r < 0 ? err_set(reterr, (enum cordon_code) - r, "the storage has no '%s'", id) : 0;
}

static int hold_for_storage(struct cordon_session *s, bool has_callback, struct workspace **ret,
			    struct cordon_error **reterr)
{
	if (!has_callback)
		return err_set(reterr, CORDON_INVALID, "No storage callbacks configured");
	int r = session_hold_whole(s, "Cannot offload while a command is running", reterr);
	if (r < 0)
		return r;
	r = workspace_of(s, ret, reterr);
	if (r < 0)
		session_let_go(s);
	return r;
}

int cordon_session_offload(struct cordon_session *s, cordon_storage_save_fn save, void *arg,
			   struct cordon_error **reterr)
{
	struct storage st = { .save = save, .arg = arg };
	cleanup_workspace struct workspace *ws = NULL;
	s = session_root(s);
	session_learn_env(s);
	int r = hold_for_storage(s, save, &ws, reterr);

	if (r < 0)
		return r;
	cleanup_free char *state = session_state_text(s);
	persist_lock(s->persist); /* a save in between would store the empty workspace */
	r = offload_save(ws, s->id, state, keep, &st, reterr);
	persist_unlock(s->persist);
	session_let_go(s);
	return r;
}

int cordon_session_rehydrate(struct cordon_session *s, cordon_storage_load_fn load, void *arg,
			     struct cordon_error **reterr)
{
	struct storage st = { .load = load, .arg = arg };
	cleanup_free char *state = NULL;
	cleanup_workspace struct workspace *ws = NULL;
	s = session_root(s);
	session_learn_env(s);
	int r = hold_for_storage(s, load, &ws, reterr);

	if (r < 0)
		return r;
	persist_lock(s->persist);
	r = offload_load(ws, s->id, fetch, &st, &state, reterr);
	persist_unlock(s->persist);
	if (r == 0)
		session_take_state(s, state);
	(void)touched(s, r); /* before release: a close may be waiting for it */
	session_let_go(s);
	return r;
}

struct cordon_project {
	struct cordon_session *session;
	struct workspace *workspace; /* a reference to the workspace under review */
	struct review *review;
};

/* If the guest was replaced, the files are in a new workspace: use that. */
static int follow(struct cordon_project *p, struct cordon_error **reterr)
{
	struct workspace *ws = NULL;
	int r = workspace_of(p->session, &ws, reterr);

	if (r < 0)
		return r;
	review_use(p->review, ws);
	workspace_close(p->workspace);
	p->workspace = ws;
	return 0;
}

int cordon_project_open(struct cordon_session *s, const char *host_dir, struct cordon_project **ret,
			struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	int r = workspace_of(s, &ws, reterr);

	if (r < 0)
		return r;
	struct cordon_project *p = mem_alloc(sizeof(*p));
	if (!p)
		return err_errno(reterr, ENOMEM, "copy '%s'", host_dir);
	struct review_options o = { .host_dir = host_dir, .ws = ws, .guest_dir = "/workspace" };
	r = review_open(&o, &p->review, reterr);
	if (r < 0) {
		free(p);
		return r;
	}
	p->session = s;
	p->workspace = TAKE_PTR(ws);
	*ret = p;
	return 0;
}

struct cordon_project *cordon_project_close(struct cordon_project *p)
{
	if (!p)
		return NULL;
	review_close(p->review);
	workspace_close(p->workspace);
	free(p);
	return NULL;
}

int cordon_project_diff(struct cordon_project *p, char **ret_json, struct cordon_error **reterr)
{
	int r = follow(p, reterr);

	return r < 0 ? r : review_diff(p->review, ret_json, reterr);
}

int cordon_project_apply(struct cordon_project *p, const char *const *paths, size_t count,
			 char **ret_json, struct cordon_error **reterr)
{
	int r = follow(p, reterr);

	return r < 0 ? r : review_apply(p->review, paths, count, ret_json, reterr);
}

int cordon_file_get_tar(struct cordon_session *s, const char *path, int tar_fd,
			char **ret_report_json, struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	int r = session_workspace_at(s, path, &ws, reterr);

	return r < 0 ? r : pack_to_fd(ws, path, tar_fd, ret_report_json, reterr);
}

int cordon_file_put_tar(struct cordon_session *s, const char *path, int tar_fd,
			char **ret_report_json, struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	int r = session_workspace_at(s, path, &ws, reterr);

	if (r < 0)
		return r;
	return changed(s, ws, unpack_from_fd(ws, path, tar_fd, ret_report_json, reterr), reterr);
}
