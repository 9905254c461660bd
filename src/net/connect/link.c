/* net/connect/link.c - see link.h. */
#include "net/connect/link.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/gateway/url.h"

#define PROTOCOL "cordon-rpc/1"
#define FORMS "a server is https://HOST[:PORT], http://HOST[:PORT] on the loopback, or unix:PATH"

enum { GREETING_MS = 30000 };

ssize_t link_read(struct link *l, void *to, size_t len)
{
	if (l->tls)
		return tls_read(l->tls, to, len);
	ssize_t n = recv(l->fd, to, len, 0);
	return n < 0 ? -errno : n;
}

ssize_t link_write(struct link *l, const void *from, size_t len)
{
	if (l->tls)
		return tls_write(l->tls, from, len);
	ssize_t n = send(l->fd, from, len, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

void link_done(struct link *l)
{
	l->tls = tls_free(l->tls);
	l->store = tls_store_free(l->store);
	close_fdp(&l->fd);
}

/* ---- the address */

static bool is_loopback(const struct host *h)
{
	if (!host_is_literal(h))
		return str_eq(h->name, "localhost") || str_ends(h->name, ".localhost");
	if (h->addr.family == 4)
		return h->addr.bytes[0] == 127;
	static const unsigned char v6[16] = { [15] = 1 };
	return memcmp(h->addr.bytes, v6, sizeof(v6)) == 0;
}

static int parse(const char *server, struct url *ret, struct cordon_error **reterr)
{
	int r = url_parse(server, strlen(server), ret, reterr);

	if (r < 0 || ret->has_userinfo || !str_eq(ret->path, "/"))
		return err_set(reterr && *reterr ? NULL : reterr, CORDON_INVALID,
			       FORMS "; the key goes to CORDON_KEY");
	if (!ret->is_tls && !is_loopback(&ret->host))
		return err_set(reterr, CORDON_DENIED,
			       "http:// would show the key and the code to the network: use "
			       "https://");
	return 0;
}

/* ---- the socket */

static bool wait_for(int fd, short events, deadline_ns until)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n;

	do
		n = poll(&p, 1, deadline_poll_ms(until));
	while (n < 0 && errno == EINTR);
	return n > 0;
}

/* 0, or -errno. */
static int try_connect(int fd, const struct sockaddr *a, socklen_t len, deadline_ns until)
{
	int problem = 0;
	socklen_t size = sizeof(problem);

	if (connect(fd, a, len) == 0)
		return 0;
	if (errno != EINPROGRESS && errno != EAGAIN)
		return -errno;
	if (!wait_for(fd, POLLOUT, until))
		return -ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 ? -problem : -errno;
}

static int dial_unix(struct link *l, const char *path, deadline_ns until,
		     struct cordon_error **reterr)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (!path[0] || !str_copy(a.sun_path, sizeof(a.sun_path), path))
		return err_set(reterr, CORDON_INVALID, "the path of a socket has 1 to %zu bytes",
			       sizeof(a.sun_path) - 1);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = l->fd < 0 ? -errno
			  : try_connect(l->fd, (const struct sockaddr *)&a, sizeof(a), until);
	return r == 0 ? 0
		      : err_errno(reterr, -r,
				  "connect to unix:%s (is `cordon serve` running there?)", path);
}

static int dial(struct link *l, const struct url *u, deadline_ns until,
		struct cordon_error **reterr)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list = NULL;
	char name[HOST_TEXT_SIZE], port[8];
	int r = -EHOSTUNREACH, yes = 1;

	(void)str_copy(name, sizeof(name),
		       u->host.name[0] == '[' ? u->host.name + 1 : u->host.name);
	name[strcspn(name, "]")] = '\0';
	(void)snprintf(port, sizeof(port), "%u", u->port);
	int problem = getaddrinfo(name, port, host_is_literal(&u->host) ? NULL : &hints, &list);
	if (problem)
		return err_set(reterr, CORDON_NOT_FOUND, "there is no host '%s': %s", name,
			       gai_strerror(problem));
	for (const struct addrinfo *a = list; a && r < 0; a = a->ai_next) {
		if (a->ai_socktype != SOCK_STREAM)
			continue;
		close_fdp(&l->fd);
		l->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		r = l->fd < 0 ? -errno : try_connect(l->fd, a->ai_addr, a->ai_addrlen, until);
	}
	freeaddrinfo(list);
	if (r < 0)
		return err_errno(reterr, -r, "connect to %s:%u (is `cordon serve` running there?)",
				 name, u->port);
	(void)setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	(void)setsockopt(l->fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	return 0;
}

/* ---- the greeting */

static int fail(const struct link *l, ssize_t r, struct cordon_error **reterr)
{
	const char *why = l->tls ? tls_problem(l->tls) : "";

	if (r == -EPROTO)
		return err_set(reterr, CORDON_DENIED,
			       "the server: %s; name its authority with --ca or CORDON_CA",
			       why[0] ? why : "TLS failed");
	if (r == -ETIMEDOUT)
		return err_set(reterr, CORDON_TIMEOUT, "the server did not answer within %d s",
			       GREETING_MS / 1000);
	if (r == 0 || r == -ECONNRESET || r == -EPIPE)
		return err_set(reterr, CORDON_OS,
			       "the server closed the connection: is it stopping, or not a cordon "
			       "serve?");
	return err_errno(reterr, (int)-r, "greet the server");
}

/* One step, waited for. */
static ssize_t step(struct link *l, bool writes, void *bytes, size_t len, deadline_ns until)
{
	for (;;) {
		ssize_t n = writes ? link_write(l, bytes, len) : link_read(l, bytes, len);
		if (n != -EAGAIN && n != -EINTR)
			return n;
		bool out = l->tls ? tls_wants_write(l->tls) : writes;
		if (!wait_for(l->fd, out ? POLLOUT : POLLIN, until))
			return -ETIMEDOUT;
	}
}

static int send_greeting(struct link *l, const char *host, const struct link_options *o,
			 deadline_ns until, struct cordon_error **reterr)
{
	cleanup_free char *text = str_printf(
		"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: %s\r\nUser-Agent: cordon\r\n%s%s%s\r\n",
		o->path ? o->path : "/v1/rpc", host,
		o->path ? "close" : "Upgrade\r\nUpgrade: " PROTOCOL,
		o->key ? "Authorization: Bearer " : "", o->key ? o->key : "", o->key ? "\r\n" : "");
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	for (size_t at = 0; at < len;) {
		ssize_t n = step(l, true, text + at, len - at, until);
		if (n <= 0) {
			explicit_bzero(text, len);
			return fail(l, n, reterr);
		}
		at += (size_t)n;
	}
	explicit_bzero(text, len);
	return 0;
}

static int refuse(struct link *l, struct cordon_error **reterr)
{
	static const struct {
		int status;
		enum link_refusal refusal;
		enum cordon_code code;
		const char *text;
	} table[] = {
		{ 401, LINK_KEY_REFUSED, CORDON_DENIED,
		  "the server knows no such key: set CORDON_KEY" },
		{ 403, LINK_KEY_REFUSED, CORDON_DENIED,
		  "this key may not do that, or the server does not know this host name: ask who "
		  "runs it" },
		{ 404, LINK_UNREACHABLE, CORDON_NOT_FOUND,
		  "there is no such path: is it a cordon serve?" },
		{ 429, LINK_BUSY, CORDON_LIMIT,
		  "too many requests or connections with this key: try again later" },
		{ 503, LINK_BUSY, CORDON_LIMIT, "the server is busy or stopping: try again later" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].status == l->status) {
			l->refusal = table[i].refusal;
			return err_set(reterr, table[i].code, "%s", table[i].text);
		}
	return err_set(reterr, CORDON_OS, "what listens there is no cordon serve (status %d)",
		       l->status);
}

static int read_welcome(struct link *l, bool is_upgrade, deadline_ns until,
			struct cordon_error **reterr)
{
	cleanup_free char *head = mem_alloc(LINK_HEAD_MAX);
	char *end = NULL;
	size_t len = 0;

	if (!head)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	while (!end && len + 1 < LINK_HEAD_MAX) {
		ssize_t n = step(l, false, head + len, LINK_HEAD_MAX - 1 - len, until);
		if (n <= 0)
			return fail(l, n, reterr);
		len += (size_t)n;
		head[len] = '\0';
		end = strstr(head, "\r\n\r\n");
	}
	if (!end || !str_starts(head, "HTTP/1.1 ") || !isdigit((unsigned char)head[9]))
		return err_set(reterr, CORDON_OS, "what listens there is no cordon serve");
	l->status = (int)strtol(head + 9, NULL, 10);
	*end = '\0';
	if (is_upgrade ? l->status != 101 || !strcasestr(head, "\r\nUpgrade: " PROTOCOL)
		       : l->status != 200)
		return refuse(l, reterr);
	end += 4;
	l->early_len = len - (size_t)(end - head);
	memcpy(l->early, end, l->early_len);
	return 0;
}

static int check_key(const char *key, struct cordon_error **reterr)
{
	for (const char *c = key; c && *c; c++)
		if (!isgraph((unsigned char)*c) || !isascii((unsigned char)*c))
			return err_set(
				reterr, CORDON_INVALID,
				"a key has only visible ASCII characters and no blanks: check "
				"CORDON_KEY");
	return 0;
}

static int begin_tls(struct link *l, const struct url *u, const char *ca_file,
		     struct cordon_error **reterr)
{
	if (!u->is_tls)
		return 0;
	int r = tls_store_new(ca_file, &l->store, reterr);
	return r < 0 ? r : tls_connect(l->store, &u->host, l->fd, &l->tls, reterr);
}

int link_open(struct link *l, const struct link_options *o, struct cordon_error **reterr)
{
	cleanup_url struct url u = { 0 };
	bool is_unix = str_starts(o->server, "unix:");
	deadline_ns until = deadline_after_ms(GREETING_MS);
	char host[HOST_TEXT_SIZE + 8] = "localhost";

	*l = (struct link){ .fd = -1 };
	int r = check_key(o->key, reterr);
	if (r == 0 && is_unix)
		r = dial_unix(l, o->server + strlen("unix:"), until, reterr);
	if (r == 0 && !is_unix)
		r = parse(o->server, &u, reterr);
	if (r == 0 && !is_unix) {
		(void)snprintf(host, sizeof(host), "%s:%u", u.host.name, u.port);
		r = dial(l, &u, until, reterr);
		if (r == 0)
			r = begin_tls(l, &u, o->ca_file, reterr);
	}
	if (r == 0)
		r = send_greeting(l, host, o, until, reterr);
	return r < 0 ? r : read_welcome(l, !o->path, until, reterr);
}

int link_fetch(struct link *l, struct buf *ret, struct cordon_error **reterr)
{
	deadline_ns until = deadline_after_ms(GREETING_MS);
	int r = buf_add(ret, l->early, l->early_len);
	char bytes[4096];
	ssize_t n = 1;

	while (r == 0 && (n = step(l, false, bytes, sizeof(bytes), until)) > 0)
		r = buf_add(ret, bytes, (size_t)n);
	if (r < 0)
		return err_set(reterr, CORDON_LIMIT, "the server's answer is too long");
	return n < 0 ? fail(l, n, reterr) : 0;
}
