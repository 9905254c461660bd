/* serve/trace/tracer.h - takes spans that have ended and sends them to a collector from a thread of
 * its own. Who adds a span never waits: if the queue is full, the span is dropped and counted. */
#pragma once

#include "base/str.h"
#include "serve/trace/span.h"

struct tracer_options {
	const char *url;            /* of the collector, such as http://127.0.0.1:4318 */
	bool is_whole;              /* url has the path, too; otherwise /v1/traces is added */
	const char *name;           /* service.name; NULL: cordon */
	const char *const *headers; /* "Name: value", ends with NULL; NULL: none */
	const char *ca_file;        /* trusted authorities, PEM; NULL: the system's */
	uint64_t queue;             /* spans that may wait; 0: 2048 */
	uint64_t delay_ms;          /* how long a span waits for others; 0: 5000 */
	uint64_t timeout_ms;        /* of one request; 0: 10000 */
	uint64_t end_ms;            /* for what is left at the end; 0: 5000 */
	/* Tells once that spans are lost, and once that they go through again. In the thread of the
	 * tracer; NULL: nobody is told. */
	void (*report)(const char *text, void *arg);
	void *report_arg;
};

/* exported: the collector took them. dropped: the queue was full. failed: the collector did not
 * take them. */
struct tracer_counts {
	uint64_t exported, dropped, failed;
};

/* The options are copied. -CORDON_INVALID: the URL or a header. -CORDON_UNSUPPORTED: there is no
 * cordon-gateway, which sends the requests. */
int tracer_new(const struct tracer_options *o, struct tracer **ret, struct cordon_error **reterr);
/* Sends what is left, within end_ms. No other thread uses it any more. Accepts NULL; always returns
 * NULL. */
struct tracer *tracer_free(struct tracer *t);
/* For span.c. Copies the span. Any thread; never blocks. */
void tracer_add(struct tracer *t, const struct span *s);
/* t NULL: zeros. */
void tracer_count(struct tracer *t, struct tracer_counts *ret);
