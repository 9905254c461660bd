/* fuzz/traceparent.c - traceparent: what is taken is written back as the same ids. And addresses of
 * collectors: what is taken once is taken again. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/str.h"
#include "serve/trace/endpoint.h"
#include "serve/trace/otlp.h"
#include "serve/trace/trace_context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_context(const char *text, size_t size)
{
	struct trace_context c = { 0 }, again = { 0 };
	char trace[TRACE_CONTEXT_ID_HEX + 1], span[2 * TRACE_CONTEXT_SPAN_BYTES + 1];

	if (!trace_context_parse(text, size, &c)) {
		if (trace_context_is_set(&c))
			abort();
		return;
	}
	hex_encode(trace, c.trace_id, sizeof(c.trace_id));
	hex_encode(span, c.span_id, sizeof(c.span_id));
	cleanup_free char *own = str_printf("00-%s-%s-%02x", trace, span, c.is_sampled);
	if (!own || !trace_context_parse(own, strlen(own), &again) ||
	    memcmp(&c, &again, sizeof(c)) != 0 || strncmp(text + 3, own + 3, 49) != 0)
		abort();
}

static void check_endpoint(const char *text)
{
	struct endpoint e = { 0 }, again = { 0 };

	if (endpoint_parse(text, false, &e, NULL) < 0)
		return;
	if (strpbrk(e.url, "\r\n \t#?@") || !e.port || !e.host[0])
		abort();
	if (strlen(e.url) <= 2048 &&
	    (endpoint_parse(e.url, false, &again, NULL) < 0 || strcmp(e.url, again.url) != 0))
		abort();
	endpoint_done(&e);
	endpoint_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = str_ndup((const char *)data, size);

	check_context((const char *)data, size);
	(void)otlp_rejected((const char *)data, size);
	if (text)
		check_endpoint(text);
	return 0;
}
