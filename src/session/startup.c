/* session/startup.c - see startup.h. */
#include "session/startup.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "files/intake.h"
#include "files/snapshot.h"
#include "guest/mounts.h"
#include "session/network.h"
#include "session/template.h"
#include "session/welcome.h"

static int open_workspace(const struct cordon_session *s, struct startup *u,
			  struct cordon_error **reterr)
{
	struct box *b = u->engine->box;
	struct workspace_options o = { .root_fd = b->workspace_fd,
				       .owner_uid = b->uid,
				       .owner_gid = b->gid,
				       .max_bytes = s->policy.fs_bytes,
				       .max_files = s->policy.file_count };

	return workspace_open(&o, &u->workspace, reterr);
}

static bool is_tree(const char *path)
{
	return str_eq(path, "/home/user") || str_eq(path, "/tmp") || str_eq(path, "/workspace");
}

/* Makes a link to a live mount whose path is inside the workspace. */
static int link_mount(const struct policy *p, size_t i, struct workspace *ws,
		      struct cordon_error **reterr)
{
	const char *guest = p->mounts[i].guest, *slash = strrchr(guest, '/');
	char place[MOUNTS_PLACE];

	if (is_tree(guest))
		return err_set(
			reterr, CORDON_INVALID,
			"a live mount cannot take the place of '%s' itself: choose a name in "
			"it, or mount a snapshot",
			guest);
	cleanup_free char *parent = str_ndup(guest, (size_t)(slash - guest));
	if (!parent)
		return err_errno(reterr, ENOMEM, "mount '%s'", guest);
	int r = is_tree(parent) ? 0 : workspace_mkdir(ws, parent, true, reterr);
	return r < 0 ? r : workspace_symlink(ws, mounts_place(p, i, place), guest, reterr);
}

static int copy_mount(const struct policy *p, size_t i, struct workspace *ws,
		      struct cordon_error **reterr)
{
	const struct policy_mount *m = &p->mounts[i];
	struct intake_options o = { .host_path = m->host, .ws = ws, .guest_path = m->guest };

	if (m->host && m->mode != MOUNT_SNAPSHOT)
		return link_mount(p, i, ws, reterr);
	if (m->host)
		return intake_copy(&o, reterr);
	return workspace_write(ws, m->guest, m->bytes, m->bytes_len, reterr);
}

/* Mounts whose path is inside the workspace: snapshots are copied now, live mounts are linked.
 * is_copied: the files came from another workspace, so the snapshots are already there. */
static int fill_mounts(const struct policy *p, bool is_copied, struct workspace *ws,
		       struct cordon_error **reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->mount_count; i++) {
		if (!mounts_is_inside(p->mounts[i].guest))
			continue;
		r = is_copied ? 0 : copy_mount(p, i, ws, reterr);
		if (r == 0)
			r = workspace_add_mount(ws, p->mounts[i].guest, true, reterr);
	}
	return r;
}

/* Writes the welcome while the guest starts. */
static int greet(struct cordon_session *s, struct engine *e, struct cordon_error **reterr)
{
	cleanup_free char *tools = tool_calls_describe(s->calls);
	cleanup_json json_t *env = session_env(s);
	struct welcome_options w = {
		.policy = &s->policy, .tools = tools, .env = env, .ahead = s->is_ahead
	};
	size_t len = 0;
	cleanup_free char *welcome = tools ? welcome_line(&w, &len) : NULL;

	if (!welcome)
		return err_errno(reterr, ENOMEM, "greet the guest");
	return engine_greet(e, welcome, len, deadline_after_ms(ENGINE_START_MS), reterr);
}

static int start_guest(struct cordon_session *s, struct template *t, const struct strlist *names,
		       struct startup *u, struct cordon_error **reterr)
{
	struct engine_options o = { .policy = &s->policy,
				    .kind = s->kind,
				    .template = template_ref(t),
				    .network = u->network,
				    .directory = s->directory,
				    .tools = names,
				    .timeline = &s->timeline };
	int r = engine_start(&o, &u->engine, reterr);

	return r < 0 ? r : greet(s, u->engine, reterr);
}

static void hand_over(struct cordon_error **reterr, struct cordon_error *e)
{
	if (reterr)
		*reterr = e;
	else
		cordon_error_free(e);
}

/* 1: the template was lost; try another one. */
static int fork_guest(struct cordon_session *s, const struct strlist *names, struct startup *u,
		      struct cordon_error **reterr)
{
	struct cordon_error *e = NULL;
	struct template *t = NULL;
	int r = template_get(s->kind, &s->policy, &t, reterr);

	if (r < 0)
		return r;
	timeline_mark(&s->timeline, TIMELINE_TEMPLATE);
	r = start_guest(s, t, names, u, &e);
	if (r < 0)
		u->engine = engine_free(u->engine);
	if (r < 0 && template_check(t, r == -CORDON_TIMEOUT) && r != -CORDON_TIMEOUT)
		r = 1;
	template_put(t);
	hand_over(reterr, e);
	return r;
}

static int make_guest(struct cordon_session *s, struct startup *u, struct cordon_error **reterr)
{
	cleanup_strlist struct strlist names = { 0 };
	cleanup_error struct cordon_error *lost = NULL;

	if (tool_calls_names(s->calls, &names) < 0)
		return err_errno(reterr, ENOMEM, "greet the guest");
	timeline_mark(&s->timeline, TIMELINE_PREPARED);
	int r = network_open(s, &u->network, reterr);
	if (r < 0)
		return r;
	if (u->network || s->is_cold || !guest_can_fork(s->kind) || !wall_can_fork(&s->policy))
		return start_guest(s, NULL, &names, u, reterr);
	r = fork_guest(s, &names, u, &lost);
	if (r == 1) {
		lost = cordon_error_free(lost);
		r = fork_guest(s, &names, u, &lost);
	}
	hand_over(reterr, TAKE_PTR(lost));
	return r == 1 ? -CORDON_OS : r;
}

static void startup_done(struct startup *u)
{
	u->workspace = workspace_close(u->workspace);
	u->engine = engine_free(u->engine);
	u->network = network_close(u->network);
}

int startup_make(struct cordon_session *s, struct workspace *from, struct startup *ret,
		 char **ret_lost, struct cordon_error **reterr)
{
	struct startup u = { 0 };
	int r = make_guest(s, &u, reterr);

	if (r == 0) {
		wire_allow_calls(u.engine->wire, tool_calls_argument_max(s->calls));
		r = open_workspace(s, &u, reterr);
	}
	if (r == 0 && from)
		r = snapshot_carry(from, u.workspace, ret_lost, reterr);
	if (r == 0)
		r = fill_mounts(&s->policy, from != NULL, u.workspace, reterr);
	if (r < 0) {
		startup_done(&u);
		return r;
	}
	*ret = u;
	return 0;
}

void startup_install(struct startup *u, struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	s->engine = TAKE_PTR(u->engine);
	s->network = TAKE_PTR(u->network);
	pthread_mutex_unlock(&s->lock);
	s->workspace = TAKE_PTR(u->workspace);
}
