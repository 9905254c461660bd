/* serve/ports/port_answer.c - see port_head.h: the answer. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "serve/ports/port_head.h"

/* What a server in a sandbox may say under our own name: what describes the content, and nothing
 * that changes what a browser or a client does with this name. */
static const char *const harmless[] = {
	"Content-Encoding",
	"Content-Language",
	"Content-Disposition",
	"Content-Range",
	"Accept-Ranges",
	"ETag",
	"Last-Modified",
	"Expires",
	"Age",
	"Vary",
	"Allow",
	"Retry-After",
	"Sec-WebSocket-Accept",
	"Sec-WebSocket-Protocol",
	"Sec-WebSocket-Extensions",
};

/* What it may not even say under a name of its own: it would change how the name is reached, or
 * pass for a word of this server. The length is made anew. */
static const char *const refused[] = {
	"Content-Type",
	"Content-Length",
	"Strict-Transport-Security",
	"Public-Key-Pins",
	"Public-Key-Pins-Report-Only",
	"Alt-Svc",
	"X-Content-Type-Options",
	"Set-Cookie2",
	"Date",
};

static bool is_in(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(name, list[i]) == 0)
			return true;
	return false;
}

#define IN(name, list) is_in(name, list, sizeof(list) / sizeof(*(list)))

/* Headers of an application; those of proxies and browsers have other meanings. */
static bool is_of_application(const char *name)
{
	static const char *const meant[] = { "X-Accel-",     "X-Frame-",  "X-XSS-",
					     "X-Content-",   "X-DNS-",    "X-Permitted-",
					     "X-UA-",        "X-Robots-", "X-SourceMap",
					     "X-LiteSpeed-", "X-Sendfile" };

	for (size_t i = 0; i < sizeof(meant) / sizeof(*meant); i++)
		if (strncasecmp(name, meant[i], strlen(meant[i])) == 0)
			return false;
	return strncasecmp(name, "X-", 2) == 0;
}

/* Whether a cookie is also for other names than that of the port. */
static bool is_cookie_of_others(const char *name, const char *value)
{
	if (strcasecmp(name, "Set-Cookie") != 0)
		return false;
	for (const char *at = strchr(value, ';'); at; at = strchr(at, ';')) {
		at += 1 + strspn(at + 1, " \t");
		if (strncasecmp(at, "domain", 6) == 0 && strchr("= \t;", at[6]))
			return true;
	}
	return false;
}

static bool passes(const char *name, const char *value, bool has_own_name)
{
	if (IN(name, refused) || strncasecmp(name, "Cordon-", 7) == 0)
		return false;
	if (has_own_name)
		return !is_cookie_of_others(name, value);
	return IN(name, harmless) || is_of_application(name);
}

/* Without scheme and host, if these are the server's own in the sandbox. */
static const char *skip_host(const char *location, unsigned port)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "0.0.0.0" };
	char host[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		int n = snprintf(host, sizeof(host), "http://%s:%u", names[i], port);
		if (strncasecmp(location, host, (size_t)n) == 0 &&
		    (location[n] == '/' || location[n] == '\0'))
			return location[n] ? location + n : "/";
	}
	return location;
}

/* Where a redirection leads under the prefix; NULL: out of the port. Freed by the caller. A client
 * follows it with its key. So it must stay within the port: no other host, and
 * no way up from the prefix, however it is written. */
static char *redirect(const char *location, const struct port_proxy_target *to)
{
	const char *at = skip_host(location, to->port);
	size_t path = strcspn(at, "?#");

	if (at[0] != '/' || at[1] == '/' || strchr(at, '\\'))
		return NULL;
	for (size_t i = 0; i < path; i++)
		if ((at[i] == '.' && at[i + 1] == '.') || strncasecmp(at + i, "%2e", 3) == 0 ||
		    strncasecmp(at + i, "%2f", 3) == 0 || strncasecmp(at + i, "%5c", 3) == 0)
			return NULL;
	for (size_t i = 0; at[i]; i++)
		if (!isgraph((unsigned char)at[i]))
			return NULL;
	return str_printf("%s%s", to->prefix, at);
}

static void pass(struct httpd_exchange *x, const struct port_proxy_target *to, const char *name,
		 const char *value)
{
	if (to->prefix && strcasecmp(name, "Location") == 0) {
		cleanup_free char *moved = redirect(value, to);
		if (moved)
			httpd_pass_header(x, "Location", moved);
	} else if (passes(name, value, !to->prefix)) {
		httpd_pass_header(x, name, value);
	}
}

void port_head_answer(struct httpd_exchange *x, const struct port_proxy_target *to,
		      const struct http_head *h)
{
	for (size_t i = 0; i < h->field_count; i++) {
		const struct http_field *f = &h->fields[i];
		cleanup_free char *name = str_ndup(f->name.data, f->name.len);
		cleanup_free char *value = str_ndup(f->value.data, f->value.len);

		if (name && value && !http_field_is_hop(h, f))
			pass(x, to, name, value);
	}
	if (!to->prefix)
		return;
	/* Should a browser show it all the same, it is nobody's page and runs nothing. */
	httpd_add_header(x, "Content-Security-Policy", "sandbox; default-src 'none'");
	httpd_add_header(x, "Cross-Origin-Resource-Policy", "same-origin");
	httpd_add_header(x, "X-Frame-Options", "DENY");
	httpd_add_header(x, "Referrer-Policy", "no-referrer");
}
