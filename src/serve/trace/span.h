/* serve/trace/span.h - one piece of work in a trace: when it began and ended, and a few attributes.
 * It is plain data without memory of its own. All its texts must stay valid until the program ends:
 * so nothing that a client sent can become part of it. */
#pragma once

#include <stdint.h>

#include "serve/trace/trace_context.h"

struct tracer;

enum { SPAN_ATTRIBUTES = 12 };

/* As OTLP numbers them. */
enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2 };

enum span_type { SPAN_TEXT, SPAN_INTEGER, SPAN_REAL };

struct span_attribute {
	const char *key;
	enum span_type type;
	const char *text;
	int64_t integer;
	double real;
};

/* Zero: not begun; all functions accept that. */
struct span {
	struct tracer *tracer; /* gets it at its end; NULL: nobody */
	struct trace_context self;
	struct trace_context parent; /* zero: none */
	struct trace_context link;   /* another span that it has to do with; zero: none */
	bool has_remote_parent;      /* parent is of another program */
	bool has_failed;
	enum span_kind kind;
	const char *name, *object; /* its name: "POST", "/v1/sessions"; object NULL: none */
	uint64_t begun_unix_ns, begun_ns, ended_ns;
	unsigned count;
	struct span_attribute attributes[SPAN_ATTRIBUTES];
};

struct span_options {
	struct tracer *tracer;              /* NULL: nothing is recorded */
	const struct trace_context *parent; /* NULL or zero: a new trace begins */
	const struct trace_context *link;   /* NULL or zero: none */
	bool has_remote_parent;
	enum span_kind kind; /* 0: SPAN_INTERNAL */
	const char *name, *object;
};

/* Without a tracer self is the parent's context, so that logs have its trace. A span whose parent
 * is not sampled is not recorded. */
void span_begin(struct span *s, const struct span_options *o);
/* The ones beyond SPAN_ATTRIBUTES are dropped. */
void span_set_text(struct span *s, const char *key, const char *text);
void span_set_integer(struct span *s, const char *key, int64_t n);
/* type: what kind of error it is. */
void span_fail(struct span *s, const char *type);
/* Hands a copy to the tracer, once. */
void span_end(struct span *s);

/* What an execution came to. outcome: as in execution_label.h; cpu_ms < 0: not known. */
void span_set_outcome(struct span *s, const char *language, const char *outcome, double cpu_ms);
/* cpu_time_ms in the text of a result (docs/result.md); < 0: none. */
double span_cpu_ms(const char *result);
