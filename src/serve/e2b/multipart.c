/* serve/e2b/multipart.c - see multipart.h. */
#include "serve/e2b/multipart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

enum { HEADER_MAX = 16 << 10 };

static int bad(struct cordon_error **reterr, const char *why)
{
	return err_set(reterr, CORDON_INVALID, "the multipart body is malformed: %s", why);
}

/* The value of a parameter, which begins at p: a word, or quoted, with browsers' escapes of quotes.
 * NULL: no memory. */
static char *value_of(const char *p, const char *end)
{
	bool is_quoted = p < end && *p == '"';
	char *ret, *out;

	p += is_quoted;
	ret = out = mem_alloc((size_t)(end - p) + 1);
	for (; ret && p < end && (is_quoted ? *p != '"' : !strchr("; \t\r\n", *p)); p++) {
		bool is_escape = is_quoted && end - p > 3 && strncasecmp(p, "%22", 3) == 0;

		if (is_quoted && *p == '\\' && p + 1 < end)
			p++;
		*out++ = is_escape ? '"' : *p;
		p += is_escape ? 2 : 0;
	}
	return ret;
}

/* A parameter of a header. NULL: there is none, or no memory. */
static char *parameter(const char *header, size_t len, const char *name)
{
	size_t name_len = strlen(name);
	const char *end = header + len;

	for (const char *p = header; (p = memchr(p, ';', (size_t)(end - p)));) {
		p++;
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		if ((size_t)(end - p) > name_len && strncasecmp(p, name, name_len) == 0 &&
		    p[name_len] == '=')
			return value_of(p + name_len + 1, end);
	}
	return NULL;
}

int multipart_init(struct multipart *m, const char *type, const char *body, size_t len,
		   struct cordon_error **reterr)
{
	cleanup_free char *boundary = type ? parameter(type, strlen(type), "boundary") : NULL;
	size_t n = boundary ? strlen(boundary) : 0;

	if (n == 0 || n > MULTIPART_BOUNDARY_MAX)
		return bad(reterr, "its type has no boundary");
	m->boundary_len = (size_t)snprintf(m->boundary, sizeof(m->boundary), "\r\n--%s", boundary);
	m->at = body;
	m->end = body + len;
	/* The first one has no line before it. */
	if (len < m->boundary_len - 2 || memcmp(body, m->boundary + 2, m->boundary_len - 2) != 0)
		return bad(reterr, "it does not begin with its boundary");
	m->at += m->boundary_len - 2;
	return 0;
}

static int read_headers(const char *at, size_t len, struct multipart_part *ret)
{
	while (len > 0) {
		const char *eol = memmem(at, len, "\r\n", 2);
		size_t n = eol ? (size_t)(eol - at) : len;

		if (n > 20 && strncasecmp(at, "Content-Disposition:", 20) == 0) {
			free(ret->name);
			free(ret->filename);
			ret->name = parameter(at, n, "name");
			ret->filename = parameter(at, n, "filename");
		}
		at += eol ? n + 2 : n;
		len -= eol ? n + 2 : n;
	}
	return 0;
}

int multipart_next(struct multipart *m, struct multipart_part *ret, struct cordon_error **reterr)
{
	size_t left = (size_t)(m->end - m->at);

	if (left >= 2 && memcmp(m->at, "--", 2) == 0)
		return 0;
	if (left < 2 || memcmp(m->at, "\r\n", 2) != 0)
		return bad(reterr, "a boundary is not followed by a part");
	const char *headers = m->at + 2;
	left -= 2;
	const char *blank = memmem(headers, left < HEADER_MAX ? left : HEADER_MAX, "\r\n\r\n", 4);
	if (!blank)
		return bad(reterr, "the headers of a part do not end");
	const char *bytes = blank + 4;
	const char *next = memmem(bytes, (size_t)(m->end - bytes), m->boundary, m->boundary_len);
	if (!next)
		return bad(reterr, "it is cut");
	*ret = (struct multipart_part){ .bytes = bytes, .len = (size_t)(next - bytes) };
	(void)read_headers(headers, (size_t)(blank - headers), ret);
	m->at = next + m->boundary_len;
	return 1;
}

void multipart_part_done(struct multipart_part *p)
{
	free(p->name);
	free(p->filename);
}
