/* session/startup.c - see startup.h. */
#include "session/startup.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/mem.h"
#include "files/intake.h"
#include "files/snapshot.h"
#include "guest/mounts.h"
#include "session/network.h"
#include "session/network_stock.h"
#include "session/persist.h"
#include "session/place.h"
#include "session/template.h"
#include "session/welcome.h"

static int open_workspace(const struct cordon_session *s, const struct box *b, struct startup *u,
			  struct cordon_error **reterr)
{
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

/* 1: the template, or the gateway that had waited, was lost; try another one. */
static int fork_guest(struct cordon_session *s, const struct strlist *names, struct startup *u,
		      struct cordon_error **reterr)
{
	struct cordon_error *e = NULL;
	struct template *t = NULL;
	struct template_key key = { .kind = s->kind, .policy = &s->policy };
	int r = template_get(&key, &t, reterr);

	if (r < 0)
		return r;
	timeline_mark(&s->timeline, TIMELINE_TEMPLATE);
	r = network_open(s, network_stock_take(template_stock(t)), &u->network, &e);
	if (r == 0)
		r = start_guest(s, t, names, u, &e);
	bool is_lost = r < 0 && u->network && network_is_lost(u->network);
	if (r < 0) { /* its gateway listened for a session that is gone */
		u->engine = engine_free(u->engine);
		u->network = network_close(u->network);
	}
	network_stock_renew(template_stock(t));
	if (r < 0 && (is_lost || template_check(t, r == -CORDON_TIMEOUT)) && r != -CORDON_TIMEOUT)
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
	if (s->is_cold || !guest_can_fork(s->kind) || !wall_can_fork(&s->policy)) {
		int r = network_open(s, NULL, &u->network, reterr);

		return r < 0 ? r : start_guest(s, NULL, &names, u, reterr);
	}
	int r = fork_guest(s, &names, u, &lost);
	if (r == 1) {
		lost = cordon_error_free(lost);
		r = fork_guest(s, &names, u, &lost);
	}
	hand_over(reterr, TAKE_PTR(lost));
	return r == 1 ? -CORDON_OS : r;
}

/* What every new workspace needs. */
static int prepare_workspace(const struct cordon_session *s, struct workspace *from,
			     struct startup *u, char **ret_lost, struct cordon_error **reterr)
{
	int r = open_workspace(s, u->engine->box, u, reterr);

	if (r == 0 && from)
		r = snapshot_carry(from, u->workspace, ret_lost, reterr);
	return r < 0 ? r : fill_mounts(&s->policy, from != NULL, u->workspace, reterr);
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
		r = prepare_workspace(s, from, &u, ret_lost, reterr);
	}
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

/* A command whose place ended before pid 1 could fork has not run, so it may be tried again. That a
 * command could not be started is told by its execution. */
static int await_command(const struct engine *e, struct cordon_error **reterr)
{
	cleanup_error struct cordon_error *error = NULL;
	int r = box_wait_ready(e->box, deadline_after_ms(ENGINE_START_MS), &error);

	if (r < 0 && box_look(e->box).stage == BOX_FAILED)
		return 0;
	hand_over(reterr, TAKE_PTR(error));
	return r;
}

/* Nobody has reported the end of this guest, so pid 1 of the place has ended too. The host learns
 * of that a little later. */
static void await_loss(const struct engine *e, struct place *p)
{
	enum box_stage stage = box_look(e->box).stage;

	if (stage != BOX_FAILED && stage != BOX_EXITED)
		(void)place_await_loss(p, 1000);
}

static bool has_peaked(const struct place *p, uint64_t max)
{
	return place_box(p) && box_processes(place_box(p), BOX_PROCESSES_PEAK, 0) >= max;
}

/* Why a guest that could not start in a full place failed: names the limit. */
static int explain_crowd(const struct cordon_session *s, const struct place *p, bool had_peaked,
			 int r, struct cordon_error **e)
{
	uint64_t max = policy_tasks(&s->policy), own = s->policy.processes;
	const char *why = cordon_error_message(*e);
	bool is_full = place_box(p) && box_processes(place_box(p), BOX_TASKS_NOW, max) + 1 >= max;

	if (!is_full &&
	    !(has_peaked(p, max) && (!had_peaked || (why && strstr(why, strerror(EAGAIN))))))
		return r;
	struct cordon_error *named = NULL;
	r = err_set(&named, CORDON_LIMIT,
		    "no %s guest could be started: the limit on processes and threads (%llu) was "
		    "reached; remedy: end some, or raise `processes` (processes=%llu); %s",
		    guest_name(s->kind), (unsigned long long)max, (unsigned long long)own * 2,
		    why ? why : "");
	cordon_error_free(*e);
	*e = named;
	return r;
}

/* Its hello has been there since it was forked, so it says nothing. */
static bool is_well(const struct engine *e)
{
	struct pollfd p = { .fd = wire_fd(e->wire), .events = POLLRDHUP };

	/* Pid 1 tells which process it is. */
	return box_wait_ready(e->box, deadline_after_ms(ENGINE_START_MS), NULL) == 0 &&
	       poll(&p, 1, 0) == 0 && !box_has_ended(e->box) && !box_is_stopped(e->box);
}

/* The guest that the place's template forked with it; NULL: there is none, or it was lost
 * meanwhile. */
static struct engine *take_waiting(struct cordon_session *s, struct place *p)
{
	cleanup_engine struct engine *e = s->directory ? NULL : place_take(p, s->kind);

	if (!e || !is_well(e))
		return NULL;
	e->timeline = &s->timeline;
	if (greet(s, e, NULL) < 0)
		return NULL;
	wire_allow_calls(e->wire, tool_calls_argument_max(s->calls));
	return TAKE_PTR(e);
}

static int start_another(struct cordon_session *s, struct place *p, const char *command,
			 struct engine **ret, struct cordon_error **reterr)
{
	cleanup_engine struct engine *e = NULL;
	cleanup_strlist struct strlist names = { 0 };
	cleanup_json json_t *env = command ? session_env(s) : NULL;
	pthread_mutex_lock(&s->lock);
	struct engine_terminal size = s->terminal;
	pthread_mutex_unlock(&s->lock);
	struct engine_options o = { .policy = &s->policy,
				    .kind = s->kind,
				    .place = p,
				    .network = place_network(p),
				    .directory = s->directory,
				    .script = command,
				    .script_len = command ? strlen(command) : 0,
				    .env = env,
				    .terminal = command && s->has_terminal ? &size : NULL,
				    .tools = &names,
				    .timeline = &s->timeline };
	struct box_counts before = { 0 };

	if (tool_calls_names(s->calls, &names) < 0)
		return err_errno(reterr, ENOMEM, "start a guest");
	if (command && place_box(p)) /* it runs as soon as it is started */
		box_count(place_box(p), &before);
	int r = engine_start(&o, &e, reterr);
	if (r == 0 && command) {
		e->counted = before;
		r = await_command(e, reterr);
	} else if (r == 0) {
		r = greet(s, e, reterr);
		wire_allow_calls(e->wire, tool_calls_argument_max(s->calls));
	}
	if (r == -CORDON_OS && e)
		await_loss(e, p);
	if (r == 0)
		*ret = TAKE_PTR(e);
	return r;
}

/* Starts a guest in this place, the first or a further one, and greets it. */
static int start_in(struct cordon_session *s, struct place *p, const char *command,
		    struct engine **ret, struct cordon_error **reterr)
{
	struct engine *waiting = command ? NULL : take_waiting(s, p);

	if (!waiting)
		return start_another(s, p, command, ret, reterr);
	*ret = waiting;
	return 0;
}

/* Other threads see either all of it or nothing. */
static void install_in_place(struct cordon_session *s, struct place *p, struct engine *e)
{
	struct cordon_session *root = session_root(s);

	if (s != root) {
		workspace_close(s->workspace);
		pthread_mutex_lock(&root->files_lock);
		s->workspace = workspace_ref(root->workspace);
		pthread_mutex_unlock(&root->files_lock);
	}
	pthread_mutex_lock(&s->lock);
	s->engine = e;
	if (s->has_terminal) /* it may have been resized meanwhile */
		(void)engine_resize(e, &s->terminal);
	s->network = network_ref(place_network(p));
	pthread_mutex_unlock(&s->lock);
}

/* Whose template forks the place of this guest: its own, or the first that has one. Its guest then
 * waits in the place, in memory that it shares with the template. */
static enum guest_kind maker_of(const struct cordon_session *s)
{
	const struct cordon_session *root = s->owner ? s->owner : s;

	if (root->is_cold || !wall_can_fork(&root->policy))
		return GUEST_KIND_NONE;
	if (guest_can_fork(s->kind))
		return s->kind;
	for (enum guest_kind kind = GUEST_KIND_PYTHON; kind < GUEST_KIND_POD; kind++)
		if ((root->languages & 1U << kind) && guest_can_fork(kind))
			return kind;
	return GUEST_KIND_NONE;
}

/* 1: the template, or the gateway that had waited, was lost; try another one. */
static int fork_place(struct cordon_session *root, const struct template_key *key,
		      struct place **ret, struct cordon_error **reterr)
{
	struct template *t = NULL;
	struct place *p = NULL;
	struct engine *first = NULL;

	int r = template_get(key, &t, reterr);
	if (r < 0)
		return r;
	r = place_new(root, t, &p, reterr);
	struct engine_options o = { .policy = &root->policy, .kind = key->kind, .place = p };
	if (r == 0)
		r = engine_start(&o, &first, reterr);
	if (r == 0) {
		place_keep(p, first);
		*ret = p;
	} else {
		bool is_lost = p && place_network(p) && network_is_lost(place_network(p));

		place_put(p);
		if ((is_lost || template_check(t, r == -CORDON_TIMEOUT)) && r != -CORDON_TIMEOUT)
			r = 1;
	}
	template_put(t);
	return r;
}

static int new_place(struct cordon_session *s, struct place **ret, struct cordon_error **reterr)
{
	struct cordon_session *root = session_root(s);
	cleanup_strlist struct strlist names = { 0 };
	struct template_key key = { maker_of(s), &root->policy, root->languages, &names };
	cleanup_error struct cordon_error *e = NULL;

	if (tool_calls_names(root->calls, &names) < 0)
		return err_errno(reterr, ENOMEM, "open a sandbox");
	/* A guest that does not come from the template itself does not wait for its start. */
	if (key.kind == GUEST_KIND_NONE || (key.kind != s->kind && !template_is_ready(&key)))
		return place_new(root, NULL, ret, reterr);
	int r = fork_place(root, &key, ret, &e);
	if (r == 1) {
		e = cordon_error_free(e);
		r = fork_place(root, &key, ret, &e);
	}
	hand_over(reterr, TAKE_PTR(e));
	return r == 1 ? -CORDON_OS : r;
}

/* Makes a new place with this guest as the first. `renewing`, the persistence and the owner's files
 * are locked. A command gets an agent, because it must not run before the files are there. */
static int renew_place(struct cordon_session *s, char **ret_lost, struct engine **ret,
		       struct cordon_error **reterr)
{
	struct cordon_session *root = session_root(s);
	struct place *p = NULL;
	struct startup u = { 0 };

	place_end(root->place); /* its processes may still write to the files */
	int r = new_place(s, &p, reterr);
	if (r < 0)
		return r;
	r = start_in(s, p, NULL, &u.engine, reterr);
	if (r == 0 && u.engine)
		r = prepare_workspace(root, root->workspace, &u, ret_lost, reterr);
	if (r < 0) {
		startup_done(&u);
		place_put(p);
		return r;
	}
	workspace_close(root->workspace);
	root->workspace = TAKE_PTR(u.workspace);
	pthread_mutex_lock(&root->lock);
	struct place *old = root->place;
	root->place = p;
	root->idle_cpu_us = 0;
	pthread_mutex_unlock(&root->lock);
	place_put(old);
	*ret = u.engine;
	return 0;
}

/* A reference to the place if it can be used. If not, makes one, and *ret is this guest in it. */
static int have_place(struct cordon_session *s, char **ret_lost, struct place **ret_place,
		      struct engine **ret, struct cordon_error **reterr)
{
	struct cordon_session *root = session_root(s);
	int r = 0;

	pthread_mutex_lock(&root->renewing);
	if (!root->place || place_lost(root->place)) {
		persist_lock(root->persist);
		pthread_mutex_lock(&root->files_lock);
		r = renew_place(s, ret_lost, ret, reterr);
		pthread_mutex_unlock(&root->files_lock);
		persist_unlock(root->persist);
	}
	if (r == 0)
		*ret_place = place_ref(root->place);
	pthread_mutex_unlock(&root->renewing);
	return r;
}

/* As start_in, in a place that may be full of processes. */
static int start_crowded(struct cordon_session *s, struct place *p, const char *command,
			 struct engine **ret, struct cordon_error **reterr)
{
	bool had_peaked = has_peaked(p, policy_tasks(&s->policy));
	int r = start_in(s, p, command, ret, reterr);

	if (r == 0 && *ret)
		(*ret)->was_crowded = had_peaked;
	else if (r < 0 && r != -CORDON_INVALID && !place_lost(p))
		r = explain_crowd(s, p, had_peaked, r, reterr);
	return r;
}

int startup_join(struct cordon_session *s, const char *command, char **ret_lost,
		 struct cordon_error **reterr)
{
	/* The place may end while a guest joins; then a new one is made. */
	for (int tries = 0;; tries++) {
		cleanup_error struct cordon_error *e = NULL;
		struct place *p = NULL;
		struct engine *engine = NULL;
		int r = have_place(s, ret_lost, &p, &engine, reterr);

		if (r < 0)
			return r;
		/* The first guest of a new place has no terminal: it has made the place, and ends.
		 */
		if (engine && s->has_terminal)
			engine = engine_free(engine);
		if (!engine)
			r = start_crowded(s, p, command, &engine, &e);
		if (r == 0)
			install_in_place(s, p, engine);
		bool is_again = r < 0 && tries < 2 && !session_is_closed(s) && place_lost(p);
		place_put(p);
		if (is_again)
			continue;
		hand_over(reterr, TAKE_PTR(e));
		return r;
	}
}

int startup_first(struct cordon_session *s, struct cordon_error **reterr)
{
	struct startup u = { 0 };

	if (s->languages)
		return startup_join(s, NULL, NULL, reterr);
	int r = startup_make(s, NULL, &u, NULL, reterr);
	if (r == 0)
		startup_install(&u, s);
	return r;
}
