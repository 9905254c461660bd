/* net/gateway/url.c - see url.h. */
#include "net/gateway/url.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

static int no_memory(struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOMEM, "out of memory");
}

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

/* How many dots the segment consists of (".", "%2e", ...); 0: it is something else. */
static unsigned count_dots(const char *s, size_t len)
{
	unsigned dots = 0;

	while (len > 0) {
		size_t step = s[0] == '.' ? 1 : len >= 3 && strncasecmp(s, "%2e", 3) == 0 ? 3 : 0;
		if (step == 0 || ++dots > 2)
			return 0;
		s += step;
		len -= step;
	}
	return dots;
}

static int add_escaped(struct buf *b, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		bool plain = c > 0x20 && c < 0x7f && !strchr("\"<>`{}", c);
		int r = plain ? buf_add_char(b, (char)c) : buf_printf(b, "%%%02X", c);
		if (r < 0)
			return r;
	}
	return 0;
}

static void drop_segment(struct buf *b)
{
	while (b->len > 0 && b->data[b->len - 1] != '/')
		b->len--;
	if (b->len > 0)
		b->len--;
}

static int add_segments(struct buf *b, const char *text, size_t len)
{
	size_t i = len > 0 && is_slash(text[0]) ? 1 : 0;
	int r = 0;

	for (;;) {
		size_t end = i;
		while (end < len && !is_slash(text[end]))
			end++;
		bool is_last = end >= len;
		unsigned dots = count_dots(text + i, end - i);
		if (dots == 2)
			drop_segment(b);
		if (dots == 0)
			r = buf_add_char(b, '/') < 0 ? -1 : add_escaped(b, text + i, end - i);
		else if (is_last)
			r = buf_add_char(b, '/');
		if (r < 0 || is_last)
			return r;
		i = end + 1;
	}
}

int url_normalise_path(const char *text, size_t len, char **ret, struct cordon_error **reterr)
{
	cleanup_buf struct buf b = { 0 };
	const char *hash = memchr(text, '#', len);

	buf_init(&b, 3 * (size_t)URL_MAX_LEN + 16);
	if (len > URL_MAX_LEN)
		return err_set(reterr, CORDON_LIMIT, "URL is longer than %d bytes", URL_MAX_LEN);
	if (hash)
		len = (size_t)(hash - text);
	const char *query = memchr(text, '?', len);
	size_t path_len = query ? (size_t)(query - text) : len;
	if (add_segments(&b, text, path_len) < 0 ||
	    (query && add_escaped(&b, query, len - path_len) < 0))
		return no_memory(reterr);
	char *path = buf_take(&b);
	if (!path)
		return no_memory(reterr);
	*ret = path;
	return 0;
}

bool url_path_is_ambiguous(const char *path)
{
	static const char *const bad[] = { "%2f", "%5c", "%00", "%25", "%2e" };

	for (const char *p = path; *p && *p != '?'; p++) {
		if (*p == '\\' || (p[0] == '/' && p[1] == '/') || *p == ';')
			return true;
		for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
			if (strncasecmp(p, bad[i], 3) == 0)
				return true;
	}
	return false;
}

/* As in the URL standard: removes control characters and spaces at both ends, and tabs and newlines
 * anywhere. */
static char *clean(const char *text, size_t len)
{
	while (len > 0 && (unsigned char)text[0] <= 0x20) {
		text++;
		len--;
	}
	while (len > 0 && (unsigned char)text[len - 1] <= 0x20)
		len--;
	char *out = mem_alloc(len + 1);
	size_t n = 0;
	for (size_t i = 0; out && i < len; i++)
		if (text[i] != '\t' && text[i] != '\n' && text[i] != '\r')
			out[n++] = text[i];
	return out;
}

static int parse_host_port(const char *s, size_t len, struct url *u, struct cordon_error **reterr)
{
	const char *at = memrchr(s, '@', len);
	if (at) {
		u->has_userinfo = true;
		len -= (size_t)(at + 1 - s);
		s = at + 1;
	}
	const char *close = len > 0 && s[0] == '[' ? memchr(s, ']', len) : NULL;
	const char *from = close ? close : s;
	const char *colon = memchr(from, ':', len - (size_t)(from - s));
	size_t host_len = colon ? (size_t)(colon - s) : len;
	if (colon) {
		const char *digits = colon + 1;
		size_t n = len - host_len - 1;
		while (n > 1 && digits[0] == '0') { /* the URL standard reads 00080 as 80 */
			digits++;
			n--;
		}
		if (n > 0 && !host_parse_port(digits, n, &u->port))
			return err_set(reterr, CORDON_INVALID,
				       "port is not a number from 1 to 65535");
	}
	return host_parse(s, host_len, &u->host, reterr);
}

static int parse_after_scheme(const char *s, struct url *u, struct cordon_error **reterr)
{
	while (is_slash(*s)) /* any number, as browsers do */
		s++;
	size_t len = strcspn(s, "/\\?#");
	int r = parse_host_port(s, len, u, reterr);
	if (r < 0)
		return r;
	return url_normalise_path(s + len, strlen(s + len), &u->path, reterr);
}

static const char *parse_scheme(const char *s, bool *ret_tls)
{
	if (strncasecmp(s, "http:", 5) == 0) {
		*ret_tls = false;
		return s + 5;
	}
	if (strncasecmp(s, "https:", 6) == 0) {
		*ret_tls = true;
		return s + 6;
	}
	return NULL;
}

static int parse_clean(const char *s, struct url *ret, struct cordon_error **reterr)
{
	cleanup_url struct url u = { 0 };
	const char *rest = parse_scheme(s, &u.is_tls);

	if (!rest)
		return err_set(reterr, CORDON_INVALID, "only http and https URLs are served");
	u.port = u.is_tls ? 443 : 80;
	int r = parse_after_scheme(rest, &u, reterr);
	if (r < 0)
		return r;
	*ret = u;
	u.path = NULL;
	return 0;
}

int url_parse(const char *text, size_t len, struct url *ret, struct cordon_error **reterr)
{
	if (len > URL_MAX_LEN)
		return err_set(reterr, CORDON_LIMIT, "URL is longer than %d bytes", URL_MAX_LEN);
	if (memchr(text, '\0', len))
		return err_set(reterr, CORDON_INVALID, "URL has a NUL byte");
	cleanup_free char *s = clean(text, len);
	return s ? parse_clean(s, ret, reterr) : no_memory(reterr);
}

static bool has_scheme(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
	return n > 0 && s[n] == ':' && ((s[0] | 0x20) >= 'a' && (s[0] | 0x20) <= 'z');
}

/* Makes a relative reference absolute: scheme and host of base, merged path. */
static char *make_absolute(const struct url *base, const char *s)
{
	const char *scheme = base->is_tls ? "https" : "http";

	if (is_slash(s[0]) && is_slash(s[1]))
		return str_printf("%s:%s", scheme, s);
	size_t keep = 0; /* how much of base's path precedes s */
	size_t path_len = strcspn(base->path, "?");
	if (s[0] == '\0' || s[0] == '#')
		keep = strlen(base->path);
	else if (s[0] == '?')
		keep = path_len;
	else if (!is_slash(s[0]))
		for (keep = path_len; keep > 0 && base->path[keep - 1] != '/';)
			keep--;
	return str_printf("%s://%s:%u%.*s%s", scheme, base->host.name, base->port, (int)keep,
			  base->path, s);
}

int url_resolve(const struct url *base, const char *text, size_t len, struct url *ret,
		struct cordon_error **reterr)
{
	if (len > URL_MAX_LEN)
		return err_set(reterr, CORDON_LIMIT, "URL is longer than %d bytes", URL_MAX_LEN);
	if (memchr(text, '\0', len))
		return err_set(reterr, CORDON_INVALID, "URL has a NUL byte");
	cleanup_free char *s = clean(text, len);
	if (!s)
		return no_memory(reterr);
	if (has_scheme(s))
		return parse_clean(s, ret, reterr);
	cleanup_free char *absolute = make_absolute(base, s);
	return absolute ? parse_clean(absolute, ret, reterr) : no_memory(reterr);
}

void url_done(struct url *u)
{
	free(u->path);
	u->path = NULL;
}

char *url_text(const struct url *u)
{
	const char *scheme = u->is_tls ? "https" : "http";

	if (u->port == (u->is_tls ? 443 : 80))
		return str_printf("%s://%s%s", scheme, u->host.name, u->path);
	return str_printf("%s://%s:%u%s", scheme, u->host.name, u->port, u->path);
}
