/* session/session.c - opening, holding, describing and closing sessions. */
#include "session/session.h"

#include <errno.h>
#include <string.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"
#include "policy/public.h"
#include "session/context.h"
#include "session/idle_watch.h"
#include "session/network.h"
#include "session/persist.h"
#include "session/place.h"
#include "session/session_audit.h"
#include "session/session_expose.h"
#include "session/session_watch.h"
#include "session/startup.h"

/* Other threads see either the whole engine or none. It is freed outside their locks, because
 * ending it takes a while. In a place, engine and network are references. */
void session_drop_engine(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	struct engine *e = TAKE_PTR(s->engine);
	struct network *n = TAKE_PTR(s->network);
	pthread_mutex_unlock(&s->lock);
	engine_free(e);
	if (session_root(s)->languages)
		network_unref(n);
	else
		network_close(n);
}

int (*session_prepare_packages)(const struct policy *p, struct cordon_error **reterr);
int (*session_install_packages)(struct cordon_session *s, const char *const *names,
				struct cordon_error **reterr);

static int prepare_modules(const struct policy *p, struct cordon_error **reterr)
{
	if (session_prepare_packages)
		return session_prepare_packages(p, reterr);
	if (p->packages.all || p->packages.names.count > 0)
		return err_set(reterr, CORDON_UNSUPPORTED, "this program has no packages for pods");
	return 0;
}

int session_init_parts(struct cordon_session *s, struct cordon_error **reterr)
{
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->files_lock, NULL);
	pthread_mutex_init(&s->renewing, NULL);
	pthread_mutex_init(&s->contexts_lock, NULL);
	condvar_init(&s->idle);
	if (!s->id[0]) { /* otherwise it continues another one */
		strcpy(s->id, "sess_");
		random_hex(s->id + 5, 32);
	}
	s->cancel_fd = os_event_open();
	return s->cancel_fd < 0 ? err_errno(reterr, -s->cancel_fd, "make the cancel event") : 0;
}

static int init_policy(struct cordon_session *s, const struct cordon_session_options *o,
		       struct cordon_error **reterr)
{
	s->kind = guest_from_name(o->guest ? o->guest : "python");
	if (s->kind == GUEST_KIND_NONE)
		return err_set(reterr, CORDON_INVALID,
			       "unknown guest '%s'; there are: python, r, node, sh, pod", o->guest);
	int r = o->policy ? policy_copy(&s->policy, &o->policy->p, reterr)
			  : policy_init_level(&s->policy, LEVEL_STANDARD, reterr);
	if (r == 0)
		r = policy_check(&s->policy, reterr);
	if (r == 0)
		r = place_languages(o->languages, s->kind, &s->languages, reterr);
	s->policy.interpreter_tasks = place_tasks(s->languages);
	if (r == 0 && s->kind == GUEST_KIND_POD)
		r = prepare_modules(&s->policy, reterr);
	return r;
}

int session_init(struct cordon_session *s, const struct cordon_session_options *o,
		 struct cordon_error **reterr)
{
	int r = session_init_parts(s, reterr);

	if (r == 0)
		r = init_policy(s, o, reterr);
	if (r < 0)
		return r;
	s->is_cold = o->cold || o->directory;
	s->directory = str_dup(o->directory);
	if (o->directory && !s->directory)
		return err_errno(reterr, ENOMEM, "open a session");
	s->tools = o->tools ? cordon_tools_ref(o->tools) : NULL;
	s->pre_execute = o->pre_execute;
	s->pre_execute_arg = o->pre_execute_arg;
	s->approval = o->approval;
	s->approval_arg = o->approval_arg;
	s->on_audit = o->audit;
	s->audit_arg = o->audit_arg;
	s->log = o->log;
	s->log_arg = o->log_arg;
	r = session_audit_begin(s, o, reterr);
	if (r == 0)
		r = persist_open(s, o->workspace, &s->persist, reterr);
	if (r < 0)
		return r;
	struct tool_calls_options calls = { .tools = o->tools,
					    .policy = &s->policy,
					    .session = s->id,
					    .audit = s->audit,
					    .approval = o->approval,
					    .approval_arg = o->approval_arg };
	return tool_calls_new(&calls, &s->calls, reterr);
}

/* An error means that lines of the audit log were lost. */
int session_destroy(struct cordon_session *s, struct cordon_error **reterr)
{
	idle_watch_remove(s);
	session_expose_end(s);
	session_watch_end(s);
	context_free_all(s);
	s->persist = persist_close(s->persist);
	workspace_close(s->workspace);
	session_drop_engine(s);
	place_put(s->place);
	tool_calls_free(s->calls);
	if (s->tools)
		cordon_tools_unref(s->tools);
	snapshots_free(s->snapshots);
	close_fdp(&s->cancel_fd);
	json_decref(s->env);
	free(s->directory);
	free(s->cwd);
	for (size_t i = 0; i < SESSION_MANAGERS; i++)
		strlist_done(&s->installed[i]);
	int r = s->owner ? 0 : audit_end(s->audit, reterr);
	policy_done(&s->policy);
	pthread_cond_destroy(&s->idle);
	pthread_mutex_destroy(&s->contexts_lock);
	pthread_mutex_destroy(&s->renewing);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->files_lock);
	free(s);
	return r;
}

int session_add_env(struct cordon_session *s, const char *const *env, struct cordon_error **reterr)
{
	for (; env && *env; env++) {
		const char *eq = strchr(*env, '=');
		cleanup_free char *name = eq ? str_ndup(*env, (size_t)(eq - *env)) : NULL;

		if (!name)
			return err_set(reterr, CORDON_INVALID, "'%s' is not NAME=value", *env);
		int r = cordon_session_setenv(s, name, eq + 1, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

int cordon_session_open(const struct cordon_session_options *opts, struct cordon_session **ret,
			struct cordon_error **reterr)
{
	return session_open(opts, false, ret, reterr);
}

static int add_packages(struct cordon_session *s, const char *const *names,
			struct cordon_error **reterr)
{
	if (!names || !*names)
		return 0;
	return session_install_packages
		       ? session_install_packages(s, names, reterr)
		       : err_set(reterr, CORDON_UNSUPPORTED, "this program installs no packages");
}

/* Does in advance what the first execution would otherwise do. */
static void prepare_ahead(struct cordon_session *s)
{
	(void)engine_assurance(s->engine, &s->policy);
	box_find_guest(s->engine->box);
}

/* Takes s, also on failure. */
static int start(struct cordon_session *s, const struct cordon_session_options *opts,
		 struct cordon_session **ret, struct cordon_error **reterr)
{
	timeline_mark(&s->timeline, TIMELINE_OPEN);
	int r = session_init(s, opts, reterr);
	if (r == 0)
		r = session_add_env(s, opts->env, reterr);
	if (r == 0)
		r = startup_first(s, reterr);
	if (r == 0)
		r = persist_load(s->persist, reterr);
	if (r == 0)
		r = session_audit_session(s, "session_start", reterr);
	if (r == 0)
		r = add_packages(s, opts->packages, reterr);
	if (r == 0)
		r = idle_watch_add(s, reterr);
	if (r < 0) {
		(void)session_destroy(s, NULL);
		return r;
	}
	if (s->is_ahead)
		prepare_ahead(s);
	timeline_mark(&s->timeline, TIMELINE_OPENED);
	*ret = s;
	return 0;
}

int session_open(const struct cordon_session_options *opts, bool ahead, struct cordon_session **ret,
		 struct cordon_error **reterr)
{
	struct cordon_session *s = mem_alloc(sizeof(*s));

	if (!s)
		return err_errno(reterr, ENOMEM, "open a session");
	s->is_ahead = ahead;
	return start(s, opts, ret, reterr);
}

int session_reopen(const struct cordon_session_options *opts, const char *id,
		   struct cordon_session **ret, struct cordon_error **reterr)
{
	struct cordon_session *s = mem_alloc(sizeof(*s));

	if (!s)
		return err_errno(reterr, ENOMEM, "open a session");
	if (!str_copy(s->id, sizeof(s->id), id)) {
		free(s);
		return err_set(reterr, CORDON_INVALID, "the id of the session is too long");
	}
	return start(s, opts, ret, reterr);
}

int cordon_session_save(struct cordon_session *s, struct cordon_error **reterr)
{
	return persist_save(s->persist, reterr);
}

struct cordon_session *cordon_session_close(struct cordon_session *s)
{
	(void)cordon_session_end(s, NULL);
	return NULL;
}

static unsigned take_wishes(struct cordon_session *s)
{
	unsigned wishes = s->wishes;

	s->wishes = 0;
	os_event_clear(s->cancel_fd);
	return wishes;
}

unsigned session_take_wishes(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	unsigned wishes = take_wishes(s);
	pthread_mutex_unlock(&s->lock);
	return wishes;
}

/* Called with the lock held. */
static int wish(struct cordon_session *s, enum session_wish w)
{
	s->wishes |= w;
	if (s->installer && w != WISH_INTERRUPT)
		(void)session_doom(s->installer);
	return os_event_set(s->cancel_fd);
}

bool session_doom(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	bool is_busy = s->is_busy;
	s->is_closed = true;
	if (is_busy)
		(void)wish(s, WISH_KILL);
	pthread_mutex_unlock(&s->lock);
	return is_busy;
}

void session_shut(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	s->is_closed = true;
	while (s->is_busy) {
		if (wish(s, WISH_KILL) < 0)
			break;
		pthread_cond_wait(&s->idle, &s->lock);
	}
	pthread_mutex_unlock(&s->lock);
}

int cordon_session_end(struct cordon_session *s, struct cordon_error **reterr)
{
	if (!s)
		return 0;
	if (s->owner) {
		context_close(s);
		return 0;
	}
	session_shut(s);
	context_shut_all(s);
	(void)session_audit_session(s, "session_close", NULL);
	int r = persist_save(s->persist, reterr);
	int ended = session_destroy(s, r < 0 ? NULL : reterr);
	return r < 0 ? r : ended;
}

bool session_is_closed(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	bool is_closed = s->is_closed;
	pthread_mutex_unlock(&s->lock);
	return is_closed;
}

/* For a context: the owner counts it as active, unless it is closed or held as a whole. The
 * context's lock is held. */
static int enter_root(struct cordon_session *s, const char *busy_text, struct cordon_error **reterr)
{
	struct cordon_session *root = s->owner;
	int r = 0;

	if (!root)
		return 0;
	pthread_mutex_lock(&root->lock);
	if (root->is_closed)
		r = err_set(reterr, CORDON_STATE, "Session is not running.");
	else if (root->is_whole)
		r = err_set(reterr, CORDON_STATE, "%s", busy_text);
	else
		root->active++;
	pthread_mutex_unlock(&root->lock);
	return r;
}

static int hold(struct cordon_session *s, bool whole, const char *busy_text,
		struct cordon_error **reterr)
{
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->is_closed)
		r = err_set(reterr, CORDON_STATE, "Session is not running.");
	else if (s->is_busy || (whole && s->active > 0))
		r = err_set(reterr, CORDON_STATE, "%s", busy_text);
	else
		r = enter_root(s, busy_text, reterr);
	if (r == 0) {
		s->is_busy = true;
		s->is_whole = whole;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

int session_hold(struct cordon_session *s, const char *busy_text, struct cordon_error **reterr)
{
	return hold(s, false, busy_text, reterr);
}

int session_hold_whole(struct cordon_session *s, const char *busy_text,
		       struct cordon_error **reterr)
{
	return hold(s, true, busy_text, reterr);
}

/* The CPU time of a place is watched between its executions, from the last figure on. */
static void leave_root(struct cordon_session *s)
{
	struct cordon_session *root = session_root(s);
	uint64_t cpu_us = root->languages && s->engine ? s->engine->cpu_us : 0;

	if (s->owner)
		pthread_mutex_lock(&root->lock);
	if (cpu_us > root->idle_cpu_us)
		root->idle_cpu_us = cpu_us;
	if (s->owner) {
		root->active--;
		pthread_cond_broadcast(&root->idle);
		pthread_mutex_unlock(&root->lock);
	}
}

void session_let_go(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	s->is_busy = s->is_whole = false;
	(void)take_wishes(s); /* a late wish must not hit the next execution */
	leave_root(s);
	pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
}

static int ask_end(struct cordon_session *s, enum session_wish w, struct cordon_error **reterr)
{
	pthread_mutex_lock(&s->lock);
	int r = s->is_busy ? wish(s, w) : 0;
	pthread_mutex_unlock(&s->lock);
	return r < 0 ? err_errno(reterr, -r, "cancel") : 0;
}

int cordon_session_cancel(struct cordon_session *s, struct cordon_error **reterr)
{
	return ask_end(s, WISH_CANCEL, reterr);
}

int cordon_session_kill(struct cordon_session *s, struct cordon_error **reterr)
{
	return ask_end(s, WISH_KILL, reterr);
}

int cordon_session_interrupt(struct cordon_session *s, struct cordon_error **reterr)
{
	pthread_mutex_lock(&s->lock);
	int r = s->is_closed ? -CORDON_STATE : s->is_busy ? wish(s, WISH_INTERRUPT) : 0;
	pthread_mutex_unlock(&s->lock);
	return r < 0 ? err_set(reterr, CORDON_STATE, "Session is not running.") : 0;
}

/* The pid of a living guest's sandbox; 0: there is none. The lock is held. */
static pid_t living_pid(const struct cordon_session *s)
{
	bool alive = !s->is_closed && s->engine && !box_has_ended(s->engine->box);

	return alive ? box_pid(s->engine->box) : 0;
}

/* A place starts its guests when they are needed, so it lives as long as it is open. */
static bool is_running(const struct cordon_session *s)
{
	return s->languages || s->owner ? !s->is_closed : living_pid(s) > 0;
}

/* These functions do not change the session, but they need its lock. */
static struct cordon_session *unlocked(const struct cordon_session *s)
{
	return (struct cordon_session *)(uintptr_t)s;
}

bool cordon_session_is_alive(const struct cordon_session *s)
{
	if (!s)
		return false;
	pthread_mutex_lock(&unlocked(s)->lock);
	bool alive = is_running(s);
	pthread_mutex_unlock(&unlocked(s)->lock);
	return alive;
}

const char *cordon_session_id(const struct cordon_session *s)
{
	return s->id;
}

char *cordon_session_describe(const struct cordon_session *s)
{
	cleanup_json json_t *o = json_object();
	struct cordon_session *root = session_root(unlocked(s));

	pthread_mutex_lock(&unlocked(s)->lock);
	pid_t pid = living_pid(s);
	bool runs = is_running(s);
	json_t *assurance = pid > 0 ? engine_assurance_json(s->engine, &s->policy) : NULL;
	json_t *language = s->engine ? json_string(s->engine->language) : NULL;
	pthread_mutex_unlock(&unlocked(s)->lock);
	pthread_mutex_lock(&root->lock);
	uint64_t executions = root->executions;
	pthread_mutex_unlock(&root->lock);
	json_object_set_new(o, "id", json_string(s->id));
	json_object_set_new(o, "guest", json_string(guest_name(s->kind)));
	json_object_set_new(o, "language", language ? language : json_null());
	json_object_set_new(o, "directory", session_directory_json(unlocked(s)));
	json_object_set_new(o, "state", json_string(runs ? "running" : "stopped"));
	json_object_set_new(o, "pid", pid > 0 ? json_integer(pid) : json_null());
	cleanup_free char *tools = tool_calls_describe(s->calls);
	json_t *list = NULL;
	if (tools && json_parse(tools, strlen(tools), 0, &list, NULL) == 0)
		json_object_set_new(o, "tools", list);
	json_object_set_new(o, "executions", json_integer((json_int_t)executions));
	json_object_set_new(o, "policy", policy_to_json(&s->policy));
	json_object_set_new(o, "assurance", assurance ? assurance : json_null());
	context_describe(unlocked(s), o);
	return json_text(o, NULL);
}

/* The gateway that asked: of the place, whichever context runs in it. */
static struct network *asking_network(struct cordon_session *s)
{
	struct cordon_session *root = session_root(s);

	pthread_mutex_lock(&root->lock);
	struct network *n = network_ref(root->place ? place_network(root->place) : root->network);
	pthread_mutex_unlock(&root->lock);
	return n;
}

int cordon_session_resolve(struct cordon_session *s, const char *approval_id, bool allow,
			   const char *value_json, const char *reason, struct cordon_error **reterr)
{
	if (network_is_approval(approval_id)) {
		struct network *n = asking_network(s);
		int r = network_resolve(n, approval_id, allow, reason, reterr);
		network_unref(n);
		return r;
	}
	struct context_verdict v = { approval_id, allow, value_json, reason };
	return context_resolve(session_root(s), &v, reterr);
}

uint64_t session_memory_bytes(struct cordon_session *s)
{
	return session_root(s)->policy.memory_bytes;
}
