/* serve/trace/trace_context.h - which trace a piece of work belongs to, as W3C Trace Context writes
 * it in `traceparent`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { TRACE_CONTEXT_ID_BYTES = 16, TRACE_CONTEXT_SPAN_BYTES = 8, TRACE_CONTEXT_ID_HEX = 32 };

/* Zero: none. */
struct trace_context {
	unsigned char trace_id[TRACE_CONTEXT_ID_BYTES];
	unsigned char span_id[TRACE_CONTEXT_SPAN_BYTES];
	bool is_sampled;
};

/* Reads a traceparent, which need not end with a NUL. False: it is not valid, and *ret is
 * unchanged. Of a version that is not known yet, what version 00 has is read. */
bool trace_context_parse(const char *text, size_t len, struct trace_context *ret);
bool trace_context_is_set(const struct trace_context *c);
/* A new span in the trace of parent; in a new trace, which is sampled, if there is none. parent:
 * may be NULL. */
void trace_context_begin(const struct trace_context *parent, struct trace_context *ret);
