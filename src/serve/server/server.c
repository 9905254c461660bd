/* serve/server/server.c - see server.h. */
#include "serve/server/server.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/condvar.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "serve/console/console.h"
#include "serve/e2b/e2b.h"
#include "serve/http/httphost.h"
#include "serve/http/problem.h"
#include "serve/remote/remote.h"
#include "serve/rpc/socket.h"
#include "serve/server/health.h"
#include "serve/server/parking.h"
#include "serve/server/server_log.h"
#include "serve/server/state_lock.h"
#include "serve/v1/v1.h"

enum { REQUESTS = 1024, CONNECTIONS = 4096, LATER = 8, SWEEP_MS = 1000 };

/* Called with the lock held. */
static int make_tenant(struct server *s, const struct key *k, struct tenant **ret,
		       struct cordon_error **reterr)
{
	struct cordon_policy *policy = NULL;
	struct tenant *t = NULL;
	char owner[KEY_OWNER_BYTES];

	key_owner(k, owner);
	cleanup_free char *audit = str_printf("%s/audit/%s.jsonl", database_folder(s->db), owner);
	int r = audit ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r == 0 && k->policy)
		r = cordon_policy_new(NULL, &policy, reterr);
	if (r == 0 && policy)
		r = cordon_policy_apply_json(policy, k->policy, reterr);
	const struct tenant_options o = { .name = owner,
					  .is_admin = k->is_admin,
					  .policy = policy ? policy : s->policy,
					  .sessions = k->sessions,
					  .executions = k->executions,
					  .memory_bytes = k->memory_bytes,
					  .rate = k->rate,
					  .hash = k->hash,
					  .audit = audit,
					  .metrics = &s->metrics,
					  .tracer = s->tracer,
					  .db = s->db };
	if (r == 0)
		r = tenant_new(&o, &t, reterr);
	policy = cordon_policy_free(policy);
	if (r != 0)
		return r;
	t->park_ms = s->park_ms;
	t->logs = s->logs;
	t->next = s->tenants;
	*ret = s->tenants = t;
	return 0;
}

/* The tenant of a key, made if there is none. Called with the lock held. */
static int find_tenant(struct server *s, const struct key *k, struct tenant **ret,
		       struct cordon_error **reterr)
{
	char owner[KEY_OWNER_BYTES];

	key_owner(k, owner);
	for (struct tenant *t = s->tenants; t; t = t->next)
		if (!t->is_over && str_eq(t->name, owner) &&
		    memcmp(t->hash, k->hash, sizeof(t->hash)) == 0) {
			*ret = t;
			return 0;
		}
	return make_tenant(s, k, ret, reterr);
}

/* An administrator without an entry in the database. */
static int find_admin(struct server *s, struct tenant **ret, struct cordon_error **reterr)
{
	struct key k = { .name = KEY_ADMIN_NAME, .is_admin = true };

	memcpy(k.hash, s->admin_hash, sizeof(k.hash));
	pthread_mutex_lock(&s->lock);
	int r = find_tenant(s, &k, ret, reterr);
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* The tenant of a key; NULL: there is no such key, or it has ended. A failure is not that: somebody
 * whose key could not be looked up must not believe that it is wrong. */
static int find_key(struct server *s, const char *text, struct tenant **ret,
		    struct cordon_error **reterr)
{
	unsigned char hash[KEY_HASH_BYTES];

	key_hash(text, hash);
	if (s->has_admin_key && sodium_memcmp(hash, s->admin_hash, sizeof(hash)) == 0)
		return find_admin(s, ret, reterr);
	int r = server_check_keys(s, reterr);
	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	const struct key *k = key_find(&s->keys, hash);
	if (k && key_is_valid(k, time(NULL)))
		r = find_tenant(s, k, ret, reterr);
	pthread_mutex_unlock(&s->lock);
	return r;
}

static void forget_tenant(void *arg)
{
	struct tenant *t = arg;

	t->is_forgotten = parking_forget_tenant(t->db, t->name) == 0;
	t->is_leaving = false;
}

/* Its key is gone, and so is everything that it owns. */
static void close_tenant(void *arg)
{
	tenant_close(arg);
	forget_tenant(arg);
}

/* Called with the lock held. */
static bool has_key(const struct server *s, const struct tenant *t)
{
	const struct key *k = key_find(&s->keys, t->hash);

	if (memcmp(t->hash, s->admin_hash, sizeof(t->hash)) == 0)
		return true;
	return k && key_is_valid(k, time(NULL));
}

/* Called with the lock held. After a failure the next call reads them, changed or not: that they
 * have changed is told only once. */
static int load_keys(struct server *s, struct cordon_error **reterr)
{
	struct keys fresh = { 0 };
	bool has_changed = false;
	int r = database_has_changed(s->db, &has_changed, reterr);

	if (r == 0 && s->has_keys && !has_changed)
		return 0;
	if (r == 0)
		r = key_load(s->db, &fresh, reterr);
	s->has_keys = r == 0;
	if (r < 0)
		return r;
	keys_done(&s->keys);
	s->keys = fresh;
	return 0;
}

int server_check_keys(struct server *s, struct cordon_error **reterr)
{
	pthread_mutex_lock(&s->lock);
	int r = load_keys(s, reterr);
	for (struct tenant *t = s->tenants; t; t = t->next)
		if (!t->is_over && !s->no_keys && !has_key(s, t)) {
			t->is_leaving = true;
			t->is_over = true;
			if (workers_run(s->later, close_tenant, t))
				continue;
			t->is_leaving = false;
			t->is_over = false; /* the next round tries again */
		}
	pthread_mutex_unlock(&s->lock);
	return r;
}

static void sweep_tenant(void *arg)
{
	struct tenant *t = arg;
	uint64_t now = clock_now_ns(), idle = t->park_ms * 1000000;

	pthread_mutex_lock(&t->lock);
	struct mcphttp *mcp = t->mcp;
	pthread_mutex_unlock(&t->lock);
	if (mcp)
		mcphttp_sweep(mcp);
	if (t->park_ms != UINT64_MAX && now > idle)
		parking_sweep(t, now - idle);
	t->is_swept = false;
}

/* Called with the lock held. A mark is taken back only if nobody will: the thread that has it may
 * have ended already. */
static void sweep_later(struct server *s, struct tenant *t)
{
	if (!t->is_over && !t->is_swept) {
		t->is_swept = true;
		if (!workers_run(s->later, sweep_tenant, t))
			t->is_swept = false;
	}
	/* The database was not there before. */
	if (t->is_over && !t->is_forgotten && !t->is_leaving) {
		t->is_leaving = true;
		if (!workers_run(s->later, forget_tenant, t))
			t->is_leaving = false;
	}
}

static bool drop_parked(const char *id, void *arg)
{
	struct server *s = arg;
	bool is_gone = true;

	pthread_mutex_lock(&s->lock);
	for (struct tenant *t = s->tenants; t; t = t->next)
		is_gone = client_session_drop(&t->rpc->sessions, id) && is_gone;
	pthread_mutex_unlock(&s->lock);
	return is_gone;
}

/* Ends what belongs to keys that were revoked or have expired, and what was parked for too long,
 * also if nobody asks. */
static void *sweep(void *arg)
{
	struct server *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->is_ending) {
		(void)condvar_wait(&s->changed, &s->lock, deadline_after_ms(SWEEP_MS));
		pthread_mutex_unlock(&s->lock);
		(void)server_check_keys(s, NULL);
		(void)parking_expire(s->db, s->keep_s, drop_parked, s, NULL);
		pthread_mutex_lock(&s->lock);
		for (struct tenant *t = s->tenants; t; t = t->next)
			sweep_later(s, t);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* The key of a request: Authorization: Bearer, or X-API-Key. */
static const char *key_of(struct httpd_exchange *x)
{
	const char *bearer = httpd_header(x, "Authorization");

	if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0)
		return bearer + 7 + strspn(bearer + 7, " ");
	return httpd_header(x, "X-API-Key");
}

static void log_failure(const struct server *s, const struct cordon_error *e)
{
	cleanup_free char *text = s->logs ? err_text(e) : NULL;

	if (s->logs)
		server_log_write("failure",
				 json_pack("{s:o*}", "detail",
					   text ? json_string_lossy(text, strlen(text)) : NULL));
}

/* Who sends this request, by its key. */
static unsigned authorize(struct httpd_exchange *x, enum httpd_right right, void *arg)
{
	struct server *s = arg;
	const char *key = key_of(x);
	cleanup_error struct cordon_error *e = NULL;
	struct tenant *t = NULL;
	int r = 0;

	if (s->no_keys)
		r = find_admin(s, &t, &e);
	else if (key)
		r = find_key(s, key, &t, &e);
	if (r < 0)
		log_failure(s, e);
	if (!t)
		return r < 0 ? HTTPD_UNDECIDED : 401;
	httpd_set_principal(x, t->name, t);
	if (right == HTTPD_ADMIN && !t->is_admin)
		return 403;
	return tenant_may_ask(t) ? 0 : 429;
}

/* What could not be looked up may be one: it is not passed on to code. */
static bool is_key(const char *text, void *arg)
{
	struct tenant *t = NULL;

	return find_key(arg, text, &t, NULL) < 0 || t;
}

static void end_sweeper(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	s->is_ending = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (s->has_sweeper)
		(void)pthread_join(s->sweeper, NULL);
	s->has_sweeper = false;
}

static struct server *server_free(struct server *s)
{
	end_sweeper(s);
	s->ports.tunnels = port_tunnels_free(s->ports.tunnels);
	workers_free(s->later);
	s->e2b = e2b_free(s->e2b);
	(void)remotes_free(s->remotes);
	while (s->tenants) {
		struct tenant *t = s->tenants;
		s->tenants = t->next;
		(void)tenant_free(t);
	}
	s->policy = cordon_policy_free(s->policy);
	keys_done(&s->keys);
	s->db = database_close(s->db);
	close_fdp(&s->lock_fd);
	s->tracer = tracer_free(s->tracer); /* after all that have spans */
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

/* MCP of the tenant that asks. */
static void serve_mcp(struct httpd_exchange *x, void *server)
{
	struct mcphttp *mcp = tenant_mcp(httpd_tenant(x));

	(void)server;
	if (mcp)
		mcphttp_serve(x, mcp);
	else
		problem_answer_as(x, 503, "nomem", "there is no memory for MCP", NULL);
}

static const struct httpd_route mcp_routes[] = {
	{ .path = "/mcp", .right = HTTPD_KEY, .fn = serve_mcp, .body_max = MCP_MESSAGE_MAX },
	{ 0 },
};

/* In any thread. The path is that of the route: no ids, and nothing that a client made up. */
static void on_request_end(const struct httpd_exchange *x, unsigned status, uint64_t ns, void *arg)
{
	struct server *s = arg;
	const struct httpd_route *r = httpd_route_of(x);
	const struct trace_context *trace = httpd_trace(x);
	char now[CLOCK_UTC_SIZE], id[TRACE_CONTEXT_ID_HEX + 1];
	bool has_trace = trace_context_is_set(trace);

	metrics_count_request(&s->metrics, status, ns);
	if (!s->logs)
		return;
	clock_utc_text(now);
	hex_encode(id, trace->trace_id, sizeof(trace->trace_id));
	fprintf(stderr,
		"{\"time\":\"%s\",\"event\":\"request\",\"method\":\"%s\",\"route\":\"%s\","
		"\"status\":%u,\"ms\":%.3f,\"key\":\"%s\"%s%s%s}\n",
		now, r && r->method ? r->method : "", r ? r->path : "", status, (double)ns / 1e6,
		httpd_principal(x), has_trace ? ",\"trace_id\":\"" : "", has_trace ? id : "",
		has_trace ? "\"" : "");
}

static bool admit(struct httpd_exchange *x, void *arg)
{
	struct tenant *t = httpd_tenant(x);

	(void)arg;
	return !t || tenant_enter(t);
}

static void leave(struct httpd_exchange *x, void *arg)
{
	struct tenant *t = httpd_tenant(x);

	(void)arg;
	if (t)
		tenant_leave(t);
}

/* Whoever reaches the server from other machines needs a key, and nobody between may read it. */
static int check_reach(const struct server_options *o, struct httpd_options *h,
		       struct cordon_error **reterr)
{
	bool is_near = false;
	int r = o->socket_path ? 0
			       : httphost_is_near(o->listen_fd > 0 ? NULL : h->address,
						  o->listen_fd, &is_near, &h->is_unix, reterr);

	if (r < 0 || o->socket_path || is_near)
		return r;
	if (!o->tls_cert && !o->allows_plaintext)
		return err_set(reterr, CORDON_DENIED,
			       "other machines could reach this address, and everything would be "
			       "sent in plain text: use --tls-cert and --tls-key, or say "
			       "--allow-plaintext");
	if (o->no_keys && !o->allows_no_keys)
		return err_set(reterr, CORDON_DENIED,
			       "other machines could reach this address, and nobody would need a "
			       "key: leave out --no-keys, or say --allow-no-keys");
	h->is_public = true;
	return 0;
}

static int start_http(struct server *s, const struct server_options *o,
		      struct cordon_error **reterr)
{
	/* The rooms of the server. The server's tables outlive it. */
	static struct httpd_table tables[8];
	struct httpd_options h = {
		.address = o->address ? o->address : "127.0.0.1:8123",
		.listen_fd = o->listen_fd,
		.hosts = o->hosts,
		.authorize = authorize,
		.authorize_arg = s,
		.requests = REQUESTS,
		.connections = CONNECTIONS,
		.tables = tables,
		.tls_cert = o->tls_cert,
		.tls_key = o->tls_key,
		.admit = admit,
		.leave = leave,
		.admit_arg = s,
		.log = on_request_end,
		.log_arg = s,
		.tracer = s->tracer,
		.divert = e2b_ports_divert,
		.divert_arg = s->e2b,
	};

	int r = check_reach(o, &h, reterr);
	if (r < 0)
		return r;

	tables[0] = (struct httpd_table){ v1_routes, s };
	tables[1] = (struct httpd_table){ health_routes, s };
	tables[2] = (struct httpd_table){ mcp_routes, s };
	tables[3] = (struct httpd_table){ console_routes, s };
	tables[4] = (struct httpd_table){ e2b_routes, s->e2b };
	tables[5] = (struct httpd_table){ remote_routes, s->remotes };
	if (o->socket_path) {
		r = socket_listen(o->socket_path, &h.listen_fd, reterr);
		if (r < 0)
			return r;
		h.is_unix = true;
	}
	return httpd_start(&h, &s->http, reterr);
}

static int open_state(struct server *s, const char *folder, struct cordon_error **reterr)
{
	cleanup_free char *audit = str_printf("%s/audit", folder);
	int r = database_open(folder, &s->db, reterr);

	if (r == 0 && (!audit || (mkdir(audit, 0700) != 0 && errno != EEXIST)))
		r = err_errno(reterr, errno, "make '%s'", audit ? audit : folder);
	if (r == 0)
		r = state_lock_open(folder, &s->lock_fd, reterr);
	if (r == 0)
		r = parking_init(s->db, s->keep_s, reterr);
	if (r == 0)
		r = pthread_create(&s->sweeper, NULL, sweep, s) == 0
			    ? 0
			    : err_set(reterr, CORDON_OS,
				      "no thread could be started: check the limit of processes "
				      "(ulimit -u, TasksMax= of systemd)");
	s->has_sweeper = r == 0;
	return r;
}

int server_start(const struct server_options *o, struct server **ret, struct cordon_error **reterr)
{
	struct server *s = mem_alloc(sizeof(*s));

	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	pthread_mutex_init(&s->lock, NULL);
	condvar_init(&s->changed);
	s->lock_fd = -1;
	s->no_keys = o->no_keys;
	s->logs = o->logs;
	s->park_ms = o->park_ms;
	s->keep_s = o->keep_s;
	s->has_admin_key = o->admin_key != NULL;
	if (o->admin_key)
		key_hash(o->admin_key, s->admin_hash);
	else
		random_bytes(s->admin_hash, sizeof(s->admin_hash));
	int r = workers_new(LATER, &s->later, reterr);
	if (r == 0 && o->tracer)
		r = tracer_new(o->tracer, &s->tracer, reterr);
	if (r == 0)
		r = remotes_new(&s->remotes, reterr);
	s->ports = (struct port_proxy){ .is_key = is_key, .arg = s };
	if (r == 0)
		r = port_tunnels_new(s->later, &s->ports.tunnels, reterr);
	if (r == 0)
		r = open_state(s, o->state, reterr);
	if (r == 0 && o->policy && !(s->policy = cordon_policy_copy(o->policy, reterr)))
		r = -CORDON_NOMEM;
	if (r == 0)
		r = e2b_new(s, o->templates, &s->e2b, reterr);
	if (r == 0)
		r = start_http(s, o, reterr);
	if (r < 0) {
		(void)server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

const char *server_address(const struct server *s)
{
	return httpd_address(s->http);
}

void server_drain(struct server *s)
{
	httpd_drain(s->http);
	remotes_drain(s->remotes);
}

bool server_is_busy(struct server *s)
{
	bool is = false;

	pthread_mutex_lock(&s->lock);
	for (struct tenant *t = s->tenants; t && !is; t = t->next) {
		pthread_mutex_lock(&t->lock);
		is = t->running > 0;
		pthread_mutex_unlock(&t->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return is;
}

struct server *server_stop(struct server *s)
{
	if (!s)
		return NULL;
	server_drain(s);
	remotes_close(s->remotes);
	httpd_hurry(s->http);
	e2b_shut(s->e2b);
	end_sweeper(s);
	/* The code of all is interrupted at the same time, and what stops at once is parked first.
	 */
	for (struct tenant *t = s->tenants; t; t = t->next) {
		t->is_ending = true;
		rpc_cancel(t->rpc);
	}
	for (struct tenant *t = s->tenants; t; t = t->next) {
		if (s->park_ms != UINT64_MAX && !t->is_over)
			parking_end(t);
		tenant_close(t);
	}
	port_tunnels_close(s->ports.tunnels);
	s->http = httpd_stop(s->http);
	return server_free(s);
}
