/* net/gateway/hub.c - see hub.h. */
#include "net/gateway/hub.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/str.h"
#include "net/gateway/conn.h"
#include "net/gateway/dns.h"
#include "net/gateway/refusals.h"
#include "wall/linux/relay.h"

enum { ACCEPT_BATCH = 16 };

bool hub_spend(struct hub *hub, uint64_t bytes)
{
	hub->total_bytes += bytes;
	return hub->total_bytes <= hub->config.total_bytes;
}

bool hub_must_inspect(const struct hub *hub, const struct host *h, bool by_rule)
{
	return by_rule || secret_list_has_host(&hub->config.secrets, h);
}

int hub_open_tls(struct hub *hub, struct cordon_error **reterr)
{
	return hub->tls ? 0 : tls_store_new(hub->config.ca_file, &hub->tls, reterr);
}

static void answer_datagram(struct hub *hub, int fd)
{
	uint8_t query[DNS_MAX + 1], answer[DNS_MAX];
	struct sockaddr_storage from;
	socklen_t from_len = sizeof(from);

	ssize_t n = recvfrom(fd, query, sizeof(query), MSG_DONTWAIT, (struct sockaddr *)&from,
			     &from_len);
	if (n <= 0)
		return;
	size_t len = intake_answer_dns(hub, query, (size_t)n, answer);
	if (len > 0)
		(void)sendto(fd, answer, len, MSG_DONTWAIT, (struct sockaddr *)&from, from_len);
}

static void on_listener(struct loop *l, int fd, uint32_t events, void *arg)
{
	struct listener *listener = arg;
	struct hub *hub = listener->hub;

	(void)l, (void)events;
	if (listener->front == FRONT_DNS_UDP) {
		answer_datagram(hub, fd);
		hub_balance(hub);
		return;
	}
	for (int i = 0; i < ACCEPT_BATCH && listener->source; i++) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client < 0)
			return;
		(void)conn_new(hub, client, listener->front, NULL);
		hub_balance(hub);
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
		(void)loop_add_fd(l->hub->loop, l->fd, LOOP_IN, on_listener, l, &l->source, NULL);
}

/* Connections beyond the limit wait in the kernel's queue. DNS queries are still answered. */
void hub_balance(struct hub *hub)
{
	bool is_busy = control_is_busy(&hub->control);
	bool want = hub->conn_count < hub->config.connections && !is_busy;
	bool want_names = hub->dns_count < HUB_DNS_MAX && !is_busy;

	if (want == hub->is_listening && want_names == hub->is_naming)
		return;
	hub->is_listening = want;
	hub->is_naming = want_names;
	for (size_t i = 0; i < hub->listener_count; i++)
		listen_or_not(&hub->listeners[i],
			      is_for_names(&hub->listeners[i]) ? want_names : want);
}

/* Recognises a listener that the guest's side sent. False: not one of ours. */
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
	if (type == SOCK_RAW) {
		*ret = FRONT_REFUSALS;
		return true;
	}
	if (type == SOCK_DGRAM) {
		*ret = FRONT_DNS_UDP;
		return port == 53;
	}
	*ret = port == RELAY_PROXY_PORT ? FRONT_PROXY : port == 53 ? FRONT_DNS : FRONT_DIRECT;
	return type == SOCK_STREAM && listening;
}

static void keep_refusals(struct hub *hub, int fd)
{
	int domain = AF_INET;
	socklen_t len = sizeof(domain);

	(void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	int *place = &hub->refusal_fds[domain == AF_INET6];
	close_fdp(place);
	*place = fd;
}

static void add_listener(struct hub *hub, int fd)
{
	enum hub_front front;

	if (hub->listener_count == HUB_LISTENERS || !classify(fd, &front) ||
	    file_set_nonblock(fd, true) < 0) {
		(void)close(fd);
		return;
	}
	if (front == FRONT_REFUSALS) {
		keep_refusals(hub, fd);
		return;
	}
	struct listener *l = &hub->listeners[hub->listener_count++];
	*l = (struct listener){ .hub = hub, .fd = fd, .front = front };
	listen_or_not(l, is_for_names(l) ? hub->is_naming : hub->is_listening);
}

static void tell_relay(struct hub *hub, const struct relay_hello *hello)
{
	control_send(&hub->control,
		     json_pack("{s:s, s:i, s:b, s:b, s:i}", "type", "relay", "listeners",
			       (int)hub->listener_count, "direct", hello->has_direct, "ipv6",
			       hello->has_v6, "errno", (int)hello->os_errno));
}

static void on_relay(struct loop *loop, int fd, uint32_t events, void *arg)
{
	struct hub *hub = arg;
	struct relay_hello hello = { 0 };
	int fds[RELAY_SOCKETS_MAX];
	size_t count;

	(void)loop, (void)events;
	ssize_t n = os_fds_receive(fd, &hello, sizeof(hello), fds, RELAY_SOCKETS_MAX, &count);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	for (size_t i = 0; i < count; i++)
		add_listener(hub, fds[i]);
	if (n != (ssize_t)sizeof(hello) || hello.magic != RELAY_MAGIC) {
		/* The peer closed, or is not the relay. */
		hub->relay = loop_source_remove(hub->relay);
		return;
	}
	hub->has_v6 = hello.has_v6;
	tell_relay(hub, &hello);
}

static void take_answer(struct hub *hub, const json_t *m)
{
	uint64_t id = 0;
	bool allow = false;
	const char *reason = NULL;

	if (json_get_uint(m, "", "id", &id, NULL) < 0 || id == 0 ||
	    json_get_bool(m, "", "allow", &allow, NULL) < 0 ||
	    json_get_string(m, "", "reason", &reason, NULL) < 0)
		return;
	approval_answer(hub, id, allow, reason);
}

static void on_message(const json_t *m, void *arg)
{
	struct hub *hub = arg;
	const char *type = NULL, *id = NULL;

	if (json_get_string(m, "", "type", &type, NULL) < 0 || !type)
		return;
	if (str_eq(type, "answer")) {
		take_answer(hub, m);
	} else if (str_eq(type, "execution")) {
		refusals_drop(hub);
		(void)json_get_string(m, "", "id", &id, NULL);
		(void)str_copy(hub->execution, sizeof(hub->execution), id ? id : "");
		hub->total_bytes = hub->denial_events = 0;
	} else if (str_eq(type, "counters")) {
		refusals_tell(hub);
		control_send(&hub->control,
			     json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "type", "counters",
				       "allowed", (json_int_t)hub->allowed, "denied",
				       (json_int_t)hub->denied, "bytes_out",
				       (json_int_t)hub->bytes_out, "bytes_in",
				       (json_int_t)hub->bytes_in, "connections",
				       (json_int_t)hub->conn_count));
	} else if (str_eq(type, "stop")) {
		loop_stop(hub->loop);
	}
}

static void on_tick(struct loop *l, void *arg)
{
	struct hub *hub = arg;

	for (struct conn *c = hub->conns, *next; c; c = next) {
		next = c->next;
		conn_tick(c);
	}
	hub_balance(hub);
	(void)loop_source_remove(hub->tick);
	(void)loop_add_timer(l, deadline_after_ms(HUB_TICK_MS), on_tick, hub, &hub->tick, NULL);
}

void hub_tell_ready(struct hub *hub, const struct confine_result *confined)
{
	uint16_t ports[RELAY_PORTS_MAX];
	size_t count = ruleset_ports(hub->config.rules, ports, RELAY_PORTS_MAX);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(list, json_integer(ports[i]));
	control_send(&hub->control,
		     json_pack("{s:s, s:i, s:b, s:s?, s:o, s:b, s:b}", "type", "ready", "version",
			       1, "tls", hub->tls != NULL, "authority",
			       hub->tls ? tls_store_authority(hub->tls) : NULL, "ports", list,
			       "landlock", confined->has_landlock, "seccomp",
			       confined->has_seccomp));
}

/* relay_fd carries listeners from a guest's side or, for a request of the host, the body to the
 * host program. */
static int set_up_relay(struct hub *hub, struct cordon_error **reterr)
{
	if (!hub->config.fetch)
		return loop_add_fd(hub->loop, hub->relay_fd, LOOP_IN, on_relay, hub, &hub->relay,
				   reterr);
	int fd = hub->relay_fd;
	hub->relay_fd = -1;
	return host_request_new(hub, hub->config.fetch, fd, &hub->request, reterr);
}

/* Loading the authorities takes most of the time of a short request. One in plain text that follows
 * no redirects never needs them. */
static bool fetch_needs_tls(const json_t *fetch)
{
	const char *url = json_string_value(json_object_get(fetch, "url"));

	return fetch && (!url || strncasecmp(url, "http://", 7) != 0 ||
			 json_integer_value(json_object_get(fetch, "redirects")) > 0);
}

static int set_up(struct hub *hub, int control_fd, struct cordon_error **reterr)
{
	int r = control_open(&hub->control, hub->loop, control_fd, on_message, hub, reterr);
	if (r == 0)
		r = resolver_new(hub->loop, &hub->resolver, reterr);
	if (r == 0)
		r = fake_address_new(&hub->fake_addresses, reterr);
	for (size_t i = 0; r == 0 && i < hub->config.pin_count; i++)
		r = resolver_pin(hub->resolver, &hub->config.pins[i].name,
				 &hub->config.pins[i].address, reterr);
	if (r == 0 && (hub->config.secrets.count > 0 || ruleset_has_limits(hub->config.rules) ||
		       fetch_needs_tls(hub->config.fetch)))
		r = hub_open_tls(hub, reterr);
	if (r == 0)
		r = set_up_relay(hub, reterr);
	if (r == 0)
		r = loop_add_timer(hub->loop, deadline_after_ms(HUB_TICK_MS), on_tick, hub,
				   &hub->tick, reterr);
	return r;
}

int hub_new(struct loop *l, struct config *config, int control_fd, int relay_fd, struct hub **ret,
	    struct cordon_error **reterr)
{
	struct hub *hub = mem_alloc(sizeof(*hub));
	if (!hub)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	hub->loop = l;
	hub->config = *config;
	*config = (struct config){ 0 };
	hub->control.fd = control_fd;
	hub->relay_fd = relay_fd;
	for (size_t i = 0; i < HUB_REFUSALS; i++)
		hub->refusal_fds[i] = -1;
	int r = set_up(hub, control_fd, reterr);
	if (r < 0) {
		hub_free(hub);
		return r;
	}
	hub_balance(hub);
	*ret = hub;
	return 0;
}

struct hub *hub_free(struct hub *hub)
{
	if (!hub)
		return NULL;
	while (hub->conns) {
		conn_abort(hub->conns);
		conn_run(hub->conns);
	}
	for (size_t i = 0; i < hub->listener_count; i++) {
		(void)loop_source_remove(hub->listeners[i].source);
		(void)close(hub->listeners[i].fd);
	}
	(void)loop_source_remove(hub->tick);
	(void)loop_source_remove(hub->relay);
	if (hub->relay_fd >= 0)
		(void)close(hub->relay_fd);
	for (size_t i = 0; i < HUB_REFUSALS; i++)
		close_fdp(&hub->refusal_fds[i]);
	host_request_free(hub->request);
	approvals_done(&hub->approvals);
	bulk_pool_done(&hub->bulks);
	resolver_free(hub->resolver);
	control_close(&hub->control);
	fake_address_free(hub->fake_addresses);
	tls_store_free(hub->tls);
	config_done(&hub->config);
	free(hub);
	return NULL;
}
