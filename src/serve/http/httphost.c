/* serve/http/httphost.c - see httphost.h. */
#include "serve/http/httphost.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 64, NAME_MAX_BYTES = 255 };

struct place {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a;
	socklen_t len;
	bool is_loopback;
	char name[64]; /* as written in a URL */
};

static int bad_address(const char *address, struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_INVALID,
		       "'%.100s' is not an address and port; write 127.0.0.1:8080 or [::1]:8080",
		       address);
}

static int parse(const char *address, struct place *ret, struct cordon_error **reterr)
{
	const char *colon = strrchr(address, ':');
	char host[64], *end = NULL;

	if (!colon || (size_t)(colon - address) >= sizeof(host) ||
	    !isdigit((unsigned char)colon[1]))
		return bad_address(address, reterr);
	unsigned long port = strtoul(colon + 1, &end, 10);
	if (*end || port > 65535)
		return bad_address(address, reterr);
	size_t len = (size_t)(colon - address);
	memcpy(host, address, len);
	host[len] = '\0';
	*ret = (struct place){ 0 };
	if (host[0] == '[' && len > 2 && host[len - 1] == ']') {
		host[len - 1] = '\0';
		ret->a.v6.sin6_family = AF_INET6;
		ret->a.v6.sin6_port = htons((uint16_t)port);
		ret->len = sizeof(ret->a.v6);
		if (inet_pton(AF_INET6, host + 1, &ret->a.v6.sin6_addr) != 1)
			return bad_address(address, reterr);
		ret->is_loopback = IN6_IS_ADDR_LOOPBACK(&ret->a.v6.sin6_addr);
		snprintf(ret->name, sizeof(ret->name), "[%.60s]", host + 1);
		return 0;
	}
	ret->a.v4.sin_family = AF_INET;
	ret->a.v4.sin_port = htons((uint16_t)port);
	ret->len = sizeof(ret->a.v4);
	if (inet_pton(AF_INET, host, &ret->a.v4.sin_addr) != 1)
		return bad_address(address, reterr);
	ret->is_loopback = ntohl(ret->a.v4.sin_addr.s_addr) >> 24 == 127;
	(void)str_copy(ret->name, sizeof(ret->name), host);
	return 0;
}

static int add_name(struct httphost *h, const char *name)
{
	char lower[NAME_MAX_BYTES + 1];
	size_t n = strlen(name);

	if (n > NAME_MAX_BYTES)
		return -CORDON_INVALID;
	for (size_t i = 0; i <= n; i++)
		lower[i] = (char)tolower((unsigned char)name[i]);
	return strlist_add(&h->names, lower);
}

static int add_names(struct httphost *h, const struct place *p, const char *const *names)
{
	static const char *const loopback[] = { "localhost", "127.0.0.1", "[::1]" };
	int r = add_name(h, p->name);

	for (size_t i = 0; r == 0 && p->is_loopback && i < 3; i++)
		r = add_name(h, loopback[i]);
	for (; r == 0 && names && *names; names++)
		r = add_name(h, *names);
	return r;
}

static int listen_at(struct place *p, int *ret_fd, struct cordon_error **reterr)
{
	cleanup_close int fd = socket(p->a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int yes = 1;

	if (fd < 0)
		return err_errno(reterr, errno, "make a socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, &p->a.any, p->len) != 0 || listen(fd, BACKLOG) != 0 ||
	    getsockname(fd, &p->a.any, &p->len) != 0)
		return err_errno(reterr, errno, "listen at %s%s", p->name,
				 errno == EADDRINUSE
					 ? " (another program listens there: choose another port)"
					 : "");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int check(struct httphost *h, const struct place *p, bool is_public,
		 const char *const *names, struct cordon_error **reterr)
{
	if (!p->is_loopback && !is_public)
		return err_set(reterr, CORDON_DENIED,
			       "%s is not a loopback address: other machines could reach it; use "
			       "--public to allow that",
			       p->name);
	if (add_names(h, p, names) < 0)
		return err_set(reterr, CORDON_INVALID, "a host name is too long");
	return 0;
}

int httphost_listen(struct httphost *h, const char *address, bool is_public,
		    const char *const *names, int *ret_fd, char *text, size_t text_size,
		    struct cordon_error **reterr)
{
	struct place p;
	int r = parse(address, &p, reterr);

	if (r < 0)
		return r;
	r = check(h, &p, is_public, names, reterr);
	if (r == 0)
		r = listen_at(&p, ret_fd, reterr);
	if (r < 0)
		return r;
	unsigned port = ntohs(p.a.any.sa_family == AF_INET ? p.a.v4.sin_port : p.a.v6.sin6_port);
	snprintf(text, text_size, "%s:%u", p.name, port);
	return 0;
}

/* The address of a socket that listens. */
static int inspect(int fd, struct place *ret, unsigned *ret_port, struct cordon_error **reterr)
{
	char bare[INET6_ADDRSTRLEN];
	struct place *p = ret;

	*p = (struct place){ .len = sizeof(p->a) };
	*ret_port = 0;
	if (getsockname(fd, &p->a.any, &p->len) != 0)
		return err_errno(reterr, errno, "read the address of the socket");
	if (p->a.any.sa_family == AF_INET) {
		(void)inet_ntop(AF_INET, &p->a.v4.sin_addr, p->name, sizeof(p->name));
		p->is_loopback = ntohl(p->a.v4.sin_addr.s_addr) >> 24 == 127;
		*ret_port = ntohs(p->a.v4.sin_port);
	} else if (p->a.any.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &p->a.v6.sin6_addr, bare, sizeof(bare));
		snprintf(p->name, sizeof(p->name), "[%s]", bare);
		p->is_loopback = IN6_IS_ADDR_LOOPBACK(&p->a.v6.sin6_addr);
		*ret_port = ntohs(p->a.v6.sin6_port);
	} else {
		p->is_loopback = true; /* only this machine reaches a Unix socket */
		(void)str_copy(p->name, sizeof(p->name), "localhost");
	}
	return 0;
}

int httphost_adopt(struct httphost *h, int fd, bool is_public, const char *const *names, char *text,
		   size_t text_size, struct cordon_error **reterr)
{
	struct place p;
	unsigned port;
	int r = inspect(fd, &p, &port, reterr);

	if (r == 0)
		r = check(h, &p, is_public, names, reterr);
	if (r == 0)
		snprintf(text, text_size, "%s:%u", p.name, port);
	return r;
}

int httphost_is_near(const char *address, int fd, bool *ret_near, bool *ret_unix,
		     struct cordon_error **reterr)
{
	struct place p;
	unsigned port;
	int r = address ? parse(address, &p, reterr) : inspect(fd, &p, &port, reterr);

	if (r < 0)
		return r;
	*ret_near = p.is_loopback;
	*ret_unix = p.a.any.sa_family == AF_UNIX;
	return 0;
}

void httphost_done(struct httphost *h)
{
	strlist_done(&h->names);
}

/* The length of the host in "host:port" or "[v6]:port"; 0: not valid. */
static size_t host_length(const char *s)
{
	size_t n = s[0] == '[' ? strcspn(s, "]") : strcspn(s, ":");

	if (s[0] == '[' && s[n] != ']')
		return 0;
	n += s[0] == '[';
	const char *rest = s + n;
	if (*rest == ':')
		rest += 1 + strspn(rest + 1, "0123456789");
	return *rest ? 0 : n;
}

bool httphost_has(const struct httphost *h, const char *host)
{
	char lower[NAME_MAX_BYTES + 1];
	size_t n = host ? host_length(host) : 0;

	if (n == 0 || n > NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < n; i++)
		lower[i] = (char)tolower((unsigned char)host[i]);
	lower[n] = '\0';
	return strlist_has(&h->names, lower);
}

bool httphost_has_origin(const struct httphost *h, const char *origin)
{
	if (str_starts(origin, "http://"))
		return httphost_has(h, origin + 7);
	return str_starts(origin, "https://") && httphost_has(h, origin + 8);
}

const char *httphost_split(const char *host, unsigned *ret_port, char *ret_id, size_t size)
{
	char *end = NULL;

	if (!host || !isdigit((unsigned char)host[0]) || host[0] == '0')
		return NULL;
	unsigned long port = strtoul(host, &end, 10);
	if (*end != '-' || port > 65535)
		return NULL;
	const char *id = end + 1;
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");
	if (n == 0 || id[n] != '.' || (ret_id && n >= size))
		return NULL;
	if (ret_port)
		*ret_port = (unsigned)port;
	if (ret_id) {
		memcpy(ret_id, id, n);
		ret_id[n] = '\0';
	}
	return id + n + 1;
}

bool httphost_is_origin(const char *host, const char *origin)
{
	const char *name = str_starts(origin, "http://")    ? origin + 7
			   : str_starts(origin, "https://") ? origin + 8
							    : NULL;

	return name && host && strcasecmp(name, host) == 0;
}
