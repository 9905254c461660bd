/* serve/ports/port_tunnels.c - see port_tunnels.h. */
#include "serve/ports/port_tunnels.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/os.h"
#include "net/host/port_link.h"

struct tunnel {
	struct port_tunnels *all;
	const void *owner;
	int guest_fd; /* until the link has it */
	char *early;
	size_t len;
	struct httpd_link *client;
	struct port_link *link; /* NULL: the connection has not left HTTP yet */
	struct tunnel *next;
};

struct port_tunnels {
	struct workers *later;
	int wake; /* an event: something was changed */
	pthread_t thread;
	pthread_mutex_t lock; /* guards the fields below; the thread holds it except in poll(2) */
	pthread_cond_t changed;
	struct tunnel *first;
	unsigned count, ending; /* ending: connections that a worker closes */
	bool is_closing, is_over;
	struct pollfd polled[1 + 2 * PORT_TUNNELS_MAX];
};

struct ending {
	struct port_tunnels *all;
	struct httpd_link *client;
};

/* ---- the end of one */

/* With TLS this waits until the last bytes were sent. */
static void close_client(void *arg)
{
	struct ending *e = arg;
	struct port_tunnels *all = e->all;

	httpd_link_close(e->client);
	free(e);
	pthread_mutex_lock(&all->lock);
	all->ending--;
	pthread_cond_broadcast(&all->changed);
	pthread_mutex_unlock(&all->lock);
}

/* Called with the lock held. */
static void end_client(struct port_tunnels *all, struct httpd_link *client)
{
	struct ending *e = mem_alloc(sizeof(*e));

	if (e) {
		*e = (struct ending){ all, client };
		all->ending++;
		if (workers_run(all->later, close_client, e))
			return;
		all->ending--;
		free(e);
	}
	httpd_link_close(client);
}

/* Called with the lock held. */
static void remove_tunnel(struct port_tunnels *all, struct tunnel *t)
{
	for (struct tunnel **at = &all->first; *at; at = &(*at)->next)
		if (*at == t) {
			*at = t->next;
			break;
		}
	all->count--;
	port_link_free(t->link);
	close_fdp(&t->guest_fd);
	if (t->client)
		end_client(all, t->client);
	free(t->early);
	free(t);
	pthread_cond_broadcast(&all->changed);
}

/* ---- the thread */

static short revents(const struct port_tunnels *all, int at, int fd)
{
	return all->polled[at].fd == fd ? all->polled[at].revents : 0;
}

static void poll_add(struct port_tunnels *all, int at, int fd, short events)
{
	all->polled[at] = (struct pollfd){ .fd = events ? fd : -1, .events = events };
}

static int list(struct port_tunnels *all, deadline_ns *ret_deadline)
{
	int n = 1;

	*ret_deadline = 0;
	poll_add(all, 0, all->wake, POLLIN);
	for (struct tunnel *t = all->first; t; t = t->next) {
		struct port_link *l = t->link;

		if (!l)
			continue;
		l->polled[0] = n++;
		l->polled[1] = n++;
		poll_add(all, l->polled[0], l->host_fd, port_link_host_events(l));
		poll_add(all, l->polled[1], l->guest_fd, port_link_guest_events(l));
		if (l->deadline && (!*ret_deadline || l->deadline < *ret_deadline))
			*ret_deadline = l->deadline;
	}
	return n;
}

/* A tunnel that was added meanwhile was not polled: polled[0] is 0. */
static void step(struct port_tunnels *all)
{
	for (struct tunnel *t = all->first, *next; t; t = next) {
		struct port_link *l = t->link;

		next = t->next;
		if (!l)
			continue;
		if (l->polled[0])
			port_link_step(l, revents(all, l->polled[0], l->host_fd),
				       revents(all, l->polled[1], l->guest_fd));
		if (l->state == LINK_OVER || all->is_closing)
			remove_tunnel(all, t);
	}
}

static void *run(void *arg)
{
	struct port_tunnels *all = arg;

	pthread_mutex_lock(&all->lock);
	while (!all->is_over) {
		deadline_ns deadline;
		int n = list(all, &deadline);

		pthread_mutex_unlock(&all->lock);
		int r = poll(all->polled, (nfds_t)n, deadline_poll_ms(deadline));
		pthread_mutex_lock(&all->lock);
		if (all->polled[0].revents)
			os_event_clear(all->wake);
		if (r >= 0)
			step(all);
	}
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* ---- the beginning of one */

/* Called with the lock held. Early bytes were read already, so nothing would report them: they are
 * copied into the link, whose events then ask for room to write. */
static bool join(struct tunnel *t, int fd, const void *early, size_t len)
{
	const struct port_link_early e = {
		.up = early, .up_len = len, .down = t->early, .down_len = t->len
	};
	int copy = t->all->is_closing ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return false;
	t->link = port_link_join(copy, t->guest_fd, &e);
	t->guest_fd = -1;
	return t->link != NULL;
}

static void on_upgraded(struct httpd_link *client, int fd, const void *early, size_t len, void *arg)
{
	struct tunnel *t = arg;
	struct port_tunnels *all = t->all;

	pthread_mutex_lock(&all->lock);
	t->client = client;
	if (!client || !join(t, fd, early, len))
		remove_tunnel(all, t);
	(void)os_event_set(all->wake);
	pthread_mutex_unlock(&all->lock);
}

/* Called with the lock held. */
static bool fits(const struct port_tunnels *all, const void *owner)
{
	unsigned own = 0;

	for (const struct tunnel *t = all->first; t; t = t->next)
		own += t->owner == owner;
	return !all->is_closing && all->count < PORT_TUNNELS_MAX && own < PORT_TUNNELS_OWN;
}

static struct tunnel *tunnel_new(struct port_tunnels *all, const struct port_tunnel_options *o)
{
	struct tunnel *t = mem_alloc(sizeof(*t));

	if (t)
		*t = (struct tunnel){
			.all = all, .owner = o->owner, .guest_fd = o->guest_fd, .len = o->len
		};
	if (t && o->len > 0 && !(t->early = mem_alloc(o->len))) {
		free(t);
		return NULL;
	}
	if (t && o->len > 0)
		memcpy(t->early, o->early, o->len);
	return t;
}

bool port_tunnels_begin(struct port_tunnels *all, struct httpd_exchange *x,
			const struct port_tunnel_options *o)
{
	struct tunnel *t = tunnel_new(all, o);

	pthread_mutex_lock(&all->lock);
	bool good = t && fits(all, o->owner);
	if (good) {
		t->next = all->first;
		all->first = t;
		all->count++;
	}
	pthread_mutex_unlock(&all->lock);
	if (good) {
		httpd_answer_upgrade(x, "websocket", on_upgraded, t);
		return true;
	}
	close(o->guest_fd);
	if (t)
		free(t->early);
	free(t);
	return false;
}

/* ---- the server's */

int port_tunnels_new(struct workers *later, struct port_tunnels **ret, struct cordon_error **reterr)
{
	struct port_tunnels *all = mem_alloc(sizeof(*all));

	if (!all)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	all->later = later;
	pthread_mutex_init(&all->lock, NULL);
	condvar_init(&all->changed);
	all->wake = os_event_open();
	int problem = all->wake < 0 ? EMFILE : pthread_create(&all->thread, NULL, run, all);
	if (problem) {
		close_fdp(&all->wake);
		free(all);
		return err_errno(reterr, problem, "watch the ports of sandboxes");
	}
	*ret = all;
	return 0;
}

void port_tunnels_close(struct port_tunnels *all)
{
	pthread_mutex_lock(&all->lock);
	all->is_closing = true;
	(void)os_event_set(all->wake);
	while (all->first || all->ending > 0)
		pthread_cond_wait(&all->changed, &all->lock);
	pthread_mutex_unlock(&all->lock);
}

struct port_tunnels *port_tunnels_free(struct port_tunnels *all)
{
	if (!all)
		return NULL;
	port_tunnels_close(all);
	pthread_mutex_lock(&all->lock);
	all->is_over = true;
	(void)os_event_set(all->wake);
	pthread_mutex_unlock(&all->lock);
	(void)pthread_join(all->thread, NULL);
	close(all->wake);
	pthread_cond_destroy(&all->changed);
	pthread_mutex_destroy(&all->lock);
	free(all);
	return NULL;
}
