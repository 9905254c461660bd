/* session/session.c - opening, executing, restarting and closing sessions. */
#include "session/session.h"
#include "base/os.h"
#include "session/execution.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"
#include "guest/mounts.h"
#include "policy/public.h"
#include "session/idle_watch.h"
#include "session/network.h"
#include "session/persist.h"
#include "session/renewal.h"
#include "session/result.h"
#include "session/session_audit.h"
#include "session/startup.h"

/* Starts the first engine with a workspace, ready for executions. The caller holds the session. */
static int start_engine(struct cordon_session *s, struct cordon_error **reterr)
{
	struct startup u = { 0 };
	int r = startup_make(s, NULL, &u, NULL, reterr);

	if (r == 0)
		startup_install(&u, s);
	return r;
}

/* Other threads see either the whole engine or none. It is freed outside their locks, because
 * ending it takes a while. */
void session_drop_engine(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	struct engine *e = TAKE_PTR(s->engine);
	struct network *n = TAKE_PTR(s->network);
	pthread_mutex_unlock(&s->lock);
	engine_free(e);
	network_close(n);
}

int (*session_prepare_packages)(const struct policy *p, struct cordon_error **reterr);

static int prepare_modules(const struct policy *p, struct cordon_error **reterr)
{
	if (session_prepare_packages)
		return session_prepare_packages(p, reterr);
	if (p->packages.all || p->packages.names.count > 0)
		return err_set(reterr, CORDON_UNSUPPORTED, "this program has no packages for pods");
	return 0;
}

static int init_session(struct cordon_session *s, const struct cordon_session_options *o,
			struct cordon_error **reterr)
{
	s->cancel_fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->files_lock, NULL);
	pthread_cond_init(&s->idle, NULL);
	strcpy(s->id, "sess_");
	random_hex(s->id + 5, 32);
	s->kind = guest_from_name(o->guest ? o->guest : "python");
	if (s->kind == GUEST_KIND_NONE)
		return err_set(reterr, CORDON_INVALID,
			       "unknown guest '%s'; there are: python, r, node, sh, pod", o->guest);
	int r = o->policy ? policy_copy(&s->policy, &o->policy->p, reterr)
			  : policy_init_level(&s->policy, LEVEL_STANDARD, reterr);
	if (r == 0)
		r = policy_check(&s->policy, reterr);
	if (r == 0 && s->kind == GUEST_KIND_POD)
		r = prepare_modules(&s->policy, reterr);
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
	s->cancel_fd = os_event_open();
	if (s->cancel_fd < 0)
		return err_errno(reterr, -s->cancel_fd, "make the cancel event");
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
static int destroy(struct cordon_session *s, struct cordon_error **reterr)
{
	idle_watch_remove(s);
	s->persist = persist_close(s->persist);
	workspace_close(s->workspace);
	session_drop_engine(s);
	tool_calls_free(s->calls);
	if (s->tools)
		cordon_tools_unref(s->tools);
	snapshots_free(s->snapshots);
	close_fdp(&s->cancel_fd);
	json_decref(s->env);
	free(s->directory);
	free(s->cwd);
	int r = audit_end(s->audit, reterr);
	policy_done(&s->policy);
	pthread_cond_destroy(&s->idle);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->files_lock);
	free(s);
	return r;
}

static int add_env(struct cordon_session *s, const char *const *env, struct cordon_error **reterr)
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

/* Does in advance what the first execution would otherwise do. */
static void prepare_ahead(struct cordon_session *s)
{
	(void)engine_assurance(s->engine, &s->policy);
	box_find_guest(s->engine->box);
}

int session_open(const struct cordon_session_options *opts, bool ahead, struct cordon_session **ret,
		 struct cordon_error **reterr)
{
	struct cordon_session *s = mem_alloc(sizeof(*s));

	if (!s)
		return err_errno(reterr, ENOMEM, "open a session");
	timeline_mark(&s->timeline, TIMELINE_OPEN);
	s->is_ahead = ahead;
	int r = init_session(s, opts, reterr);
	if (r == 0)
		r = add_env(s, opts->env, reterr);
	if (r == 0)
		r = start_engine(s, reterr);
	if (r == 0)
		r = persist_load(s->persist, reterr);
	if (r == 0)
		r = session_audit_session(s, "session_start", reterr);
	if (r == 0)
		r = idle_watch_add(s, reterr);
	if (r < 0) {
		(void)destroy(s, NULL);
		return r;
	}
	if (ahead)
		prepare_ahead(s);
	timeline_mark(&s->timeline, TIMELINE_OPENED);
	*ret = s;
	return 0;
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
	return os_event_set(s->cancel_fd);
}

int cordon_session_end(struct cordon_session *s, struct cordon_error **reterr)
{
	if (!s)
		return 0;
	pthread_mutex_lock(&s->lock);
	s->is_closed = true;
	while (s->is_busy) {
		if (wish(s, WISH_CANCEL) < 0)
			break;
		pthread_cond_wait(&s->idle, &s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	(void)session_audit_session(s, "session_close", NULL);
	int r = persist_save(s->persist, reterr);
	int ended = destroy(s, r < 0 ? NULL : reterr);
	return r < 0 ? r : ended;
}

bool session_is_closed(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	bool is_closed = s->is_closed;
	pthread_mutex_unlock(&s->lock);
	return is_closed;
}

int session_hold(struct cordon_session *s, const char *busy_text, struct cordon_error **reterr)
{
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->is_closed)
		r = err_set(reterr, CORDON_STATE, "Session is not running.");
	else if (s->is_busy)
		r = err_set(reterr, CORDON_STATE, "%s", busy_text);
	else
		s->is_busy = true;
	pthread_mutex_unlock(&s->lock);
	return r;
}

void session_let_go(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	s->is_busy = false;
	(void)take_wishes(s); /* a late wish must not hit the next execution */
	pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
}

/* A pod has one pipe for all its executions. A descriptor as stdin uses it up. */
static bool is_fed_up(const struct cordon_session *s, const struct cordon_execute_options *o)
{
	return s->kind == GUEST_KIND_POD && s->engine && s->engine->stdin_fd < 0 &&
	       (o->stdin_bytes || o->stdin_fd > 0);
}

/* Checks before anything runs, in the order that users rely on. */
static int check_text(const char *code, size_t len, struct cordon_error **reterr)
{
	if (memchr(code, '\0', len))
		return err_set(reterr, CORDON_INVALID, "the code contains a NUL byte");
	if (!str_is_utf8(code, len))
		return err_set(reterr, CORDON_INVALID, "the code is not valid UTF-8");
	return 0;
}

static int refuse(struct cordon_session *s, const struct cordon_execute_options *o,
		  struct cordon_error **reterr)
{
	if (!o || !o->code)
		return err_set(reterr, CORDON_INVALID, "there is no code to execute");
	size_t len = o->code_len ? o->code_len : strlen(o->code);
	bool is_shell = s->kind == GUEST_KIND_SH || s->kind == GUEST_KIND_POD;
	uint64_t max = is_shell ? s->policy.command_bytes : s->policy.code_bytes;

	if (s->workspace && workspace_is_offloaded(s->workspace))
		return err_set(reterr, CORDON_STATE,
			       "Sandbox is offloaded \xe2\x80\x94 call rehydrate() first");
	if (s->executions >= s->policy.max_executions)
		return err_set(reterr, CORDON_LIMIT,
			       "Maximum executions (%llu) reached for this session.",
			       (unsigned long long)s->policy.max_executions);
	if (s->pre_execute && !s->pre_execute(o->code, len, s->pre_execute_arg))
		return err_set(reterr, CORDON_DENIED, "Execution blocked by pre_execute_hook.");
	if (len > max)
		return err_set(reterr, CORDON_LIMIT,
			       is_shell ? "Command too large (%zu bytes, max %llu)."
					: "Code too long (%zu chars, max %llu).",
			       len, (unsigned long long)max);
	if (is_fed_up(s, o))
		return err_set(
			reterr, CORDON_STATE,
			"a pod that was given a descriptor as stdin accepts no further stdin");
	return check_text(o->code, len, reterr);
}

/* One execution, recorded in the audit log. On failure there is no result. */
static int run_recorded(struct cordon_session *s, const struct cordon_execute_options *o,
			struct cordon_result **ret, bool *ret_alive, struct cordon_error **reterr)
{
	cleanup_result struct cordon_result *result = NULL;
	int r = session_audit_code(s, o, reterr);

	if (r == 0)
		r = execution_run(s, o, &result, ret_alive, reterr);
	if (r < 0)
		return r;
	if (s->policy.sanitize_errors)
		result_sanitize(result);
	r = session_audit_result(s, o, result, reterr);
	session_audit_losses(s, result);
	if (r == 0)
		*ret = TAKE_PTR(result);
	return r;
}

/* Code with a syntax error does not count as an execution. But only the guest says that it was
 * rejected, and code that ran earlier may have changed the guest. So where executions are limited,
 * a fresh parser that no code has touched decides. */
static bool is_rejected(const struct cordon_session *s, const struct cordon_execute_options *o,
			struct cordon_result *r)
{
	cleanup_free char *verdict = NULL;
	cleanup_json json_t *parsed = NULL;
	size_t len = o->code_len ? o->code_len : strlen(o->code);

	if (!str_eq(r->kind, "syntax") || s->policy.max_executions == POLICY_UNLIMITED)
		return str_eq(r->kind, "syntax");
	if (cordon_validate(guest_name(s->kind), o->code, len, &verdict, NULL) < 0 ||
	    json_parse(verdict, strlen(verdict), 0, &parsed, NULL) < 0)
		return false;
	r->is_claimed = !json_is_false(json_object_get(parsed, "valid"));
	return !r->is_claimed;
}

static void count_execution(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	s->executions++;
	pthread_mutex_unlock(&s->lock);
}

/* Makes sure that there is a guest that accepts code. *ret_why: why the last one had to be
 * replaced. A gateway serves one guest only, so a lost gateway needs a new guest too. */
static int have_guest(struct cordon_session *s, const char **ret_why, char **ret_lost,
		      struct cordon_error **reterr)
{
	if (s->engine && s->engine->is_spent)
		*ret_why = "processes left by the last execution used up the CPU time and were "
			   "ended: this ran in a new guest with the same files";
	else if (s->engine && network_is_lost(s->network))
		*ret_why = "the gateway had ended: this ran with a new one, in a new guest with "
			   "the same files";
	if (*ret_why)
		session_drop_engine(s);
	return s->engine ? 0 : renewal_start(s, ret_lost, reterr);
}

static void tell_replaced(struct cordon_result *r, const char *why)
{
	r->restarted = true;
	(void)result_warn(r, why);
}

/* What remains to be done and reported after the code has run. */
static void conclude(struct cordon_session *s, const struct cordon_execute_options *opts,
		     struct cordon_result *result, bool alive)
{
	if (!is_rejected(s, opts, result))
		count_execution(s);
	if (!alive)
		renewal_after(s, result);
	persist_warn(s->persist, result);
}

int cordon_session_execute(struct cordon_session *s, const struct cordon_execute_options *opts,
			   struct cordon_result **ret, struct cordon_error **reterr)
{
	struct cordon_result *result = NULL;
	bool alive = false;
	const char *why = NULL;
	cleanup_free char *lost = NULL;

	int r = session_hold(s,
			     "a session does not support concurrent execute() calls; wait for the "
			     "current execution to complete.",
			     reterr);

	if (r < 0)
		return r;
	timeline_mark(&s->timeline, TIMELINE_EXECUTE);
	r = refuse(s, opts, reterr);
	if (r == 0)
		r = have_guest(s, &why, &lost, reterr);
	if (r == 0)
		r = run_recorded(s, opts, &result, &alive, reterr);
	if (result) {
		renewal_tell(result, lost);
		if (why)
			tell_replaced(result, why);
		conclude(s, opts, result, alive);
		*ret = result;
	}
	persist_touch(s->persist);
	timeline_mark(&s->timeline, TIMELINE_CONCLUDED);
	session_let_go(s);
	return r;
}

/* A shell script needs no agent: bash runs it, and its status is the result. */
static int start_script(struct cordon_session *s, const struct cordon_execute_options *o,
			struct cordon_error **reterr)
{
	int r = network_open(s, &s->network, reterr);
	if (r < 0)
		return r;
	struct engine_options e = { .policy = &s->policy,
				    .kind = s->kind,
				    .network = s->network,
				    .script = o->code,
				    .script_len = o->code_len ? o->code_len : strlen(o->code),
				    .args = o->args,
				    .directory = s->directory };

	return engine_start(&e, &s->engine, reterr);
}

/* Mounts inside the workspace must exist before the code runs. Only an agent waits for that. */
static bool has_inner_mounts(const struct policy *p)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (mounts_is_inside(p->mounts[i].guest))
			return true;
	return false;
}

static int start_run(struct cordon_session *s, const struct cordon_execute_options *o,
		     struct cordon_error **reterr)
{
	/* Two more cases need an agent: it reports commands that the policy does not allow, and it
	 * waits until the start is in the audit log if the policy requires one. */
	if (s->kind != GUEST_KIND_SH || o->context_json || !s->policy.commands.all ||
	    s->policy.audit_required || has_inner_mounts(&s->policy))
		return start_engine(s, reterr);
	int r = start_script(s, o, reterr);
	if (r == 0 && s->audit) /* the event names its process */
		r = box_wait_ready(s->engine->box, deadline_after_ms(ENGINE_START_MS), reterr);
	return r;
}

int cordon_run(const struct cordon_session_options *session,
	       const struct cordon_execute_options *opts, struct cordon_result **ret,
	       struct cordon_error **reterr)
{
	cleanup_error struct cordon_error *lost = NULL;
	struct cordon_session *s = mem_alloc(sizeof(*s));
	bool alive;

	if (!s)
		return err_errno(reterr, ENOMEM, "run");
	int r = init_session(s, session, reterr);
	s->is_cold = s->is_once = true;
	if (r == 0)
		r = add_env(s, session->env, reterr);
	if (r == 0)
		r = refuse(s, opts, reterr);
	if (r == 0)
		r = start_run(s, opts, reterr);
	if (r == 0)
		r = session_audit_session(s, "session_start", reterr);
	if (r == 0)
		r = run_recorded(s, opts, ret, &alive, reterr);
	(void)session_audit_session(s, "session_close", NULL);
	if (destroy(s, &lost) < 0 && r == 0) {
		cleanup_free char *text = err_text(lost);
		(void)result_lose(*ret, text ? text : "lines of the audit log were lost");
	}
	return r;
}

int cordon_session_cancel(struct cordon_session *s, struct cordon_error **reterr)
{
	pthread_mutex_lock(&s->lock);
	int r = s->is_busy ? wish(s, WISH_CANCEL) : 0;
	pthread_mutex_unlock(&s->lock);
	return r < 0 ? err_errno(reterr, -r, "cancel") : 0;
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
	bool alive = living_pid(s) > 0;
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

	pthread_mutex_lock(&unlocked(s)->lock);
	pid_t pid = living_pid(s);
	uint64_t executions = s->executions;
	json_t *assurance = pid > 0 ? engine_assurance_json(s->engine, &s->policy) : NULL;
	pthread_mutex_unlock(&unlocked(s)->lock);
	json_object_set_new(o, "id", json_string(s->id));
	json_object_set_new(o, "guest", json_string(guest_name(s->kind)));
	json_object_set_new(o, "state", json_string(pid > 0 ? "running" : "stopped"));
	json_object_set_new(o, "pid", pid > 0 ? json_integer(pid) : json_null());
	cleanup_free char *tools = tool_calls_describe(s->calls);
	json_t *list = NULL;
	if (tools && json_parse(tools, strlen(tools), 0, &list, NULL) == 0)
		json_object_set_new(o, "tools", list);
	json_object_set_new(o, "executions", json_integer((json_int_t)executions));
	json_object_set_new(o, "policy", policy_to_json(&s->policy));
	json_object_set_new(o, "assurance", assurance ? assurance : json_null());
	return json_text(o, NULL);
}

int cordon_session_resolve(struct cordon_session *s, const char *approval_id, bool allow,
			   const char *value_json, const char *reason, struct cordon_error **reterr)
{
	if (network_is_approval(approval_id)) {
		pthread_mutex_lock(&s->lock);
		struct network *n = network_ref(s->network);
		pthread_mutex_unlock(&s->lock);
		int r = network_resolve(n, approval_id, allow, reason, reterr);
		network_unref(n);
		return r;
	}
	return tool_calls_resolve(s->calls, approval_id, allow, value_json, reason, reterr);
}
