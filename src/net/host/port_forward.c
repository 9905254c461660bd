/* net/host/port_forward.c - see port_forward.h. */
#include "net/host/port_forward.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os.h"
#include "base/str.h"
#include "net/host/port_link.h"
#include "net/host/port_listener.h"

/* PAUSE_MS: when the host has no descriptors left. ACCEPTS: of one port at a time. */
enum { PAUSE_MS = 100, ACCEPTS = 16, POLLED = 1 + PORT_FORWARD_PORTS + 2 * PORT_FORWARD_LINKS };

struct port {
	unsigned number;
	struct port_listener listener;
	int polled;
};

struct port_forward {
	struct port_forward_options options;
	pthread_t thread;
	int wake;             /* an event: something was changed */
	pthread_mutex_t lock; /* the thread holds it except in poll(2) */
	bool is_over;
	uint64_t changes; /* counted, because the thread must not use what it polled then */
	struct port ports[PORT_FORWARD_PORTS];
	size_t port_count;
	struct port_link *links;
	size_t link_count;
	deadline_ns pause;
	char *directory; /* of the Unix sockets; NULL: none yet */
	struct pollfd polled[POLLED];
};

static int poll_add(struct port_forward *f, int at, int fd, short events)
{
	f->polled[at] = (struct pollfd){ .fd = events ? fd : -1, .events = events };
	return at;
}

/* Fills `polled`; returns how many there are. */
static int list(struct port_forward *f, deadline_ns *ret_deadline)
{
	bool accepts = f->link_count < PORT_FORWARD_LINKS && !f->pause;
	int n = poll_add(f, 0, f->wake, POLLIN) + 1;

	*ret_deadline = f->pause;
	for (size_t i = 0; i < f->port_count; i++, n++)
		f->ports[i].polled = poll_add(f, n, f->ports[i].listener.fd, accepts ? POLLIN : 0);
	for (struct port_link *l = f->links; l; l = l->next, n += 2) {
		l->polled[0] = poll_add(f, n, l->host_fd, port_link_host_events(l));
		l->polled[1] = poll_add(f, n + 1, l->guest_fd, port_link_guest_events(l));
		if (l->deadline && (!*ret_deadline || l->deadline < *ret_deadline))
			*ret_deadline = l->deadline;
	}
	return n;
}

static void step_links(struct port_forward *f)
{
	for (struct port_link **at = &f->links; *at;) {
		struct port_link *l = *at;

		port_link_step(l, f->polled[l->polled[0]].revents, f->polled[l->polled[1]].revents);
		if (l->state != LINK_OVER) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		port_link_free(l);
		f->link_count--;
	}
}

static void begin_link(struct port_forward *f, unsigned port, int fd)
{
	int reply;

	if (f->options.ask(f->options.arg, &reply) < 0) {
		close(fd);
		return;
	}
	struct port_link *l = port_link_new(port, fd, reply);
	if (!l)
		return;
	l->next = f->links;
	f->links = l;
	f->link_count++;
}

static void accept_some(struct port_forward *f, const struct port *p)
{
	for (int i = 0; i < ACCEPTS && f->link_count < PORT_FORWARD_LINKS; i++) {
		int fd = accept4(p->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				f->pause = deadline_after_ms(PAUSE_MS);
			return;
		}
		begin_link(f, p->number, fd);
	}
}

static void serve(struct port_forward *f)
{
	step_links(f);
	if (f->pause && deadline_is_over(f->pause))
		f->pause = 0;
	for (size_t i = 0; i < f->port_count; i++)
		if (f->polled[f->ports[i].polled].revents)
			accept_some(f, &f->ports[i]);
}

static void *run(void *arg)
{
	struct port_forward *f = arg;

	pthread_mutex_lock(&f->lock);
	while (!f->is_over) {
		uint64_t before = f->changes;
		deadline_ns deadline;
		int n = list(f, &deadline);

		pthread_mutex_unlock(&f->lock);
		int r = poll(f->polled, (nfds_t)n, deadline_poll_ms(deadline));
		pthread_mutex_lock(&f->lock);
		if (f->polled[0].revents)
			os_event_clear(f->wake);
		if (r >= 0 && before == f->changes)
			serve(f);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* Signals are blocked, so that they go to the host's own threads. */
static int start_thread(struct port_forward *f)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int e = pthread_create(&f->thread, NULL, run, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return e;
}

int port_forward_new(const struct port_forward_options *o, struct port_forward **ret,
		     struct cordon_error **reterr)
{
	struct port_forward *f = mem_alloc(sizeof(*f));

	if (!f)
		return err_errno(reterr, ENOMEM, "expose a port");
	f->options = *o;
	pthread_mutex_init(&f->lock, NULL);
	f->wake = os_event_open();
	int e = f->wake < 0 ? -f->wake : start_thread(f);
	if (e != 0) {
		close_fdp(&f->wake);
		pthread_mutex_destroy(&f->lock);
		free(f);
		return err_errno(reterr, e, "expose a port");
	}
	*ret = f;
	return 0;
}

/* The lock is held: the thread polls anew. */
static void note_change(struct port_forward *f)
{
	f->changes++;
	(void)os_event_set(f->wake);
}

/* port 0: of all. */
static void end_links(struct port_forward *f, unsigned port)
{
	for (struct port_link **at = &f->links; *at;) {
		struct port_link *l = *at;

		if (port && l->port != port) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		port_link_free(l);
		f->link_count--;
	}
}

struct port_forward *port_forward_free(struct port_forward *f)
{
	if (!f)
		return NULL;
	pthread_mutex_lock(&f->lock);
	f->is_over = true;
	note_change(f);
	pthread_mutex_unlock(&f->lock);
	(void)pthread_join(f->thread, NULL);
	/* What a server said last, before it ended, is still passed on. */
	for (struct port_link *l = f->links; l; l = l->next)
		if (l->state == LINK_OPEN)
			port_link_step(l, POLLIN, POLLIN);
	end_links(f, 0);
	for (size_t i = 0; i < f->port_count; i++)
		port_listener_close(&f->ports[i].listener);
	if (f->directory)
		(void)rmdir(f->directory);
	free(f->directory);
	close_fdp(&f->wake);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return NULL;
}

static struct port *find(struct port_forward *f, unsigned number)
{
	for (size_t i = 0; i < f->port_count; i++)
		if (f->ports[i].number == number)
			return &f->ports[i];
	return NULL;
}

static bool fits(const struct port_listener *l, const struct port_forward_target *t)
{
	char address[32];

	if (t->path)
		return l->is_path && str_eq(l->address, t->path);
	snprintf(address, sizeof(address), "127.0.0.1:%d", t->host_port);
	return t->host_port > 0 ? str_eq(l->address, address) : l->is_path == (t->host_port == 0);
}

static int add(struct port_forward *f, const struct port_forward_target *t, char **ret_address,
	       struct cordon_error **reterr)
{
	struct port *p = find(f, t->port);
	int r = p ? 1 : 0;

	if (p && !fits(&p->listener, t))
		return err_set(reterr, CORDON_STATE, "port %u is exposed already, as %s", t->port,
			       p->listener.address);
	if (!p && f->port_count == PORT_FORWARD_PORTS)
		return err_set(reterr, CORDON_LIMIT, "%d ports are exposed already",
			       PORT_FORWARD_PORTS);
	if (!p) {
		struct port_listener_options o = { .port = t->port,
						   .host_port = t->host_port,
						   .path = t->path,
						   .directory = &f->directory };

		p = &f->ports[f->port_count];
		p->number = t->port;
		r = port_listener_open(&o, &p->listener, reterr);
		f->port_count += r == 0;
	}
	if (r < 0)
		return r;
	char *address = str_dup(p->listener.address);
	if (!address)
		return err_errno(reterr, ENOMEM, "expose a port");
	*ret_address = address;
	return r;
}

int port_forward_add(struct port_forward *f, const struct port_forward_target *t,
		     char **ret_address, struct cordon_error **reterr)
{
	pthread_mutex_lock(&f->lock);
	int r = add(f, t, ret_address, reterr);
	note_change(f);
	pthread_mutex_unlock(&f->lock);
	return r;
}

bool port_forward_has(struct port_forward *f, unsigned port)
{
	pthread_mutex_lock(&f->lock);
	bool has = find(f, port) != NULL;
	pthread_mutex_unlock(&f->lock);
	return has;
}

int port_forward_remove(struct port_forward *f, unsigned port, struct cordon_error **reterr)
{
	int r = 0;

	pthread_mutex_lock(&f->lock);
	struct port *p = find(f, port);
	if (p) {
		port_listener_close(&p->listener);
		end_links(f, port);
		*p = f->ports[--f->port_count];
		note_change(f);
	} else {
		r = err_set(reterr, CORDON_NOT_FOUND, "port %u is not exposed", port);
	}
	pthread_mutex_unlock(&f->lock);
	return r;
}

json_t *port_forward_list(struct port_forward *f)
{
	json_t *a = json_array();

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->port_count; i++) {
		const struct port *p = &f->ports[i];
		int links = 0;

		for (const struct port_link *l = f->links; l; l = l->next)
			links += l->port == p->number;
		json_array_append_new(a, json_pack("{s:i, s:s, s:i}", "port", (int)p->number,
						   "address", p->listener.address, "connections",
						   links));
	}
	pthread_mutex_unlock(&f->lock);
	return a;
}
