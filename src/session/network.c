/* session/network.c - see network.h. */
#include "session/network.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "session/session.h"

#define BUNDLE_PATH "/etc/ssl/certs/ca-certificates.crt"
#define APPROVAL_PREFIX "net-"

enum { BUNDLE_MAX = 16 << 20, APPROVAL_KEY = 32, DENIALS_MAX = 1000, PENDING_MAX = 256 };

/* A request that waits for a decision, until the gateway reports that it no longer waits. */
struct pending {
	uint64_t id;
	bool is_of_now;   /* belongs to the running execution, whose clock stops */
	bool is_answered; /* further answers are ignored */
};

struct network {
	struct cordon_session *session;
	struct gateway *gateway;
	int authorities; /* network_spare.authorities, until the guest has it; -1: none */
	char key[APPROVAL_KEY + 1]; /* makes approval ids unguessable */
	/* Held while the gateway's messages are handled, also when `lock` is released for a
	 * callback. Taken before `lock`. */
	pthread_mutex_t dispatching;
	pthread_mutex_t lock;       /* guards the gateway's control socket and the fields below */
	struct network_turn *turns; /* of the running executions */
	uint64_t executions;        /* begun so far, to number them */
	_Atomic unsigned refs;
	bool is_lost; /* the gateway has ended */
	struct pending pending[PENDING_MAX];
	size_t pending_count;
	uint64_t waiting_since_ns,
		waited_ns; /* for any pending request, in this execution; 0: none pending */
};

/* A denial as in docs/result.md. The event's other fields are for the audit log. */
static json_t *denial_of(const json_t *event)
{
	static const char *const keys[] = { "operation", "target", "layer", "rule", "remedy" };
	json_t *d = json_object();

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		json_t *v = json_object_get(event, keys[i]);
		json_object_set_new(d, keys[i], v ? json_incref(v) : json_null());
	}
	json_object_set_new(d, "count", json_integer(1));
	return d;
}

/* A repeated denial is counted, not listed again. */
static void add_denial(json_t *list, const json_t *event)
{
	static const char *const keys[] = { "operation", "target", "rule" };
	json_t *d;
	size_t i;

	json_array_foreach(list, i, d)
	{
		bool is_same = true;
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys) && is_same; k++)
			is_same = json_equal(json_object_get(d, keys[k]),
					     json_object_get(event, keys[k]));
		json_int_t count = json_integer_value(json_object_get(d, "count"));
		if (is_same) {
			json_object_set_new(d, "count", json_integer(count + 1));
			return;
		}
	}
	if (json_array_size(list) < DENIALS_MAX)
		json_array_append_new(list, denial_of(event));
}

static void on_event(const json_t *event, void *arg)
{
	struct network *n = arg;
	const char *name = json_string_value(json_object_get(event, "event"));
	struct audit_event *e =
		audit_begin(n->session->audit, name ? name : "network", n->session->id);

	if (e) {
		cleanup_free char *text = json_text(event, NULL);

		if (text)
			audit_add_json(e, "request", text, strlen(text));
		(void)audit_commit(e, NULL);
	}
	for (struct network_turn *t = n->turns; t && str_eq(name, "network.denied"); t = t->next)
		add_denial(result_array(&t->denials), event);
}

static struct pending *find_pending(struct network *n, uint64_t id)
{
	for (size_t i = 0; i < n->pending_count; i++)
		if (n->pending[i].id == id)
			return &n->pending[i];
	return NULL;
}

static bool is_waiting(const struct network *n)
{
	for (size_t i = 0; i < n->pending_count; i++)
		if (n->pending[i].is_of_now && !n->pending[i].is_answered)
			return true;
	return false;
}

static uint64_t waited_ns(const struct network *n)
{
	return n->waited_ns + (n->waiting_since_ns ? clock_now_ns() - n->waiting_since_ns : 0);
}

/* Call after every change to the pending requests. */
static void note_waiting(struct network *n)
{
	bool waits = is_waiting(n);

	if (waits && n->waiting_since_ns == 0) {
		n->waiting_since_ns = clock_now_ns();
	} else if (!waits) {
		n->waited_ns = waited_ns(n);
		n->waiting_since_ns = 0;
	}
}

static void on_over(uint64_t id, void *arg)
{
	struct network *n = arg;
	struct pending *p = find_pending(n, id);

	if (p)
		*p = n->pending[--n->pending_count];
	note_waiting(n);
}

static void on_ask(uint64_t id, const json_t *request, void *arg)
{
	struct network *n = arg;
	const char *method = json_string_value(json_object_get(request, "method"));
	const char *host = json_string_value(json_object_get(request, "host"));
	const char *path = json_string_value(json_object_get(request, "path"));
	cleanup_free char *detail = json_text(request, NULL);
	char key[96], what[512];

	snprintf(key, sizeof(key), APPROVAL_PREFIX "%s-%" PRIu64, n->key, id);
	snprintf(what, sizeof(what), "%s %s%s", method ? method : "connect", host ? host : "?",
		 path ? path : "");
	if (n->pending_count == PENDING_MAX || find_pending(n, id)) {
		(void)gateway_answer(n->gateway, id, false, "too many approvals are pending", NULL);
		return;
	}
	n->pending[n->pending_count++] = (struct pending){ .id = id, .is_of_now = true };
	note_waiting(n);
	struct cordon_approval a = { .id = key,
				     .session = n->session->id,
				     .kind = "network",
				     .what = what,
				     .detail = detail ? detail : "{}" };
	pthread_mutex_unlock(&n->lock);
	n->session->approval(&a, n->session->approval_arg);
	pthread_mutex_lock(&n->lock);
}

static struct gateway_options options_of(const struct policy *p, const struct network_listener *to)
{
	bool is_box = wall_worker_uid() == geteuid();

	return (struct gateway_options){ .policy = p,
					 .uid = is_box ? 0 : wall_worker_uid(), /* 0: keep ours */
					 .gid = is_box ? 0 : wall_worker_uid(),
					 .event = to->event,
					 .ask = to->ask,
					 .over = to->over,
					 .arg = to->arg };
}

/* Once more if it was killed from outside before it was ready. */
static int start_patiently(const struct gateway_options *o, struct gateway **ret,
			   struct cordon_error **reterr)
{
	struct cordon_error *e = NULL;
	int r = gateway_start(o, ret, &e);

	if (r == -CORDON_STATE) {
		e = cordon_error_free(e);
		r = gateway_start(o, ret, &e);
	}
	if (reterr)
		*reterr = e;
	else
		cordon_error_free(e);
	return r;
}

int network_start(const struct policy *p, const struct network_listener *to, struct gateway **ret,
		  struct cordon_error **reterr)
{
	struct gateway_options o = options_of(p, to);

	return start_patiently(&o, ret, reterr);
}

static int start(struct network *n, const struct policy *p, const struct network_listener *to,
		 struct network_spare *spare, struct cordon_error **reterr)
{
	struct gateway_options o = options_of(p, to);

	if (!spare || !gateway_is_fresh(spare->gateway, &o))
		return start_patiently(&o, &n->gateway, reterr);
	gateway_attach(spare->gateway, &o);
	n->gateway = TAKE_PTR(spare->gateway);
	n->authorities = TAKE_FD(spare->authorities);
	return 0;
}

int network_open(struct cordon_session *s, struct network_spare *spare, struct network **ret,
		 struct cordon_error **reterr)
{
	cleanup_network_spare struct network_spare *given = spare;

	if (!gateway_is_needed(&s->policy))
		return 0;
	struct network *n = mem_alloc(sizeof(*n));
	if (!n)
		return err_errno(reterr, ENOMEM, "open the gateway");
	n->authorities = -1;
	n->session = s;
	n->refs = 1;
	pthread_mutex_init(&n->lock, NULL);
	pthread_mutex_init(&n->dispatching, NULL);
	random_hex(n->key, APPROVAL_KEY);
	struct network_listener to = { on_event, s->approval ? on_ask : NULL, on_over, n };
	int r = start(n, &s->policy, &to, given, reterr);
	if (r < 0) {
		network_close(n);
		return r;
	}
	*ret = n;
	return 0;
}

static void lock_both(struct network *n)
{
	pthread_mutex_lock(&n->dispatching);
	pthread_mutex_lock(&n->lock);
}

static void unlock_both(struct network *n)
{
	pthread_mutex_unlock(&n->lock);
	pthread_mutex_unlock(&n->dispatching);
}

struct network *network_close(struct network *n)
{
	if (!n)
		return NULL;
	lock_both(n);
	n->gateway = gateway_stop(n->gateway);
	close_fdp(&n->authorities);
	n->is_lost = true;
	unlock_both(n);
	return network_unref(n);
}

struct network *network_ref(struct network *n)
{
	if (n)
		n->refs++;
	return n;
}

struct network *network_unref(struct network *n)
{
	if (!n || --n->refs > 0)
		return NULL;
	pthread_mutex_destroy(&n->lock);
	pthread_mutex_destroy(&n->dispatching);
	free(n);
	return NULL;
}

/* The system's certificate authorities, and the gateway's own if it terminates TLS. */
static int load_authorities(const char *own, struct buf *ret, struct cordon_error **reterr)
{
	buf_init(ret, BUNDLE_MAX);
	(void)file_load(BUNDLE_PATH, BUNDLE_MAX, ret, NULL); /* a machine may have none */
	if (own && (buf_add_char(ret, '\n') < 0 || buf_add_str(ret, own) < 0))
		return err_errno(reterr, ENOMEM, "the authorities");
	return 0;
}

/* If the gateway has one of its own. */
static int save_authorities(const struct gateway *g, int *ret_fd, struct cordon_error **reterr)
{
	cleanup_buf struct buf bundle = { 0 };
	const char *own = gateway_authority(g);
	int r = own ? load_authorities(own, &bundle, reterr) : 0;

	if (r < 0 || !own)
		return r;
	return file_from_bytes("authorities", bundle.data, bundle.len, ret_fd, reterr);
}

int network_spare_new(const struct policy *p, struct network_spare **ret,
		      struct cordon_error **reterr)
{
	static const struct network_listener nobody;
	cleanup_network_spare struct network_spare *spare = mem_alloc(sizeof(*spare));

	if (!spare)
		return err_errno(reterr, ENOMEM, "open the gateway");
	spare->authorities = -1;
	int r = network_start(p, &nobody, &spare->gateway, reterr);
	if (r == 0)
		r = save_authorities(spare->gateway, &spare->authorities, reterr);
	if (r == 0)
		*ret = TAKE_PTR(spare);
	return r;
}

struct network_spare *network_spare_free(struct network_spare *spare)
{
	if (!spare)
		return NULL;
	gateway_stop(spare->gateway);
	close_fdp(&spare->authorities);
	free(spare);
	return NULL;
}

static int add_authorities(const char *own, struct launch *l, struct cordon_error **reterr)
{
	cleanup_buf struct buf bundle = { 0 };
	int r = load_authorities(own, &bundle, reterr);

	if (r < 0)
		return r;
	if (launch_file(l, BUNDLE_PATH, buf_text(&bundle), bundle.len, 0444) < 0 ||
	    launch_env(l, "SSL_CERT_FILE", BUNDLE_PATH) < 0)
		return err_errno(reterr, ENOMEM, "the authorities");
	return 0;
}

/* Everything but the authorities and the relay's socket: the same for all sessions of a policy. */
static int fill(const struct gateway *g, const struct policy *p, bool is_pod, struct launch *l,
		struct cordon_error **reterr)
{
	cleanup_strlist struct strlist env = { 0 };
	int r = gateway_add_environment(BUNDLE_PATH, &env, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; i < env.count; i++) {
		const char *eq = strchr(env.items[i], '=');
		cleanup_free char *name = str_ndup(env.items[i], (size_t)(eq - env.items[i]));

		/* In a pod every connection goes through the proxy, to loopback too. */
		if (is_pod && name && strcasecmp(name, "NO_PROXY") == 0)
			continue;
		if (!name || launch_env(l, name, eq + 1) < 0)
			return err_errno(reterr, ENOMEM, "the environment");
	}
	for (size_t i = 0; i < p->secret_count; i++) {
		const char *name = p->secrets[i].name;
		cleanup_free char *value = str_printf("cordon-secret-%s", name);

		if (!value || launch_env(l, name, value) < 0)
			return err_errno(reterr, ENOMEM, "the environment");
	}
	if (launch_file(l, "/etc/resolv.conf", GATEWAY_RESOLV_CONF, strlen(GATEWAY_RESOLV_CONF),
			0444) < 0)
		return err_errno(reterr, ENOMEM, "the resolver");
	l->has_gateway = true;
	l->relay_port_count = gateway_ports(g, &l->relay_ports);
	return 0;
}

int network_fill(const struct gateway *g, const struct policy *p, bool is_pod, struct launch *l,
		 struct cordon_error **reterr)
{
	int r = add_authorities(gateway_authority(g), l, reterr);

	l->relay_fd = gateway_relay_fd(g);
	return r < 0 ? r : fill(g, p, is_pod, l, reterr);
}

int network_fill_template(const struct network_spare *spare, const struct policy *p, bool is_pod,
			  struct launch *l, struct cordon_error **reterr)
{
	int r = add_authorities(NULL, l, reterr);

	l->relay_fd = -1;
	l->own_file = gateway_authority(spare->gateway) ? BUNDLE_PATH : NULL;
	return r < 0 ? r : fill(spare->gateway, p, is_pod, l, reterr);
}

int network_prepare(struct network *n, struct launch *l, struct cordon_error **reterr)
{
	if (!n)
		return 0;
	/* A further guest of a place needs the same, while others use the gateway. */
	pthread_mutex_lock(&n->lock);
	int r = n->gateway ? network_fill(n->gateway, &n->session->policy,
					  n->session->kind == GUEST_KIND_POD, l, reterr)
			   : err_set(reterr, CORDON_STATE, "the gateway has ended");
	pthread_mutex_unlock(&n->lock);
	return r;
}

int network_fork_fds(struct network *n, int *ret_relay, int *ret_authorities,
		     struct cordon_error **reterr)
{
	int r = n && n->authorities < 0 ? save_authorities(n->gateway, &n->authorities, reterr) : 0;

	if (r < 0)
		return r;
	*ret_relay = n ? gateway_relay_fd(n->gateway) : -1;
	*ret_authorities = n ? n->authorities : -1;
	return 0;
}

void network_launched(struct network *n)
{
	if (!n)
		return;
	gateway_close_relay(n->gateway);
	close_fdp(&n->authorities);
}

int network_fd(struct network *n)
{
	if (!n)
		return -1;
	pthread_mutex_lock(&n->lock);
	int fd = n->is_lost ? -1 : gateway_fd(n->gateway);
	pthread_mutex_unlock(&n->lock);
	return fd;
}

/* Handles the gateway's messages. Called with both locks held. */
static void dispatch(struct network *n)
{
	if (!n->gateway || gateway_dispatch(n->gateway, NULL) < 0) {
		n->is_lost = true;
		n->pending_count = 0; /* its waiting requests are gone too */
	}
	note_waiting(n);
}

bool network_is_lost(struct network *n)
{
	if (!n)
		return false;
	lock_both(n);
	dispatch(n);
	bool is_lost = n->is_lost;
	unlock_both(n);
	return is_lost;
}

void network_serve(struct network *n)
{
	if (!n)
		return;
	lock_both(n);
	dispatch(n);
	unlock_both(n);
}

/* A request that an earlier execution left waiting does not stop the clock of this one. */
void network_begin(struct network *n, struct network_turn *t)
{
	char id[32];

	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	snprintf(id, sizeof(id), "%" PRIu64, ++n->executions);
	if (!n->turns) {
		for (size_t i = 0; i < n->pending_count; i++)
			n->pending[i].is_of_now = false;
		n->waited_ns = n->waiting_since_ns = 0;
	}
	*t = (struct network_turn){ .waited_before_ns = waited_ns(n), .next = n->turns };
	n->turns = t;
	if (n->gateway)
		(void)gateway_begin_execution(n->gateway, id, NULL);
	pthread_mutex_unlock(&n->lock);
}

void network_end(struct network *n, struct network_turn *t, struct cordon_result *r)
{
	struct gateway_counters counters;

	if (!n)
		return;
	lock_both(n);
	if (n->gateway) /* first handles events from before */
		(void)gateway_count(n->gateway, &counters, NULL);
	for (struct network_turn **p = &n->turns; *p; p = &(*p)->next)
		if (*p == t) {
			*p = t->next;
			break;
		}
	unlock_both(n);
	if (r && json_array_size(t->denials) > 0)
		json_array_extend(result_array(&r->denials), t->denials);
	json_decref(t->denials);
	t->denials = NULL;
}

bool network_is_waiting(struct network *n)
{
	if (!n)
		return false;
	pthread_mutex_lock(&n->lock);
	bool waits = is_waiting(n);
	pthread_mutex_unlock(&n->lock);
	return waits;
}

uint64_t network_waited_ns(struct network *n, const struct network_turn *t)
{
	if (!n)
		return 0;
	pthread_mutex_lock(&n->lock);
	uint64_t ns = waited_ns(n) - t->waited_before_ns;
	pthread_mutex_unlock(&n->lock);
	return ns;
}

bool network_is_approval(const char *approval_id)
{
	return str_starts(approval_id, APPROVAL_PREFIX);
}

int network_resolve(struct network *n, const char *approval_id, bool allow, const char *reason,
		    struct cordon_error **reterr)
{
	size_t prefix = strlen(APPROVAL_PREFIX);

	if (!n || strlen(approval_id) < prefix + APPROVAL_KEY + 2 ||
	    random_equal(approval_id + prefix, n->key, APPROVAL_KEY) == 0)
		return err_set(reterr, CORDON_NOT_FOUND, "no such approval is pending: %s",
			       approval_id);
	uint64_t id = strtoull(approval_id + prefix + APPROVAL_KEY + 1, NULL, 10);
	pthread_mutex_lock(&n->lock);
	struct pending *p = find_pending(n, id);
	int r = n->gateway && p && !p->is_answered
			? gateway_answer(n->gateway, id, allow, reason, reterr)
			: err_set(reterr, CORDON_NOT_FOUND, "no such approval is pending: %s",
				  approval_id);
	if (r == 0)
		p->is_answered = true;
	note_waiting(n);
	pthread_mutex_unlock(&n->lock);
	return r;
}
