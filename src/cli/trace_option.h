/* cli/trace_option.h - where `cordon serve` and `cordon mcp` send traces: --otlp and the variables
 * of OpenTelemetry. */
#pragma once

#include "base/str.h"
#include "cli/option.h"
#include "serve/trace/tracer.h"

#define TRACE_OPTION                                                                               \
	{                                                                                          \
		"otlp", 0, "URL", "send traces to this collector: http://127.0.0.1:4318", false    \
	}

struct trace_option {
	struct tracer_options tracer; /* url NULL: no traces */
	struct strlist headers;
	char *texts[3]; /* copies of variables */
};

/* The environment may change afterwards: headers, which may be secrets, are taken out of it. */
int trace_option_read(const struct cli *c, struct trace_option *ret, struct cordon_error **reterr);
void trace_option_done(struct trace_option *o);
