/* serve/trace/trace_context.c - see trace_context.h. */
#include "serve/trace/trace_context.h"

#include <string.h>

#include "base/random.h"

/* 00-TRACE-SPAN-FLAGS */
enum { AT_TRACE = 3, AT_SPAN = 36, AT_FLAGS = 53, LEN = 55 };

/* One digit; upper case is not allowed. -1: none. */
static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const char *text, unsigned char *ret, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		ret[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

static bool is_zero(const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

bool trace_context_is_set(const struct trace_context *c)
{
	return !is_zero(c->trace_id, sizeof(c->trace_id));
}

bool trace_context_parse(const char *text, size_t len, struct trace_context *ret)
{
	struct trace_context c = { 0 };
	unsigned char version, flags;

	if (len < LEN || text[AT_TRACE - 1] != '-' || text[AT_SPAN - 1] != '-' ||
	    text[AT_FLAGS - 1] != '-' || !read_hex(text, &version, 1) || version == 0xff)
		return false;
	if (len > LEN && (version == 0 || text[LEN] != '-'))
		return false;
	if (!read_hex(text + AT_TRACE, c.trace_id, sizeof(c.trace_id)) ||
	    !read_hex(text + AT_SPAN, c.span_id, sizeof(c.span_id)) ||
	    !read_hex(text + AT_FLAGS, &flags, 1) || !trace_context_is_set(&c) ||
	    is_zero(c.span_id, sizeof(c.span_id)))
		return false;
	c.is_sampled = flags & 1;
	*ret = c;
	return true;
}

void trace_context_begin(const struct trace_context *parent, struct trace_context *ret)
{
	struct trace_context c = { .is_sampled = true };

	if (parent && trace_context_is_set(parent))
		c = *parent;
	else
		random_bytes(c.trace_id, sizeof(c.trace_id));
	random_bytes(c.span_id, sizeof(c.span_id));
	*ret = c;
}
