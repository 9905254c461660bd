/* serve/trace/endpoint.c - see endpoint.h. The gateway, which connects, parses the URL again by all
 * rules; here is what must be known about it before. */
#include "serve/trace/endpoint.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define PATH "/v1/traces"
enum { URL_MAX = 2048 };

static int refuse(const char *text, const char *why, struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_INVALID,
		       "the collector's URL '%.200s' %s; it looks like http://127.0.0.1:4318", text,
		       why);
}

/* After the scheme: *ret_rest is what follows the host. */
static bool read_host(const char *at, struct endpoint *e, const char **ret_rest)
{
	bool is_v6 = *at == '[';
	size_t len = is_v6 ? strcspn(++at, "]") : strcspn(at, ":/");
	struct in6_addr ignored;

	if (len == 0 || len >= sizeof(e->host) || (is_v6 && at[len] != ']'))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)at[i]) && !strchr(is_v6 ? ":." : "-._", at[i]))
			return false;
	memcpy(e->host, at, len);
	e->host[len] = '\0';
	*ret_rest = at + len + (is_v6 ? 1 : 0);
	return !is_v6 || inet_pton(AF_INET6, e->host, &ignored) == 1;
}

static bool read_port(const char **at, struct endpoint *e)
{
	unsigned port = 0;

	e->port = e->is_tls ? 443 : 80;
	if (**at != ':')
		return true;
	for (++*at; isdigit((unsigned char)**at); ++*at) {
		port = 10 * port + (unsigned)(**at - '0');
		if (port > UINT16_MAX)
			return false;
	}
	e->port = (uint16_t)port;
	return port > 0;
}

static bool is_near(const char *host)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	return str_eq(host, "::1");
}

static int make_url(struct endpoint *e, const char *path, bool is_whole,
		    struct cordon_error **reterr)
{
	size_t len = strlen(path);
	bool is_v6 = strchr(e->host, ':');

	while (!is_whole && len > 0 && path[len - 1] == '/')
		len--;
	cleanup_free char *kept = str_ndup(path, len);
	bool has_path = is_whole || (kept && str_ends(kept, PATH));
	e->url = str_printf("http%s://%s%s%s:%u%s%s", e->is_tls ? "s" : "", is_v6 ? "[" : "",
			    e->host, is_v6 ? "]" : "", e->port, kept ? kept : "",
			    has_path ? "" : PATH);
	return kept && e->url ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

int endpoint_parse(const char *text, bool is_whole, struct endpoint *ret,
		   struct cordon_error **reterr)
{
	struct endpoint e = { .is_tls = str_starts(text, "https://") };
	const char *at;

	if (!e.is_tls && !str_starts(text, "http://"))
		return refuse(text, "does not begin with http:// or https://", reterr);
	if (strlen(text) > URL_MAX)
		return refuse(text, "is too long", reterr);
	for (const char *c = text; *c; c++)
		if (!isgraph((unsigned char)*c) || !isascii((unsigned char)*c))
			return refuse(text, "has characters that are not allowed", reterr);
	if (strpbrk(text, "?#@\\"))
		return refuse(text, "has a query, a fragment or a user name", reterr);
	if (!read_host(text + strlen(e.is_tls ? "https://" : "http://"), &e, &at))
		return refuse(text, "has no valid host", reterr);
	if (!read_port(&at, &e) || (*at && *at != '/'))
		return refuse(text, "has no valid port", reterr);
	/* The gateway decides by addresses, not by this name. */
	if (str_eq(e.host, "localhost"))
		(void)str_copy(e.host, sizeof(e.host), "127.0.0.1");
	e.is_loopback = is_near(e.host);
	int r = make_url(&e, at, is_whole, reterr);
	if (r < 0)
		return r;
	*ret = e;
	return 0;
}

void endpoint_done(struct endpoint *e)
{
	free(e->url);
	*e = (struct endpoint){ 0 };
}
