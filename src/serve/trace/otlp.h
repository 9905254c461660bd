/* serve/trace/otlp.h - spans as OpenTelemetry's protocol writes them in JSON: ids in hex, times as
 * decimal strings, enumerations as numbers. */
#pragma once

#include "base/buf.h"
#include "serve/trace/span.h"

/* Who sends the spans, as JSON, for otlp_write. NULL: out of memory. The caller frees it. */
char *otlp_resource(const char *service_name);
/* One request. -CORDON_LIMIT: the buffer's limit. */
int otlp_write(const char *resource, const struct span *spans, size_t count, struct buf *ret);
/* How many spans the collector says that it did not take; body: of its answer. */
uint64_t otlp_rejected(const char *body, size_t len);
