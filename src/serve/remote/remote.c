/* serve/remote/remote.c - see remote.h. */
#include "serve/remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/os.h"
#include "serve/http/problem.h"
#include "serve/remote/remote_methods.h"
#include "serve/rpc/execution_language.h"
#include "serve/server/activity.h"

enum { CONNECTIONS = 2048, PAUSE_NS = 50000000 }; /* CONNECTIONS: of one key */

struct remotes {
	int set_fd, end_fd; /* the idle connections; the end of the thread */
	pthread_t thread;
	atomic_bool is_draining;
	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t changed;
	struct remote *first;
	bool is_closing;
};

/* One connection. */
struct remote {
	struct remotes *all;
	struct tenant *tenant;
	struct httpd_link *link;
	int fd; /* a copy, so that it stays open while a thread of the client may use it */
	struct rpc *rpc;
	struct trace_context trace; /* of the request that it began with */
	struct remote *prev, *next;
};

/* ---- the list */

static bool enter(struct remote *r)
{
	struct remotes *all = r->all;
	unsigned count = 0;

	pthread_mutex_lock(&r->tenant->lock);
	r->tenant->remotes = all; /* who closes it finds its connections there */
	pthread_mutex_unlock(&r->tenant->lock);
	pthread_mutex_lock(&all->lock);
	for (const struct remote *other = all->first; other; other = other->next)
		count += other->tenant == r->tenant;
	bool fits = count < CONNECTIONS;
	if (fits) {
		r->next = all->first;
		if (r->next)
			r->next->prev = r;
		all->first = r;
	}
	pthread_mutex_unlock(&all->lock);
	return fits;
}

static void leave(struct remote *r)
{
	struct remotes *all = r->all;

	pthread_mutex_lock(&all->lock);
	if (r->prev)
		r->prev->next = r->next;
	else
		all->first = r->next;
	if (r->next)
		r->next->prev = r->prev;
	pthread_cond_broadcast(&all->changed);
	pthread_mutex_unlock(&all->lock);
	free(r);
}

/* ---- hooks of the client; see rpc.h */

static int permit(const struct rpc_method *m, json_t *params, void *arg,
		  struct cordon_error **reterr)
{
	struct remote *r = arg;

	if (!(m->flags & RPC_ENDS) && !tenant_may_ask(r->tenant))
		return err_set(reterr, CORDON_LIMIT,
			       "too many requests a second with this key: send them more slowly");
	if (r->all->is_draining && !(m->flags & RPC_ENDS) && (m->flags & RPC_SLOW))
		return err_set(reterr, CORDON_STATE,
			       "the server is stopping: try again when it runs again");
	int n = remote_methods_permit(m, params, r->tenant->is_admin, reterr);
	return n < 0 ? n : tenant_scope_workspace(r->tenant, params, reterr);
}

static int begin(const struct request *q, void **ret, void *arg, struct cordon_error **reterr)
{
	struct remote *r = arg;
	bool has_session = q->cs && q->cs->kind == CLIENT_SESSION_SESSION;
	const char *session = has_session ? q->cs->id : "";
	struct activity *a = NULL;
	const struct activity_options o = { .session = session,
					    .language = execution_language_find(&q->rpc->sessions,
										q->cs, q->params),
					    .link = &r->trace };
	int n = activity_begin(r->tenant, &o, &a, reterr);

	*ret = a;
	return n;
}

static void end(void *execution, const char *result, const struct cordon_error *e, void *arg)
{
	struct remote *r = arg;
	char kind[24];

	activity_end(r->tenant, execution, activity_outcome(result, e, kind, sizeof(kind)), result);
}

static void pause_briefly(void)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

/* If it cannot be watched, a thread goes on reading. */
static void parked(void *arg)
{
	struct remote *r = arg;

	if (os_watch_add(r->all->set_fd, r->fd, r) == 0)
		return;
	while (!rpc_wake(r->rpc))
		pause_briefly();
}

/* After -CORDON_TIMEOUT a thread still uses the descriptor and the client. Otherwise it is taken
 * from the list before it is closed: cut() must not meet another's of the same number. */
static void over(void *arg)
{
	struct remote *r = arg;
	cleanup_error struct cordon_error *e = NULL;
	bool is_free = rpc_finish(r->rpc, &e) != -CORDON_TIMEOUT;

	pthread_mutex_lock(&r->all->lock);
	int fd = TAKE_FD(r->fd);
	pthread_mutex_unlock(&r->all->lock);
	if (is_free)
		close(fd);
	httpd_link_close(r->link);
	leave(r);
}

/* ---- idle connections */

static void wake(struct remotes *all, struct remote *r)
{
	os_watch_remove(all->set_fd, r->fd);
	while (!rpc_wake(r->rpc))
		pause_briefly(); /* no threads at present; the others would get none either */
}

static void *watch(void *arg)
{
	struct remotes *all = arg;
	struct pollfd p[2] = { { .fd = all->set_fd, .events = POLLIN },
			       { .fd = all->end_fd, .events = POLLIN } };
	void *tag;

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[1].revents)
			return NULL;
		while (os_watch_next(all->set_fd, &tag))
			wake(all, tag);
	}
}

/* ---- beginning */

static bool begin_client(struct remote *r, int fd, const void *early, size_t len)
{
	const struct rpc_hooks hooks = { permit, begin, end, parked, over, r };
	const struct rpc *of = r->tenant->rpc;

	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	const struct rpc_options o = { .in_fd = copy,
				       .out_fd = copy,
				       .policy = r->tenant->policy,
				       .program = of->program,
				       .sessions = of->sessions.max,
				       .is_shared = of->is_shared,
				       .is_limited = of->is_limited,
				       .quota = &r->tenant->quota,
				       .hooks = &hooks };
	r->rpc = copy >= 0 ? rpc_new(&o) : NULL;
	bool good = r->rpc && linein_give(&r->rpc->in, early, len);
	pthread_mutex_lock(&r->all->lock);
	r->fd = good ? copy : -1;
	good = good && !r->all->is_closing;
	pthread_mutex_unlock(&r->all->lock);
	/* After the descriptor is known: from here on the end of the tenant ends it, too. */
	good = good && !tenant_is_closing(r->tenant);
	/* Bytes that were read already wake nobody. */
	if (good && (len == 0 || rpc_wake(r->rpc)))
		return true;
	pthread_mutex_lock(&r->all->lock);
	r->fd = -1;
	pthread_mutex_unlock(&r->all->lock);
	if (r->rpc)
		rpc_done(r->rpc);
	if (copy >= 0)
		close(copy);
	return false;
}

static void on_upgraded(struct httpd_link *link, int fd, const void *early, size_t len, void *arg)
{
	struct remote *r = arg;

	r->link = link;
	if (link && begin_client(r, fd, early, len)) {
		if (len == 0)
			parked(r);
		return;
	}
	if (link)
		httpd_link_close(link);
	leave(r);
}

static void answer_rpc(struct httpd_exchange *x, void *arg)
{
	struct remotes *all = arg;
	struct remote *r = NULL;

	if (!httpd_asks_upgrade(x, REMOTE_PROTOCOL)) {
		httpd_add_header(x, "Upgrade", REMOTE_PROTOCOL);
		problem_answer_as(x, 426, "invalid", "this path speaks another protocol",
				  "send Connection: Upgrade and Upgrade: " REMOTE_PROTOCOL
				  ", or use the other paths of /v1");
		return;
	}
	r = mem_alloc(sizeof(*r));
	if (!r) {
		problem_answer_as(x, 503, "nomem", "out of memory", "try again later");
		return;
	}
	*r = (struct remote){
		.all = all, .tenant = httpd_tenant(x), .fd = -1, .trace = *httpd_trace(x)
	};
	if (!enter(r)) {
		free(r);
		problem_answer_as(x, 429, "limit", "too many connections with this key",
				  "close some of them");
		return;
	}
	httpd_answer_upgrade(x, REMOTE_PROTOCOL, on_upgraded, r);
}

const struct httpd_route remote_routes[] = {
	{ .method = "GET", .path = "/v1/rpc", .right = HTTPD_KEY, .fn = answer_rpc },
	{ 0 },
};

/* ---- the server's */

int remotes_new(struct remotes **ret, struct cordon_error **reterr)
{
	struct remotes *all = mem_alloc(sizeof(*all));

	if (!all)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	pthread_mutex_init(&all->lock, NULL);
	condvar_init(&all->changed);
	all->set_fd = os_watch_open();
	all->end_fd = os_event_open();
	int problem = all->set_fd < 0 || all->end_fd < 0
			      ? EMFILE
			      : pthread_create(&all->thread, NULL, watch, all);
	if (problem) {
		close_fdp(&all->set_fd);
		close_fdp(&all->end_fd);
		free(all);
		return err_errno(reterr, problem, "watch connections");
	}
	*ret = all;
	return 0;
}

void remotes_drain(struct remotes *all)
{
	all->is_draining = true;
}

/* Called with the lock held. The thread that reads, or the next one, sees the end. */
static void cut(struct remotes *all, const struct tenant *t)
{
	for (struct remote *r = all->first; r; r = r->next)
		if (r->fd >= 0 && (!t || r->tenant == t))
			(void)shutdown(r->fd, SHUT_RDWR);
}

void remotes_end(struct remotes *all, const struct tenant *t)
{
	pthread_mutex_lock(&all->lock);
	cut(all, t);
	pthread_mutex_unlock(&all->lock);
}

void remotes_close(struct remotes *all)
{
	pthread_mutex_lock(&all->lock);
	all->is_closing = true;
	cut(all, NULL);
	while (all->first)
		pthread_cond_wait(&all->changed, &all->lock);
	pthread_mutex_unlock(&all->lock);
}

struct remotes *remotes_free(struct remotes *all)
{
	if (!all)
		return NULL;
	remotes_close(all);
	(void)os_event_set(all->end_fd);
	(void)pthread_join(all->thread, NULL);
	close(all->set_fd);
	close(all->end_fd);
	pthread_cond_destroy(&all->changed);
	pthread_mutex_destroy(&all->lock);
	free(all);
	return NULL;
}
