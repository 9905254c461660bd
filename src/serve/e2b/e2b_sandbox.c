/* serve/e2b/e2b_sandbox.c - see e2b_sandbox.h. */
#include "serve/e2b/e2b_sandbox.h"

#include <sodium.h>
#include <string.h>
#include <time.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "policy/public.h"
#include "serve/e2b/e2b_context.h"
#include "serve/e2b/e2b_process.h"
#include "serve/e2b/e2b_spares.h"
#include "serve/e2b/e2b_state.h"
#include "serve/e2b/e2b_template.h"
#include "serve/e2b/e2b_watch.h"
#include "serve/rpc/session_quota.h"
#include "session/session.h"

static int64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void e2b_sandbox_token(const struct e2b *e, const char *id, enum e2b_token which,
		       char ret[static E2B_TOKEN_BYTES])
{
	unsigned char mac[crypto_auth_hmacsha256_BYTES];
	crypto_auth_hmacsha256_state state;
	const unsigned char kind = (unsigned char)which;

	_Static_assert(E2B_TOKEN_BYTES == 2 * sizeof(mac) + 1, "a token is the code in hex");
	crypto_auth_hmacsha256_init(&state, e->secret, sizeof(e->secret));
	crypto_auth_hmacsha256_update(&state, &kind, 1);
	crypto_auth_hmacsha256_update(&state, (const unsigned char *)id, strlen(id));
	crypto_auth_hmacsha256_final(&state, mac);
	hex_encode(ret, mac, sizeof(mac));
}

static void sandbox_free(struct e2b_sandbox *b)
{
	json_decref(b->metadata);
	free(b->template);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* Without a session so far. */
static struct e2b_sandbox *sandbox_new(struct e2b *e, const char *owner, struct tenant *tenant,
				       const char *template, const json_t *metadata)
{
	struct e2b_sandbox *b = mem_alloc(sizeof(*b));

	if (!b)
		return NULL;
	b->e2b = e;
	b->id[0] = 'i';
	random_hex(b->id + 1, sizeof(b->id) - 2);
	(void)str_copy(b->owner, sizeof(b->owner), owner);
	b->tenant = tenant;
	b->template = str_dup(template);
	b->metadata = metadata ? json_deep_copy(metadata) : json_object();
	b->refs = 1;
	b->started_ms = wall_ms();
	pthread_mutex_init(&b->lock, NULL);
	condvar_init(&b->changed);
	if (b->template && b->metadata)
		return b;
	sandbox_free(b);
	return NULL;
}

/* Into the list. The caller has the first reference. */
static int add(struct e2b *e, struct e2b_sandbox *b, struct cordon_error **reterr)
{
	pthread_mutex_lock(&e->lock);
	bool is_shut = e->is_shut;
	if (!is_shut) {
		b->next = e->first;
		e->first = b;
		e->count++;
		pthread_cond_broadcast(&e->changed); /* the ticker sleeps while there is none */
	}
	pthread_mutex_unlock(&e->lock);
	return is_shut ? err_set(reterr, CORDON_STATE, "the server is stopping") : 0;
}

void e2b_sandbox_set_timeout(struct e2b_sandbox *b, uint64_t seconds, bool extend)
{
	if (seconds > E2B_TIMEOUT_MAX_S)
		seconds = E2B_TIMEOUT_MAX_S;
	deadline_ns end = deadline_after_ms(seconds * 1000);

	pthread_mutex_lock(&b->lock);
	if (!extend || end > b->end) {
		b->end = end;
		b->end_ms = wall_ms() + (int64_t)seconds * 1000;
	}
	pthread_mutex_unlock(&b->lock);
	pthread_mutex_lock(&b->e2b->lock);
	pthread_cond_broadcast(&b->e2b->changed); /* the ticker looks again */
	pthread_mutex_unlock(&b->e2b->lock);
}

static int add_env(struct strlist *env, const char *name, const char *value)
{
	cleanup_free char *pair = str_printf("%s=%s", name, value);

	return pair ? strlist_add(env, pair) : -CORDON_NOMEM;
}

/* What programs in the sandbox can learn about it, and what the client sets. */
static int make_env(const struct e2b_sandbox *b, const json_t *given, struct strlist *ret,
		    struct cordon_error **reterr)
{
	json_t *value;
	const char *name;
	int r = add_env(ret, "E2B_SANDBOX", "true");

	if (r == 0)
		r = add_env(ret, "E2B_SANDBOX_ID", b->id);
	if (r == 0)
		r = add_env(ret, "E2B_TEMPLATE_ID", b->template);
	if (r == 0)
		r = add_env(ret, "CORDON_CHARTS", "1");
	json_object_foreach((json_t *)(uintptr_t)given, name, value)
	{
		if (!json_is_string(value) || !*name || strchr(name, '='))
			return err_set(reterr, CORDON_INVALID, "envVars: '%.64s' must be a string",
				       name);
		if (r == 0)
			r = add_env(ret, name, json_string_value(value));
	}
	return r < 0 ? err_set(reterr, CORDON_NOMEM, "out of memory") : 0;
}

/* Opens the session within the tenant's quotas. Its place among the tenant's sessions stays without
 * an id, so no other door finds it or ends it. */
static int open_session(struct e2b_sandbox *b, const struct e2b_sandbox_options *o,
			struct cordon_error **reterr)
{
	struct client_sessions *all = &b->tenant->rpc->sessions;
	cleanup_strlist struct strlist env = { 0 };
	struct cordon_policy *policy = NULL;
	const struct rpc *rpc = b->tenant->rpc;
	int r = e2b_template_policy(b->e2b->templates, o->template,
				    rpc->is_limited ? rpc->policy : NULL, &policy, reterr);

	if (r == 0 && rpc->is_shared && rpc->policy)
		r = policy_inherit(&policy->p, &rpc->policy->p, reterr);

	if (r == 0)
		r = make_env(b, o->env, &env, reterr);
	if (r == 0)
		r = client_session_new(all, false, &b->lease, reterr);
	if (r == 0) {
		r = client_session_charge(all, b->lease, policy->p.memory_bytes, reterr);
		if (r == 0)
			r = e2b_spares_take(b->e2b->spares, policy, (const char *const *)env.items,
					    &b->session, reterr);
		if (r < 0)
			client_session_fail(all, TAKE_PTR(b->lease));
	}
	cordon_policy_free(policy);
	return r;
}

static void close_session(struct e2b_sandbox *b)
{
	if (b->session)
		b->session = e2b_spares_give_back(b->e2b->spares, b->session);
	if (b->lease)
		client_session_fail(&b->tenant->rpc->sessions, TAKE_PTR(b->lease));
}

int e2b_sandbox_new(struct e2b *e, struct httpd_exchange *x, const struct e2b_sandbox_options *o,
		    struct e2b_sandbox **ret, struct cordon_error **reterr)
{
	struct e2b_sandbox *b =
		sandbox_new(e, httpd_principal(x), httpd_tenant(x), o->template, o->metadata);

	if (!b)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	b->auto_pause = o->auto_pause;
	b->keeps_memory = o->keeps_memory;
	b->auto_resume = o->auto_resume;
	b->is_public = o->is_public;
	struct span span;
	span_begin(&span, &(struct span_options){ .tracer = b->tenant->tracer,
						  .parent = httpd_trace(x),
						  .name = "session.open" });
	int r = open_session(b, o, reterr);
	span_set_outcome(&span, NULL, r < 0 ? cordon_code_name((enum cordon_code) - r) : "success",
			 -1);
	span_end(&span);
	if (r == 0) {
		e2b_sandbox_set_timeout(b, o->timeout_s, false);
		r = add(e, b, reterr);
	}
	if (r < 0) {
		close_session(b);
		sandbox_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

/* Before there is a session: what is beyond the quotas is never made. */
static int open_fork(struct e2b_sandbox *b, const struct e2b_sandbox *of,
		     struct cordon_error **reterr)
{
	struct client_sessions *all = &b->tenant->rpc->sessions;
	int r = client_session_new(all, true, &b->lease, reterr);

	if (r == 0)
		r = client_session_charge(all, b->lease, session_memory_bytes(of->session), reterr);
	if (r == 0)
		r = cordon_session_fork(of->session, &b->session, reterr);
	if (r == 0)
		(void)cordon_session_setenv(b->session, "E2B_SANDBOX_ID", b->id, NULL);
	return r;
}

int e2b_sandbox_fork(struct e2b_sandbox *of, uint64_t timeout_s, struct e2b_sandbox **ret,
		     struct cordon_error **reterr)
{
	struct e2b_sandbox *b =
		sandbox_new(of->e2b, of->owner, of->tenant, of->template, of->metadata);

	if (!b)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	b->is_public = of->is_public;
	int r = open_fork(b, of, reterr);
	if (r == 0) {
		e2b_sandbox_set_timeout(b, timeout_s, false);
		r = add(b->e2b, b, reterr);
	}
	if (r < 0) {
		close_session(b);
		sandbox_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

struct e2b_sandbox *e2b_sandbox_get(struct e2b *e, const char *id, const char *owner)
{
	struct e2b_sandbox *b;

	pthread_mutex_lock(&e->lock);
	for (b = e->first; b; b = b->next)
		if (str_eq(b->id, id) && (!owner || str_eq(b->owner, owner)))
			break;
	if (b) {
		pthread_mutex_lock(&b->lock);
		b->refs++;
		pthread_mutex_unlock(&b->lock);
	}
	pthread_mutex_unlock(&e->lock);
	return b;
}

struct e2b_sandbox *e2b_sandbox_put(struct e2b_sandbox *b)
{
	if (!b)
		return NULL;
	pthread_mutex_lock(&b->lock);
	b->refs--;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

enum e2b_state e2b_sandbox_state(struct e2b_sandbox *b)
{
	pthread_mutex_lock(&b->lock);
	enum e2b_state s = b->state;
	pthread_mutex_unlock(&b->lock);
	return s;
}

/* Out of the list: from now on it is unknown. False: somebody else was first. */
static bool remove_from_list(struct e2b_sandbox *b)
{
	struct e2b *e = b->e2b;
	bool is_found = false;

	pthread_mutex_lock(&e->lock);
	for (struct e2b_sandbox **p = &e->first; *p && !is_found; p = &(*p)->next)
		if (*p == b) {
			*p = b->next;
			is_found = true;
			break;
		}
	if (is_found) {
		pthread_mutex_lock(&b->lock);
		b->state = E2B_GONE;
		pthread_cond_broadcast(&b->changed);
		pthread_mutex_unlock(&b->lock);
	}
	pthread_mutex_unlock(&e->lock);
	return is_found;
}

/* New users cannot come; those that are there end because what they wait for ends. */
static void await_users(struct e2b_sandbox *b)
{
	enum { AGAIN_MS = 50 };

	pthread_mutex_lock(&b->lock);
	while (b->refs > 1 || b->process_count > 0) {
		pthread_mutex_unlock(&b->lock);
		e2b_process_end_all(b);
		e2b_context_end_all(b);
		e2b_watch_end_all(b);
		pthread_mutex_lock(&b->lock);
		if (b->refs > 1 || b->process_count > 0)
			(void)condvar_wait(&b->changed, &b->lock, deadline_after_ms(AGAIN_MS));
	}
	pthread_mutex_unlock(&b->lock);
}

bool e2b_sandbox_kill(struct e2b_sandbox *b)
{
	struct e2b *e = b->e2b;

	if (!remove_from_list(b)) {
		e2b_sandbox_put(b);
		return false;
	}
	e2b_process_end_all(b);
	e2b_context_end_all(b);
	e2b_watch_end_all(b);
	await_users(b);
	e2b_watch_end_all(b); /* what the last user added */
	close_session(b);
	e2b_context_free_all(b);
	sandbox_free(b);
	pthread_mutex_lock(&e->lock);
	e->count--;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
	return true;
}

void e2b_sandbox_visit(struct e2b *e, bool (*fn)(struct e2b_sandbox *b, void *arg), void *arg)
{
	pthread_mutex_lock(&e->lock);
	for (struct e2b_sandbox *b = e->first; b; b = b->next)
		if (!fn(b, arg))
			break;
	pthread_mutex_unlock(&e->lock);
}

struct e2b_sandbox *e2b_sandbox_any(struct e2b *e)
{
	pthread_mutex_lock(&e->lock);
	struct e2b_sandbox *b = e->first;
	if (b) {
		pthread_mutex_lock(&b->lock);
		b->refs++;
		pthread_mutex_unlock(&b->lock);
	}
	pthread_mutex_unlock(&e->lock);
	return b;
}
