/* net/host/gateway.c - see gateway.h. Starts a session's gateway and exchanges messages with it. */
#include "net/host/gateway.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/os.h"
#include "net/host/gateway_process.h"
#include "wall/linux/relay.h"

enum { READY_MS = 10000, STOP_MS = 1000, LINE_MAX_BYTES = 1 << 20 };
/* A gateway that is stopped must not hold up the answer of an execution, and only the first. */
enum { COUNT_MS = 2000, LATE_MS = 10, SAY_MS = 1000 };

struct gateway {
	pid_t pid;
	int control_fd, relay_fd;
	struct buf in;
	gateway_event_fn event;
	gateway_ask_fn ask;
	gateway_over_fn over;
	void *arg;
	uint8_t config[32]; /* gateway_process_hash */
	char *authority;
	uint16_t ports[RELAY_PORTS_MAX];
	size_t port_count;
	bool is_ready, has_relay, is_gone, has_counters;
	struct gateway_counters counters;
	uint64_t asked, answered; /* questions for the counters */
	char *problem;
	json_t *fetched;
};

static void take_ready(struct gateway *g, const json_t *m)
{
	const char *authority = json_string_value(json_object_get(m, "authority"));
	json_t *ports = json_object_get(m, "ports"), *port;
	size_t i;

	g->authority = str_dup(authority);
	json_array_foreach(ports, i, port) if (g->port_count < RELAY_PORTS_MAX)
		g->ports[g->port_count++] = (uint16_t)json_integer_value(port);
	g->is_ready = !authority || g->authority;
}

static void take_counters(struct gateway *g, const json_t *m)
{
	g->answered++;
	g->has_counters = g->answered == g->asked;
	(void)json_get_uint(m, "", "allowed", &g->counters.allowed, NULL);
	(void)json_get_uint(m, "", "denied", &g->counters.denied, NULL);
	(void)json_get_uint(m, "", "bytes_out", &g->counters.bytes_out, NULL);
	(void)json_get_uint(m, "", "bytes_in", &g->counters.bytes_in, NULL);
}

static void take_ask(struct gateway *g, const json_t *m)
{
	uint64_t id = 0;

	if (json_get_uint(m, "", "id", &id, NULL) < 0)
		return;
	if (g->ask)
		g->ask(id, m, g->arg);
	else
		(void)gateway_answer(g, id, false, "nobody is there to decide", NULL);
}

static void take_over(struct gateway *g, const json_t *m)
{
	uint64_t id = 0;

	if (g->over && json_get_uint(m, "", "id", &id, NULL) == 0)
		g->over(id, g->arg);
}

static void take_message(struct gateway *g, const json_t *m)
{
	const char *type = json_string_value(json_object_get(m, "type"));

	if (!type)
		return;
	if (str_eq(type, "event")) {
		if (g->event)
			g->event(m, g->arg);
	} else if (str_eq(type, "ask")) {
		take_ask(g, m);
	} else if (str_eq(type, "ask.over")) {
		take_over(g, m);
	} else if (str_eq(type, "ready")) {
		take_ready(g, m);
	} else if (str_eq(type, "relay")) {
		g->has_relay = true;
	} else if (str_eq(type, "counters")) {
		take_counters(g, m);
	} else if (str_eq(type, "fetched") && !g->fetched) {
		g->fetched = json_deep_copy(m);
	} else if (str_eq(type, "failed")) {
		g->problem = str_dup(json_string_value(json_object_get(m, "reason")));
		g->is_gone = true;
	}
}

int gateway_dispatch(struct gateway *g, struct cordon_error **reterr)
{
	char *end;

	while (!g->is_gone) {
		char *room = buf_reserve(&g->in, 16384);
		ssize_t n = room ? recv(g->control_fd, room, 16384, MSG_DONTWAIT) : -1;
		if (n < 0 && room && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0)
			g->is_gone = true;
		else
			buf_commit(&g->in, (size_t)n);
		/* The gateway parses hostile input, so its own messages are checked like untrusted
		 * input. */
		while (g->in.len > 0 && (end = memchr(g->in.data, '\n', g->in.len))) {
			size_t len = (size_t)(end - g->in.data);
			cleanup_json json_t *m = NULL;
			if (json_parse(g->in.data, len, LINE_MAX_BYTES, &m, NULL) == 0)
				take_message(g, m);
			buf_consume(&g->in, len + 1);
		}
	}
	return g->is_gone ? err_set(reterr, CORDON_STATE, "the gateway is gone%s%s",
				    g->problem ? ": " : "", g->problem ? g->problem : "")
			  : 0;
}

/* Waits until the flag is set, the gateway is gone, or the time is up. */
static int wait_for(struct gateway *g, const bool *flag, int timeout_ms,
		    struct cordon_error **reterr)
{
	deadline_ns until = deadline_after_ms((uint64_t)timeout_ms);

	while (!*flag) {
		struct pollfd p = { .fd = g->control_fd, .events = POLLIN };
		int left = deadline_poll_ms(until);
		if (left == 0)
			return err_set(reterr, CORDON_TIMEOUT,
				       "no answer from the gateway within %d ms", timeout_ms);
		if (poll(&p, 1, left) < 0 && errno != EINTR)
			return err_errno(reterr, errno, "wait for the gateway");
		int r = p.revents ? gateway_dispatch(g, *flag ? NULL : reterr) : 0;
		if (r < 0 && !*flag)
			return r;
	}
	return 0;
}

int gateway_start(const struct gateway_options *o, struct gateway **ret,
		  struct cordon_error **reterr)
{
	cleanup_gateway struct gateway *g = mem_alloc(sizeof(*g));
	struct gateway_process process = { 0 };

	if (!g)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	g->control_fd = g->relay_fd = -1;
	gateway_attach(g, o);
	buf_init(&g->in, LINE_MAX_BYTES + 32768);
	int r = gateway_process_start(o, &process, reterr);
	if (r < 0)
		return r;
	g->pid = process.pid;
	g->control_fd = process.control_fd;
	g->relay_fd = process.relay_fd;
	memcpy(g->config, process.config, sizeof(g->config));
	r = wait_for(g, &g->is_ready, READY_MS, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "start the gateway");
	*ret = TAKE_PTR(g);
	return 0;
}

void gateway_attach(struct gateway *g, const struct gateway_options *o)
{
	g->event = o->event;
	g->ask = o->ask;
	g->over = o->over;
	g->arg = o->arg;
}

bool gateway_is_fresh(struct gateway *g, const struct gateway_options *o)
{
	uint8_t now[32];

	return g->relay_fd >= 0 && !g->has_relay && gateway_dispatch(g, NULL) == 0 &&
	       gateway_process_hash(o, now, NULL) == 0 && memcmp(now, g->config, sizeof(now)) == 0;
}

/* The gateway ends when its control socket is closed. One that does not is killed. */
static void end_process(struct gateway *g)
{
	deadline_ns until = deadline_after_ms(STOP_MS);
	struct pollfd p = { .fd = os_process_open(g->pid), .events = POLLIN };
	int left;

	(void)shutdown(g->control_fd, SHUT_WR);
	while (!g->is_gone && (left = deadline_poll_ms(until)) > 0) {
		struct pollfd control = { .fd = g->control_fd, .events = POLLIN };
		if (poll(&control, 1, left) > 0)
			(void)gateway_dispatch(g, NULL);
	}
	if (p.fd < 0 || poll(&p, 1, deadline_poll_ms(until)) <= 0)
		(void)kill(
			g->pid,
			SIGKILL); /* our child and not reaped, so the pid cannot have been reused */
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_fdp(&p.fd);
}

struct gateway *gateway_stop(struct gateway *g)
{
	if (!g)
		return NULL;
	if (g->pid > 0)
		end_process(g);
	close_fdp(&g->control_fd);
	close_fdp(&g->relay_fd);
	buf_done(&g->in);
	free(g->authority);
	free(g->problem);
	json_decref(g->fetched);
	free(g);
	return NULL;
}

int gateway_relay_fd(const struct gateway *g)
{
	return g->relay_fd;
}

void gateway_close_relay(struct gateway *g)
{
	close_fdp(&g->relay_fd);
}

size_t gateway_ports(const struct gateway *g, const uint16_t **ret)
{
	*ret = g->ports;
	return g->port_count;
}

const char *gateway_authority(const struct gateway *g)
{
	return g->authority;
}

const json_t *gateway_fetched(const struct gateway *g)
{
	return g->fetched;
}

int gateway_fd(const struct gateway *g)
{
	return g->control_fd;
}

int gateway_wait_relay(struct gateway *g, int timeout_ms, struct cordon_error **reterr)
{
	return wait_for(g, &g->has_relay, timeout_ms, reterr);
}

static int add_env(struct strlist *env, const char *name, const char *value)
{
	cleanup_free char *entry = str_printf("%s=%s", name, value);

	if (!entry)
		return -CORDON_NOMEM;
	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->items[i], entry, strlen(name) + 1) == 0)
			return 0;
	return strlist_add(env, entry);
}

int gateway_add_environment(const char *bundle_path, struct strlist *env,
			    struct cordon_error **reterr)
{
	static const char *const proxies[] = { "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
					       "http_proxy", "https_proxy", "all_proxy" };
	static const char *const bundles[] = { "SSL_CERT_FILE", "CURL_CA_BUNDLE",
					       "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
					       "GIT_SSL_CAINFO" };
	int r = 0;

	for (size_t i = 0; i < sizeof(proxies) / sizeof(*proxies) && r == 0; i++)
		r = add_env(env, proxies[i], GATEWAY_PROXY_URL);
	if (r == 0)
		r = add_env(env, "NO_PROXY", "localhost,127.0.0.1,::1");
	if (r == 0)
		r = add_env(env, "no_proxy", "localhost,127.0.0.1,::1");
	for (size_t i = 0; i < sizeof(bundles) / sizeof(*bundles) && r == 0; i++)
		if (bundle_path)
			r = add_env(env, bundles[i], bundle_path);
	return r < 0 ? err_set(reterr, CORDON_NOMEM, "out of memory") : 0;
}

/* Takes ownership of the message. */
static int say(struct gateway *g, json_t *message, struct cordon_error **reterr)
{
	size_t len;
	cleanup_free char *text = message ? json_text(message, &len) : NULL;

	json_decref(message);
	if (!text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	text[len] = '\n'; /* replaces the NUL, so that one write sends the whole line */
	deadline_ns until = deadline_after_ms(SAY_MS);
	for (size_t at = 0; at < len + 1;) {
		struct pollfd p = { .fd = g->control_fd, .events = POLLOUT };
		ssize_t n =
			send(g->control_fd, text + at, len + 1 - at, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return err_errno(reterr, errno, "send to the gateway");
		at += n > 0 ? (size_t)n : 0;
		if (n < 0 &&
		    (deadline_is_over(until) || poll(&p, 1, deadline_poll_ms(until)) == 0)) {
			g->is_gone = g->is_gone || at > 0; /* half a line is worse than none */
			return err_set(reterr, CORDON_TIMEOUT, "the gateway does not read");
		}
	}
	return 0;
}

int gateway_begin_execution(struct gateway *g, const char *id, struct cordon_error **reterr)
{
	return say(g, json_pack("{s:s, s:s}", "type", "execution", "id", id), reterr);
}

int gateway_answer(struct gateway *g, uint64_t id, bool allow, const char *reason,
		   struct cordon_error **reterr)
{
	json_t *m = json_pack("{s:s, s:I, s:b}", "type", "answer", "id", (json_int_t)id, "allow",
			      allow);
	if (m && reason)
		(void)json_object_set_new(m, "reason", json_string_lossy(reason, strlen(reason)));
	return say(g, m, reterr);
}

int gateway_count(struct gateway *g, struct gateway_counters *ret, struct cordon_error **reterr)
{
	bool is_late = g->answered != g->asked;
	g->has_counters = false;
	int r = say(g, json_pack("{s:s}", "type", "counters"), reterr);
	g->asked += r == 0;
	if (r == 0)
		r = wait_for(g, &g->has_counters, is_late ? LATE_MS : COUNT_MS, reterr);
	if (r == 0)
		*ret = g->counters;
	return r;
}
