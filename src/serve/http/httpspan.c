/* serve/http/httpspan.c - the span of a request: OpenTelemetry's attributes of an HTTP server,
 * without the path, because it has ids. */
#include <string.h>

#include "base/str.h"
#include "serve/http/httpd_exchange.h"

struct parents {
	struct trace_context context;
	unsigned count;
};

static bool take_parent(const char *name, const char *value, void *arg)
{
	struct parents *p = arg;

	if (strcasecmp(name, "traceparent") != 0)
		return true;
	value += strspn(value, " \t");
	size_t len = strlen(value);
	while (len > 0 && strchr(" \t", value[len - 1]))
		len--;
	if (!trace_context_parse(value, len, &p->context))
		p->context = (struct trace_context){ 0 };
	p->count++;
	return true;
}

/* A text that stays valid. */
static const char *method_of(const char *method)
{
	static const char *const known[] = { "GET",  "POST",    "PUT",  "DELETE",
					     "HEAD", "OPTIONS", "PATCH" };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (str_eq(method, known[i]))
			return known[i];
	return "_OTHER";
}

static const char *error_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *text;
	} table[] = {
		{ 0, "no_answer" }, { 500, "500" }, { 501, "501" }, { 502, "502" },
		{ 503, "503" },     { 504, "504" }, { 507, "507" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].status == status)
			return table[i].text;
	return "_OTHER";
}

void httpspan_begin(struct httpd_exchange *x)
{
	const char *method = method_of(x->method);
	struct parents p = { 0 };

	httpd_visit_headers(x, take_parent, &p);
	if (p.count != 1) /* which one is meant? */
		p.context = (struct trace_context){ 0 };
	span_begin(&x->span,
		   &(struct span_options){ .tracer = x->server->options.tracer,
					   .parent = &p.context,
					   .has_remote_parent = true,
					   .kind = SPAN_SERVER,
					   .name = str_eq(method, "_OTHER") ? "HTTP" : method });
	span_set_text(&x->span, "http.request.method", method);
	span_set_text(&x->span, "url.scheme", x->server->options.tls_cert ? "https" : "http");
}

void httpspan_end(struct httpd_exchange *x, unsigned status)
{
	const struct httpd_route *r = x->match.route;

	if (r) {
		x->span.object = r->path;
		span_set_text(&x->span, "http.route", r->path);
	}
	if (status)
		span_set_integer(&x->span, "http.response.status_code", status);
	if (status == 0 || status >= 500)
		span_fail(&x->span, error_of(status));
	span_end(&x->span);
}
