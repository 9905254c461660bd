/* net/hub.c - the gateway's inside: listeners in the guest's namespace, connections, budgets. */
#include "net/hub.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/conn.h"
#include "net/dns.h"
#include "wall/relay.h"

enum { ACCEPT_BATCH = 16 };

bool hub_spend(struct hub *e, uint64_t bytes)
{
	e->total_bytes += bytes;
	return e->total_bytes <= e->config.total_bytes;
}

bool hub_must_inspect(const struct hub *e, const struct host *h, bool by_rule)
{
	return by_rule || secret_list_has_host(&e->config.secrets, h);
}

int hub_open_tls(struct hub *e, struct cordon_error **reterr)
{
	return e->tls ? 0 : tls_store_new(e->config.ca_file, &e->tls, reterr);
}

static void answer_datagram(struct hub *e, int fd)
{
	uint8_t query[DNS_MAX + 1], answer[DNS_MAX];
	struct sockaddr_storage from;
	socklen_t from_len = sizeof(from);

	ssize_t n = recvfrom(fd, query, sizeof(query), MSG_DONTWAIT, (struct sockaddr *)&from,
			     &from_len);
	if (n <= 0)
		return;
	size_t len = intake_answer_dns(e, query, (size_t)n, answer);
	if (len > 0)
		(void)sendto(fd, answer, len, MSG_DONTWAIT, (struct sockaddr *)&from, from_len);
}

static void on_listener(struct loop *l, int fd, uint32_t events, void *arg)
{
	struct listener *listener = arg;
	struct hub *e = listener->hub;

	(void)l, (void)events;
	if (listener->front == FRONT_DNS_UDP) {
		answer_datagram(e, fd);
		hub_balance(e);
		return;
	}
	for (int i = 0; i < ACCEPT_BATCH && listener->source; i++) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client < 0)
			return;
		(void)conn_new(e, client, listener->front, NULL);
		hub_balance(e);
	}
}

static bool is_for_names(const struct listener *l)
{
	return l->front == FRONT_DNS || l->front == FRONT_DNS_UDP;
}

static void listen_or_not(struct listener *l, bool want)
{
	if (!want)
		l->source = loop_source_remove(l->source);
	else if (!l->source)
		(void)loop_add_fd(l->hub->loop, l->fd, EPOLLIN, on_listener, l, &l->source, NULL);
}

/* Those who come when all places are taken wait in the kernel's queue; names are answered still. */
void hub_balance(struct hub *e)
{
	bool is_busy = control_is_busy(&e->control);
	bool want = e->conn_count < e->config.connections && !is_busy;
	bool want_names = e->dns_count < HUB_DNS_MAX && !is_busy;

	if (want == e->is_listening && want_names == e->is_naming)
		return;
	e->is_listening = want;
	e->is_naming = want_names;
	for (size_t i = 0; i < e->listener_count; i++)
		listen_or_not(&e->listeners[i], is_for_names(&e->listeners[i]) ? want_names : want);
}

/* What the guest's side sends is a socket, but is it one that we want? */
static bool classify(int fd, enum hub_front *ret)
{
	struct sockaddr_storage sa;
	struct address a;
	uint16_t port;
	int domain = 0, type = 0, listening = 0;
	socklen_t len = sizeof(int), sa_len = sizeof(sa);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) < 0 ||
	    (domain != AF_INET && domain != AF_INET6) ||
	    getsockname(fd, (struct sockaddr *)&sa, &sa_len) < 0 ||
	    !address_from_sockaddr((struct sockaddr *)&sa, &a, &port))
		return false;
	if (type == SOCK_DGRAM) {
		*ret = FRONT_DNS_UDP;
		return port == 53;
	}
	*ret = port == RELAY_PROXY_PORT ? FRONT_PROXY : port == 53 ? FRONT_DNS : FRONT_DIRECT;
	return type == SOCK_STREAM && listening;
}

static void add_listener(struct hub *e, int fd)
{
	enum hub_front front;

	if (e->listener_count == HUB_LISTENERS || !classify(fd, &front) ||
	    file_set_nonblock(fd, true) < 0) {
		(void)close(fd);
		return;
	}
	struct listener *l = &e->listeners[e->listener_count++];
	*l = (struct listener){ .hub = e, .fd = fd, .front = front };
	listen_or_not(l, is_for_names(l) ? e->is_naming : e->is_listening);
}

static void tell_relay(struct hub *e, const struct relay_hello *hello)
{
	control_send(&e->control,
		     json_pack("{s:s, s:i, s:b, s:b, s:i}", "type", "relay", "listeners",
			       (int)e->listener_count, "direct", hello->has_direct, "ipv6",
			       hello->has_v6, "errno", (int)hello->os_errno));
}

static void on_relay(struct loop *loop, int fd, uint32_t events, void *arg)
{
	struct hub *e = arg;
	struct relay_hello hello = { 0 };
	union {
		char bytes[CMSG_SPACE(RELAY_SOCKETS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { &hello, sizeof(hello) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };

	(void)loop, (void)events;
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	for (struct cmsghdr *m = CMSG_FIRSTHDR(&msg); m; m = CMSG_NXTHDR(&msg, m)) {
		if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int got;
			memcpy(&got, CMSG_DATA(m) + i * sizeof(int), sizeof(int));
			add_listener(e, got);
		}
	}
	if (n != (ssize_t)sizeof(hello) || hello.magic != RELAY_MAGIC) {
		/* The other end is gone, or is not the relay. */
		e->relay = loop_source_remove(e->relay);
		return;
	}
	e->has_v6 = hello.has_v6;
	tell_relay(e, &hello);
}

static void take_answer(struct hub *e, const json_t *m)
{
	uint64_t id = 0;
	bool allow = false;
	const char *reason = NULL;

	if (json_get_uint(m, "", "id", &id, NULL) < 0 || id == 0 ||
	    json_get_bool(m, "", "allow", &allow, NULL) < 0 ||
	    json_get_string(m, "", "reason", &reason, NULL) < 0)
		return;
	approval_answer(e, id, allow, reason);
}

static void on_message(const json_t *m, void *arg)
{
	struct hub *e = arg;
	const char *type = NULL, *id = NULL;

	if (json_get_string(m, "", "type", &type, NULL) < 0 || !type)
		return;
	if (str_eq(type, "answer")) {
		take_answer(e, m);
	} else if (str_eq(type, "execution")) {
		(void)json_get_string(m, "", "id", &id, NULL);
		(void)str_copy(e->execution, sizeof(e->execution), id ? id : "");
		e->total_bytes = e->denial_events = 0;
	} else if (str_eq(type, "counters")) {
		control_send(&e->control,
			     json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "type", "counters",
				       "allowed", (json_int_t)e->allowed, "denied",
				       (json_int_t)e->denied, "bytes_out", (json_int_t)e->bytes_out,
				       "bytes_in", (json_int_t)e->bytes_in, "connections",
				       (json_int_t)e->conn_count));
	} else if (str_eq(type, "stop")) {
		loop_stop(e->loop);
	}
}

static void on_tick(struct loop *l, void *arg)
{
	struct hub *e = arg;

	for (struct conn *c = e->conns, *next; c; c = next) {
		next = c->next;
		conn_tick(c);
	}
	hub_balance(e);
	(void)loop_source_remove(e->tick);
	(void)loop_add_timer(l, deadline_after_ms(HUB_TICK_MS), on_tick, e, &e->tick, NULL);
}

void hub_tell_ready(struct hub *e, const struct confine_result *confined)
{
	uint16_t ports[RELAY_PORTS_MAX];
	size_t count = ruleset_ports(e->config.rules, ports, RELAY_PORTS_MAX);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(list, json_integer(ports[i]));
	control_send(&e->control, json_pack("{s:s, s:i, s:b, s:s?, s:o, s:b, s:b}", "type", "ready",
					    "version", 1, "tls", e->tls != NULL, "authority",
					    e->tls ? tls_store_authority(e->tls) : NULL, "ports",
					    list, "landlock", confined->has_landlock, "seccomp",
					    confined->has_seccomp));
}

/* What comes from a guest's side, or goes to the host program: the same descriptor. */
static int set_up_relay(struct hub *e, struct cordon_error **reterr)
{
	if (!e->config.fetch)
		return loop_add_fd(e->loop, e->relay_fd, EPOLLIN, on_relay, e, &e->relay, reterr);
	int fd = e->relay_fd;
	e->relay_fd = -1;
	return errand_new(e, e->config.fetch, fd, &e->errand, reterr);
}

static int set_up(struct hub *e, int control_fd, struct cordon_error **reterr)
{
	int r = control_open(&e->control, e->loop, control_fd, on_message, e, reterr);
	if (r == 0)
		r = resolver_new(e->loop, &e->resolver, reterr);
	if (r == 0)
		r = synth_new(&e->synth, reterr);
	for (size_t i = 0; r == 0 && i < e->config.pin_count; i++)
		r = resolver_pin(e->resolver, &e->config.pins[i].name, &e->config.pins[i].address,
				 reterr);
	if (r == 0 &&
	    (e->config.secrets.count > 0 || ruleset_has_limits(e->config.rules) || e->config.fetch))
		r = hub_open_tls(e, reterr);
	if (r == 0)
		r = set_up_relay(e, reterr);
	if (r == 0)
		r = loop_add_timer(e->loop, deadline_after_ms(HUB_TICK_MS), on_tick, e, &e->tick,
				   reterr);
	return r;
}

int hub_new(struct loop *l, struct config *config, int control_fd, int relay_fd, struct hub **ret,
	    struct cordon_error **reterr)
{
	struct hub *e = mem_alloc(sizeof(*e));
	if (!e)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	e->loop = l;
	e->config = *config;
	*config = (struct config){ 0 };
	e->control.fd = control_fd;
	e->relay_fd = relay_fd;
	int r = set_up(e, control_fd, reterr);
	if (r < 0) {
		hub_free(e);
		return r;
	}
	hub_balance(e);
	*ret = e;
	return 0;
}

struct hub *hub_free(struct hub *e)
{
	if (!e)
		return NULL;
	while (e->conns) {
		conn_abort(e->conns);
		conn_run(e->conns);
	}
	for (size_t i = 0; i < e->listener_count; i++) {
		(void)loop_source_remove(e->listeners[i].source);
		(void)close(e->listeners[i].fd);
	}
	(void)loop_source_remove(e->tick);
	(void)loop_source_remove(e->relay);
	if (e->relay_fd >= 0)
		(void)close(e->relay_fd);
	errand_free(e->errand);
	approvals_done(&e->approvals);
	bulk_pool_done(&e->bulks);
	resolver_free(e->resolver);
	control_close(&e->control);
	synth_free(e->synth);
	tls_store_free(e->tls);
	config_done(&e->config);
	free(e);
	return NULL;
}
