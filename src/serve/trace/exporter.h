/* serve/trace/exporter.h - sends one batch of spans to a collector: OTLP over HTTP. The request is
 * made by a cordon-gateway, so nothing that a collector sends is parsed here, except for the short
 * body of its answer. One thread. */
#pragma once

#include "base/str.h"
#include "policy/policy.h"
#include "serve/trace/endpoint.h"
#include "serve/trace/tracer.h"

struct exporter {
	struct endpoint endpoint;
	struct policy policy; /* reaches the collector and nothing else */
	struct strlist headers;
	char *ca_file; /* NULL: the system's */
	int stop_fd;   /* readable: a request ends at once */
};

/* What to do with a batch. */
enum exporter_outcome { EXPORTER_SENT, EXPORTER_AGAIN, EXPORTER_LOST };

struct exporter_answer {
	enum exporter_outcome outcome;
	uint64_t rejected; /* of a batch that was sent: spans that the collector did not take */
	uint64_t wait_ms;  /* before it is sent again: what the collector asks for; 0: nothing */
	char *why;         /* of a failure; the caller frees it; NULL: out of memory */
};

int exporter_init(struct exporter *e, const struct tracer_options *o, struct cordon_error **reterr);
void exporter_done(struct exporter *e);
void exporter_send(struct exporter *e, const void *body, size_t len, uint64_t timeout_ms,
		   struct exporter_answer *ret);
/* The request that runs, and all later ones, end at once. Any thread. */
void exporter_stop(struct exporter *e);
