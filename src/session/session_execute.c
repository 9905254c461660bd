/* session/session_execute.c - see session_execute.h. */
#include "session/session_execute.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "guest/mounts.h"
#include "session/execution.h"
#include "session/network.h"
#include "session/persist.h"
#include "session/place.h"
#include "session/renewal.h"
#include "session/session_audit.h"
#include "session/startup.h"

/* A pod has one pipe for all its executions. A descriptor as stdin uses it up. */
static bool is_fed_up(const struct cordon_session *s, const struct cordon_execute_options *o)
{
	return s->kind == GUEST_KIND_POD && s->engine && s->engine->stdin_fd < 0 &&
	       (o->stdin_bytes || o->stdin_fd > 0);
}

static int check_text(const char *code, size_t len, struct cordon_error **reterr)
{
	if (memchr(code, '\0', len))
		return err_set(reterr, CORDON_INVALID, "the code contains a NUL byte");
	if (!str_is_utf8(code, len))
		return err_set(reterr, CORDON_INVALID, "the code is not valid UTF-8");
	return 0;
}

static int too_many(const struct cordon_session *root, struct cordon_error **reterr)
{
	return err_limit(reterr, ERR_LIMIT_SPENT,
			 "Maximum executions (%llu) reached for this session.",
			 (unsigned long long)root->policy.max_executions);
}

static bool is_spent(struct cordon_session *root)
{
	pthread_mutex_lock(&root->lock);
	bool is = root->executions + root->running >= root->policy.max_executions;
	pthread_mutex_unlock(&root->lock);
	return is;
}

int session_refuse(struct cordon_session *s, const struct cordon_execute_options *o,
		   struct cordon_error **reterr)
{
	if (!o || !o->code)
		return err_set(reterr, CORDON_INVALID, "there is no code to execute");
	size_t len = o->code_len ? o->code_len : strlen(o->code);
	bool is_shell = s->kind == GUEST_KIND_SH || s->kind == GUEST_KIND_POD;
	uint64_t max = is_shell ? s->policy.command_bytes : s->policy.code_bytes;

	if (session_is_offloaded(s))
		return err_set(reterr, CORDON_STATE,
			       "Sandbox is offloaded \xe2\x80\x94 call rehydrate() first");
	if (is_spent(session_root(s)))
		return too_many(session_root(s), reterr);
	if (s->pre_execute && !s->pre_execute(o->code, len, s->pre_execute_arg))
		return err_set(reterr, CORDON_DENIED, "Execution blocked by pre_execute_hook.");
	if (len > max)
		return err_limit(reterr, ERR_LIMIT_LENGTH,
				 is_shell ? "Command too large (%zu bytes, max %llu)."
					  : "Code too long (%zu chars, max %llu).",
				 len, (unsigned long long)max);
	if (is_fed_up(s, o))
		return err_set(
			reterr, CORDON_STATE,
			"a pod that was given a descriptor as stdin accepts no further stdin");
	return check_text(o->code, len, reterr);
}

int session_run_recorded(struct cordon_session *s, const struct cordon_execute_options *o,
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

int session_count_begin(struct cordon_session *s, struct cordon_error **reterr)
{
	struct cordon_session *root = session_root(s);

	pthread_mutex_lock(&root->lock);
	bool fits = root->executions + root->running < root->policy.max_executions;
	root->running += fits;
	pthread_mutex_unlock(&root->lock);
	return fits ? 0 : too_many(root, reterr);
}

void session_count_end(struct cordon_session *s, bool counts)
{
	struct cordon_session *root = session_root(s);

	pthread_mutex_lock(&root->lock);
	root->running--;
	root->executions += counts;
	pthread_mutex_unlock(&root->lock);
}

/* Why the guest cannot run this execution; NULL: it can, or there is none. A gateway serves one
 * guest only, so a lost gateway needs a new guest too. */
static const char *why_lost(const struct cordon_session *s)
{
	const struct engine *e = s->engine;

	if (!e)
		return NULL;
	if (e->is_spent)
		return "processes left by the last execution used up the CPU time and were "
		       "ended: this ran in a new guest with the same files";
	if (!e->place)
		return network_is_lost(s->network) ? "the gateway had ended: this ran with a new "
						     "one, in a new guest with the same files"
						   : NULL;
	const char *why = place_lost(e->place);
	if (why)
		return why;
	return box_has_ended(e->box) ? "the interpreter had ended since the last execution: this "
				       "ran in a new one with the same files"
				     : NULL;
}

int session_have_guest(struct cordon_session *s, const char **ret_why, char **ret_lost,
		       double *ret_start_ms, struct cordon_error **reterr)
{
	*ret_why = why_lost(s);
	if (*ret_why)
		session_drop_engine(s);
	if (s->engine)
		return 0;
	uint64_t began_ns = clock_now_ns();
	int r = renewal_start(s, ret_lost, reterr);
	*ret_start_ms = (double)(clock_now_ns() - began_ns) / 1e6;
	return r;
}

static void tell_replaced(struct cordon_result *r, const char *why)
{
	result_restarted(r, why);
	(void)result_warn(r, why);
}

/* What remains to be done and reported after the code has run. */
static void conclude(struct cordon_session *s, const struct cordon_execute_options *opts,
		     struct cordon_result *result, bool alive)
{
	session_count_end(s, !is_rejected(s, opts, result));
	if (!alive)
		renewal_after(s, result);
	persist_warn(session_root(s)->persist, result);
}

/* Runs one execution; the caller holds the session and has counted it. */
static int run_held(struct cordon_session *s, const struct cordon_execute_options *opts,
		    struct cordon_result **ret, struct cordon_error **reterr)
{
	struct cordon_result *result = NULL;
	bool alive = false;
	const char *why = NULL;
	cleanup_free char *lost = NULL;
	double start_ms = 0;
	int r = session_have_guest(s, &why, &lost, &start_ms, reterr);

	if (r == 0)
		r = session_run_recorded(s, opts, &result, &alive, reterr);
	if (!result) {
		session_count_end(s, false);
		return r;
	}
	result->start_ms = start_ms;
	renewal_tell(result, lost);
	if (why)
		tell_replaced(result, why);
	conclude(s, opts, result, alive);
	*ret = result;
	return r;
}

int cordon_session_execute(struct cordon_session *s, const struct cordon_execute_options *opts,
			   struct cordon_result **ret, struct cordon_error **reterr)
{
	int r = session_hold(s,
			     "a session does not support concurrent execute() calls; wait for the "
			     "current execution to complete.",
			     reterr);

	if (r < 0)
		return r;
	timeline_mark(&s->timeline, TIMELINE_EXECUTE);
	r = session_refuse(s, opts, reterr);
	if (r == 0)
		r = session_count_begin(s, reterr);
	if (r == 0)
		r = run_held(s, opts, ret, reterr);
	if (s->persist) /* a save may come at any time, and cannot ask while code runs */
		session_learn_env_held(s);
	persist_touch(session_root(s)->persist);
	timeline_mark(&s->timeline, TIMELINE_CONCLUDED);
	session_let_go(s);
	return r;
}

/* A shell script needs no agent: bash runs it, and its status is the result. */
static int start_script(struct cordon_session *s, const struct cordon_execute_options *o,
			struct cordon_error **reterr)
{
	int r = network_open(s, NULL, &s->network, reterr);
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

/* Besides code with variables, two cases need an agent: it reports commands that the policy does
 * not allow, and it waits until the start is in the audit log if the policy requires one. */
bool session_needs_agent(const struct cordon_session *s, const struct cordon_execute_options *o)
{
	return s->kind != GUEST_KIND_SH || o->context_json || !policy_shells_run_all(&s->policy) ||
	       s->policy.audit_required;
}

static int start_run(struct cordon_session *s, const struct cordon_execute_options *o,
		     struct cordon_error **reterr)
{
	if (session_needs_agent(s, o) || has_inner_mounts(&s->policy))
		return startup_first(s, reterr);
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
	int r = session_init(s, session, reterr);
	s->is_cold = s->is_once = true;
	if (r == 0)
		r = session_add_env(s, session->env, reterr);
	if (r == 0)
		r = session_refuse(s, opts, reterr);
	if (r == 0)
		r = start_run(s, opts, reterr);
	if (r == 0)
		r = session_audit_session(s, "session_start", reterr);
	if (r == 0)
		r = session_run_recorded(s, opts, ret, &alive, reterr);
	(void)session_audit_session(s, "session_close", NULL);
	if (session_destroy(s, &lost) < 0 && r == 0) {
		cleanup_free char *text = err_text(lost);
		(void)result_lose(*ret, text ? text : "lines of the audit log were lost");
	}
	return r;
}
