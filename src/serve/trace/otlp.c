/* serve/trace/otlp.c - see otlp.h. */
#include "serve/trace/otlp.h"

#include <cordon/cordon.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/random.h"

enum { FLAG_SAMPLED = 1, FLAG_KNOWS_REMOTE = 0x100, FLAG_REMOTE = 0x200, STATUS_ERROR = 2 };

static json_t *attribute(const char *key, const char *text)
{
	return json_pack("{s:s, s:{s:o}}", "key", key, "value", "stringValue",
			 json_string_lossy(text, strlen(text)));
}

char *otlp_resource(const char *service_name)
{
	char instance[33];

	random_hex(instance, sizeof(instance) - 1);
	cleanup_json json_t *j =
		json_pack("{s:[o, o, o]}", "attributes", attribute("service.name", service_name),
			  attribute("service.version", cordon_version()),
			  attribute("service.instance.id", instance));
	return j ? json_text(j, NULL) : NULL;
}

static int write_attributes(const struct span *s, struct buf *b)
{
	int r = buf_add_str(b, ",\"attributes\":[");

	for (unsigned i = 0; r == 0 && i < s->count; i++) {
		const struct span_attribute *a = &s->attributes[i];
		r = buf_printf(b, "%s{\"key\":\"%s\",\"value\":{", i ? "," : "", a->key);
		if (r == 0 && a->type == SPAN_TEXT)
			r = buf_printf(b, "\"stringValue\":\"%s\"", a->text);
		else if (r == 0 && a->type == SPAN_INTEGER)
			r = buf_printf(b, "\"intValue\":\"%lld\"", (long long)a->integer);
		else if (r == 0)
			r = buf_printf(b, "\"doubleValue\":%.3f", a->real);
		if (r == 0)
			r = buf_add_str(b, "}}");
	}
	return r < 0 ? r : buf_add_char(b, ']');
}

/* ,"KEY":{"traceId":…,"spanId":… without the end. */
static int write_ids(const struct trace_context *c, struct buf *b)
{
	char trace[TRACE_CONTEXT_ID_HEX + 1], span[2 * TRACE_CONTEXT_SPAN_BYTES + 1];

	hex_encode(trace, c->trace_id, sizeof(c->trace_id));
	hex_encode(span, c->span_id, sizeof(c->span_id));
	return buf_printf(b, "{\"traceId\":\"%s\",\"spanId\":\"%s\"", trace, span);
}

static int write_head(const struct span *s, struct buf *b)
{
	char parent[2 * TRACE_CONTEXT_SPAN_BYTES + 1];
	unsigned flags = FLAG_SAMPLED | FLAG_KNOWS_REMOTE;
	int r = write_ids(&s->self, b);

	if (r == 0 && trace_context_is_set(&s->parent)) {
		hex_encode(parent, s->parent.span_id, sizeof(s->parent.span_id));
		r = buf_printf(b, ",\"parentSpanId\":\"%s\"", parent);
		flags |= s->has_remote_parent ? FLAG_REMOTE : 0;
	}
	return r < 0 ? r
		     : buf_printf(b, ",\"flags\":%u,\"name\":\"%s%s%s\",\"kind\":%d", flags,
				  s->name, s->object ? " " : "", s->object ? s->object : "",
				  (int)s->kind);
}

static int write_span(const struct span *s, struct buf *b)
{
	unsigned long long begun = s->begun_unix_ns, took = s->ended_ns - s->begun_ns;
	int r = write_head(s, b);

	if (r == 0)
		r = buf_printf(b, ",\"startTimeUnixNano\":\"%llu\",\"endTimeUnixNano\":\"%llu\"",
			       begun, begun + took);
	if (r == 0)
		r = write_attributes(s, b);
	if (r == 0 && trace_context_is_set(&s->link)) {
		r = buf_add_str(b, ",\"links\":[");
		if (r == 0)
			r = write_ids(&s->link, b);
		if (r == 0)
			r = buf_add_str(b, "}]");
	}
	if (r == 0 && s->has_failed)
		r = buf_printf(b, ",\"status\":{\"code\":%d}", STATUS_ERROR);
	return r < 0 ? r : buf_add_char(b, '}');
}

int otlp_write(const char *resource, const struct span *spans, size_t count, struct buf *ret)
{
	int r = buf_printf(ret,
			   "{\"resourceSpans\":[{\"resource\":%s,\"scopeSpans\":[{\"scope\":"
			   "{\"name\":\"cordon\",\"version\":\"%s\"},\"spans\":[",
			   resource, cordon_version());

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (i > 0)
			r = buf_add_char(ret, ',');
		if (r == 0)
			r = write_span(&spans[i], ret);
	}
	return r < 0 ? r : buf_add_str(ret, "]}]}]}");
}

uint64_t otlp_rejected(const char *body, size_t len)
{
	cleanup_json json_t *j = NULL;

	if (len == 0 || json_parse(body, len, 0, &j, NULL) < 0)
		return 0;
	const json_t *n = json_object_get(json_object_get(j, "partialSuccess"), "rejectedSpans");
	/* 64-bit numbers are strings in this encoding; some collectors send numbers. */
	long long count =
		json_is_string(n) ? strtoll(json_string_value(n), NULL, 10) : json_integer_value(n);
	return count > 0 ? (uint64_t)count : 0;
}
