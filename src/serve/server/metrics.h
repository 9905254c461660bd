/* serve/server/metrics.h - figures about the server, as text for Prometheus. Any thread may count;
 * the names are in docs/operations.md. No label has a name that a client chose. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "serve/trace/execution_label.h"
#include "serve/trace/tracer.h"

enum { METRICS_BUCKETS = 12, METRICS_STATUSES = 6 };

struct metrics_histogram {
	atomic_ullong buckets[METRICS_BUCKETS + 1]; /* the last one: longer than all */
	atomic_ullong count, sum_ns;
};

struct metrics {
	atomic_ullong executions[EXECUTION_LABEL_LANGUAGES][EXECUTION_LABEL_OUTCOMES];
	struct metrics_histogram execution, start, request;
	atomic_ullong requests[METRICS_STATUSES]; /* by the first digit of the status */
	atomic_ullong tool_calls, approvals;
	atomic_ullong parked, unparked; /* sessions: put away, and not because that failed */
};

/* outcome: as in activity.h; language: NULL or unknown ones count as "other". */
void metrics_count_execution(struct metrics *m, const char *language, const char *outcome,
			     uint64_t ns);
void metrics_observe(struct metrics_histogram *h, uint64_t ns);
void metrics_count_request(struct metrics *m, unsigned status, uint64_t ns);

/* Figures that are read when somebody asks. */
struct metrics_state {
	unsigned sessions_running, sessions_idle, sessions_parked;
	unsigned executions, tenants, connections;
	uint64_t memory_bytes; /* that all sessions may use */
	struct tracer_counts spans;
};
int metrics_write(const struct metrics *m, const struct metrics_state *s, struct buf *ret);
