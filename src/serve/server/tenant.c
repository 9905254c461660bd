/* serve/server/tenant.c - see tenant.h. */
#include "serve/server/tenant.h"

#include <string.h>

#include "base/clock.h"
#include "base/condvar.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/str.h"
#include "serve/remote/remote.h"
#include "serve/server/activity.h"
#include "serve/server/idempotency.h"
#include "serve/server/parking.h"

enum { SESSIONS = 64, EXECUTIONS = 64, OTHER_REQUESTS = 64 };

/* Attachments of a limited key, on all its connections. They are in the server's memory. */
#define ATTACHED_MAX ((uint64_t)2 << 30)

/* Everything that the tenant does is in its audit log. */
static int make_policy(struct tenant *t, const struct tenant_options *o,
		       struct cordon_error **reterr)
{
	int r = 0;

	if (o->policy)
		r = (t->policy = cordon_policy_copy(o->policy, reterr)) ? 0 : -CORDON_NOMEM;
	else
		r = cordon_policy_new(NULL, &t->policy, reterr);
	if (r < 0 || !o->audit)
		return r;
	cleanup_free char *set = str_printf("audit=%s", o->audit);
	t->audit = str_dup(o->audit);
	return set && t->audit ? cordon_policy_set(t->policy, set, reterr)
			       : err_set(reterr, CORDON_NOMEM, "out of memory");
}

int tenant_new(const struct tenant_options *o, struct tenant **ret, struct cordon_error **reterr)
{
	struct tenant *t = mem_alloc(sizeof(*t));
	const struct sink sink = { activity_send, activity_output, t };

	if (!t)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	pthread_mutex_init(&t->lock, NULL);
	condvar_init(&t->changed);
	(void)str_copy(t->name, sizeof(t->name), o->name);
	t->is_admin = o->is_admin;
	t->metrics = o->metrics;
	t->tracer = o->tracer;
	t->db = o->db;
	t->quota.max = o->sessions ? o->sessions : (unsigned)SESSIONS;
	t->quota.executing_max = o->executions ? o->executions : (unsigned)EXECUTIONS;
	t->quota.memory_max = o->memory_bytes;
	t->quota.attached_max = o->is_admin ? 0 : ATTACHED_MAX;
	t->rate = o->rate;
	t->tokens = o->rate > 1 ? o->rate : 1;
	t->tokens_ns = clock_now_ns();
	if (o->hash)
		memcpy(t->hash, o->hash, sizeof(t->hash));
	int r = make_policy(t, o, reterr);
	const struct rpc_storage storage = parking_storage(t);
	const struct rpc_options rpc = { .in_fd = -1,
					 .out_fd = -1,
					 .policy = t->policy,
					 .program = OS_PROGRAM,
					 .sink = &sink,
					 .quota = &t->quota,
					 .storage = o->db ? &storage : NULL,
					 .is_shared = true,
					 .is_limited = !o->is_admin,
					 .sessions =
						 o->sessions ? o->sessions : (unsigned)SESSIONS };
	if (r == 0 && !(t->rpc = rpc_new(&rpc)))
		r = err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r == 0 && t->db)
		r = parking_restore(t, reterr);
	if (r < 0) {
		(void)tenant_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

bool tenant_may_ask(struct tenant *t)
{
	if (t->rate <= 0)
		return true;
	pthread_mutex_lock(&t->lock);
	uint64_t now = clock_now_ns();
	double most = t->rate > 1 ? t->rate : 1;
	t->tokens += (double)(now - t->tokens_ns) / 1e9 * t->rate;
	if (t->tokens > most)
		t->tokens = most;
	t->tokens_ns = now;
	bool may = t->tokens >= 1;
	if (may)
		t->tokens -= 1;
	pthread_mutex_unlock(&t->lock);
	return may;
}

bool tenant_enter(struct tenant *t)
{
	pthread_mutex_lock(&t->lock);
	bool fits = t->requests < t->quota.executing_max + OTHER_REQUESTS;
	if (fits)
		t->requests++;
	pthread_mutex_unlock(&t->lock);
	return fits;
}

void tenant_leave(struct tenant *t)
{
	pthread_mutex_lock(&t->lock);
	t->requests--;
	pthread_mutex_unlock(&t->lock);
}

void tenant_close(struct tenant *t)
{
	pthread_mutex_lock(&t->lock);
	t->is_closing = true;
	struct mcphttp *mcp = t->mcp;
	struct remotes *remotes = t->remotes;
	pthread_mutex_unlock(&t->lock);
	/* The end of what runs must not wait for those who read its output. */
	activity_hurry(t, NULL, NULL);
	if (remotes)
		remotes_end(remotes, t);
	rpc_close(t->rpc);
	if (mcp)
		(void)mcphttp_close(mcp);
}

bool tenant_is_closing(struct tenant *t)
{
	pthread_mutex_lock(&t->lock);
	bool is = t->is_closing;
	pthread_mutex_unlock(&t->lock);
	return is;
}

struct mcphttp *tenant_mcp(struct tenant *t)
{
	const struct mcphttp_options o = { .mcp = { .policy = t->policy, .tracer = t->tracer },
					   .sandboxes = t->quota.max,
					   .quota = &t->quota };

	pthread_mutex_lock(&t->lock);
	if (!t->mcp && !t->is_closing)
		(void)mcphttp_new(&o, &t->mcp, NULL);
	struct mcphttp *mcp = t->mcp;
	pthread_mutex_unlock(&t->lock);
	return mcp;
}

struct tenant *tenant_free(struct tenant *t)
{
	if (!t)
		return NULL;
	mcphttp_free(t->mcp);
	if (t->rpc)
		rpc_free(t->rpc);
	while (t->activities) {
		struct activity *a = t->activities;
		t->activities = a->next;
		free(a);
	}
	t->policy = cordon_policy_free(t->policy);
	free(t->audit);
	idempotency_done(t);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
	return NULL;
}

int tenant_session(struct tenant *t, const char *id, struct client_session **ret,
		   struct cordon_error **reterr)
{
	struct client_sessions *all = &t->rpc->sessions;
	bool is_restored;
	int r = parking_wake(t, id, &is_restored, reterr);

	if (r < 0)
		return r;
	struct client_session *cs = client_session_get(all, id, CLIENT_SESSION_SESSION);
	if (!cs)
		return err_set(reterr, CORDON_NOT_FOUND, "there is no session '%.100s'", id);
	pthread_mutex_lock(&all->lock);
	bool is_usable = cs->session && !cs->is_moving && !cs->is_offloaded;
	pthread_mutex_unlock(&all->lock);
	if (!is_usable) {
		client_session_put(all, cs);
		return err_set(reterr, CORDON_STATE, "the session is being moved");
	}
	*ret = cs;
	return 0;
}

static bool is_for_parked(const char *method)
{
	return str_eq(method, "session.close") || str_eq(method, "offload") ||
	       str_eq(method, "session.cancel");
}

int tenant_call(struct tenant *t, const char *method, json_t *params, const char *id,
		struct buf *ret, struct cordon_error **reterr)
{
	cleanup_json json_t *name = id ? json_string(id) : NULL;
	const struct rpc_call call = { method, params, name };
	const char *session = json_string_value(json_object_get(params, "session"));
	uint64_t begun = clock_now_ns();
	bool is_restored;
	int r = session && !is_for_parked(method) ? parking_wake(t, session, &is_restored, reterr)
						  : 0;

	if (r == 0)
		r = rpc_run(t->rpc, &call, ret, reterr);

	if (r == 0 && t->metrics && str_eq(method, "session.open"))
		metrics_observe(&t->metrics->start, clock_now_ns() - begun);
	return r;
}

#define WORKSPACE_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* No name of a tenant has a dot. */
int tenant_scope_workspace(struct tenant *t, json_t *params, struct cordon_error **reterr)
{
	const char *name = json_string_value(json_object_get(params, "workspace"));

	if (!name)
		return 0;
	if (strspn(name, WORKSPACE_LETTERS) != strlen(name) || !*name || strlen(name) > 100)
		return err_set(reterr, CORDON_INVALID,
			       "the name of a workspace has letters, digits, '.', '_' and '-'");
	cleanup_free char *scoped = str_printf("serve.%s.%s", t->name, name);
	return scoped && json_object_set_new(params, "workspace", json_string(scoped)) == 0
		       ? 0
		       : err_set(reterr, CORDON_NOMEM, "out of memory");
}
