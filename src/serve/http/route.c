/* serve/http/route.c - see route.h. */
#include "serve/http/route.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *route_decode(const char *text, size_t len)
{
	cleanup_free char *ret = mem_alloc(len + 1);
	size_t n = 0;

	if (!ret)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (c == '%') {
			int high = i + 2 < len ? hex(text[i + 1]) : -1;
			int low = i + 2 < len ? hex(text[i + 2]) : -1;
			if (high < 0 || low < 0)
				return NULL;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (c == '\0')
			return NULL;
		ret[n++] = c;
	}
	return str_is_utf8(ret, n) ? TAKE_PTR(ret) : NULL;
}

/* One segment of a path, up to the next '/' or the end. */
static size_t segment(const char *s)
{
	return strcspn(s, "/");
}

static bool add_param(struct route_match *m, size_t i, const char *name, size_t name_len,
		      const char *value, size_t len)
{
	if (i >= ROUTE_PARAMS_MAX)
		return false;
	m->params[i].name = name;
	m->params[i].name_len = name_len;
	free(m->params[i].value);
	m->params[i].value = route_decode(value, len);
	return m->params[i].value != NULL;
}

/* 1: the path fits; 0: it does not; -1: a parameter is not valid text. */
static int fits(const char *pattern, const char *path, struct route_match *m)
{
	size_t count = 0;

	for (;;) {
		if (*pattern != '/' || *path != '/')
			return *pattern == *path && *pattern == '\0';
		pattern++;
		path++;
		size_t n = segment(pattern), len = segment(path);
		if (n > 2 && pattern[0] == '{' && pattern[n - 1] == '}') {
			bool is_rest = pattern[n - 2] == '*';
			if (is_rest)
				len = strlen(path);
			else if (len == 0)
				return 0;
			if (!add_param(m, count++, pattern + 1, n - 2 - is_rest, path, len))
				return -1;
		} else if (n != len || memcmp(pattern, path, n) != 0) {
			return 0;
		}
		pattern += n;
		path += len;
	}
}

static void allow(struct route_match *m, const char *method)
{
	size_t used = strlen(m->allow);

	(void)snprintf(m->allow + used, sizeof(m->allow) - used, "%s%s", used > 0 ? ", " : "",
		       method);
}

unsigned route_find(const struct httpd_table *tables, const char *method, const char *path,
		    struct route_match *ret)
{
	const char *wanted = str_eq(method, "HEAD") ? "GET" : method;

	for (; tables->routes; tables++)
		for (const struct httpd_route *r = tables->routes; r->path; r++) {
			int found = fits(r->path, path, ret);
			if (found < 0)
				return 400;
			if (found == 0)
				continue;
			if (!r->method || str_eq(r->method, wanted)) {
				ret->route = r;
				ret->arg = tables->arg;
				return 0;
			}
			allow(ret, r->method);
		}
	return ret->allow[0] ? 405 : 404;
}

void route_match_done(struct route_match *m)
{
	for (size_t i = 0; i < ROUTE_PARAMS_MAX; i++)
		free(m->params[i].value);
	*m = (struct route_match){ 0 };
}

const char *route_param(const struct route_match *m, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < ROUTE_PARAMS_MAX && m->params[i].value; i++)
		if (m->params[i].name_len == len && memcmp(m->params[i].name, name, len) == 0)
			return m->params[i].value;
	return NULL;
}
