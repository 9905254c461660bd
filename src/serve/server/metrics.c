/* serve/server/metrics.c - see metrics.h. */
#include "serve/server/metrics.h"

#include <cordon/cordon.h>
#include <string.h>

#include "serve/trace/execution_label.h"

static const double bounds[METRICS_BUCKETS] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05,
						0.1,    0.5,   1,      5,     30,   300 };

void metrics_observe(struct metrics_histogram *h, uint64_t ns)
{
	double seconds = (double)ns / 1e9;
	size_t i = 0;

	while (i < METRICS_BUCKETS && seconds > bounds[i])
		i++;
	h->buckets[i]++;
	h->count++;
	h->sum_ns += ns;
}

void metrics_count_execution(struct metrics *m, const char *language, const char *outcome,
			     uint64_t ns)
{
	size_t l = execution_label_language(language), o = execution_label_outcome(outcome);

	m->executions[l][o]++;
	metrics_observe(&m->execution, ns);
}

void metrics_count_request(struct metrics *m, unsigned status, uint64_t ns)
{
	unsigned digit = status / 100;

	m->requests[digit < METRICS_STATUSES ? digit : 0]++;
	metrics_observe(&m->request, ns);
}

static int head(struct buf *b, const char *name, const char *type, const char *help)
{
	return buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static int write_executions(const struct metrics *m, struct buf *b)
{
	int r = head(b, "cordon_executions_total", "counter", "Executions that have ended.");

	for (size_t l = 0; l < EXECUTION_LABEL_LANGUAGES; l++)
		for (size_t o = 0; r == 0 && o < EXECUTION_LABEL_OUTCOMES; o++)
			if (m->executions[l][o] || (l == 1 && o == 1))
				r = buf_printf(b,
					       "cordon_executions_total{language=\"%s\",outcome="
					       "\"%s\"} %llu\n",
					       execution_label_language_name(l),
					       execution_label_outcome_name(o),
					       m->executions[l][o]);
	return r;
}

static unsigned long long sum_of(const struct metrics *m, const char *outcome)
{
	size_t o = execution_label_outcome(outcome);
	unsigned long long n = 0;

	for (size_t l = 0; l < EXECUTION_LABEL_LANGUAGES; l++)
		n += m->executions[l][o];
	return n;
}

static int write_limits(const struct metrics *m, struct buf *b)
{
	int r = head(b, "cordon_limit_hits_total", "counter",
		     "Executions that a limit of the policy has ended.");

	for (size_t i = 0; r == 0 && execution_label_limits[i]; i++)
		r = buf_printf(b, "cordon_limit_hits_total{limit=\"%s\"} %llu\n",
			       execution_label_limits[i], sum_of(m, execution_label_limits[i]));
	if (r == 0)
		r = head(b, "cordon_denied_total", "counter",
			 "Executions that failed because the policy denied something.");
	return r < 0 ? r : buf_printf(b, "cordon_denied_total %llu\n", sum_of(m, "denied"));
}

static int write_histogram(const struct metrics_histogram *h, const char *name, const char *help,
			   struct buf *b)
{
	unsigned long long seen = 0;
	int r = head(b, name, "histogram", help);

	for (size_t i = 0; r == 0 && i < METRICS_BUCKETS; i++) {
		seen += h->buckets[i];
		r = buf_printf(b, "%s_bucket{le=\"%g\"} %llu\n", name, bounds[i], seen);
	}
	seen += h->buckets[METRICS_BUCKETS];
	if (r == 0)
		r = buf_printf(b, "%s_bucket{le=\"+Inf\"} %llu\n", name, seen);
	return r < 0 ? r
		     : buf_printf(b, "%s_sum %.9f\n%s_count %llu\n", name, (double)h->sum_ns / 1e9,
				  name, seen);
}

static int write_requests(const struct metrics *m, struct buf *b)
{
	int r = head(b, "cordon_http_requests_total", "counter",
		     "HTTP requests that have ended, by the class of their status.");

	for (size_t i = 2; r == 0 && i < METRICS_STATUSES; i++)
		r = buf_printf(b, "cordon_http_requests_total{code=\"%zuxx\"} %llu\n", i,
			       m->requests[i]);
	return r;
}

static int write_gauges(const struct metrics_state *s, struct buf *b)
{
	const struct {
		const char *name, *help;
		double value;
	} gauges[] = {
		{ "cordon_executions_running", "Executions that run now.", s->executions },
		{ "cordon_http_connections", "Open HTTP connections.", s->connections },
		{ "cordon_tenants", "Keys that have been used since the start.", s->tenants },
		{ "cordon_session_memory_bytes", "Memory that all sessions may use.",
		  (double)s->memory_bytes },
	};
	int r = head(b, "cordon_sessions", "gauge", "Sessions, by state.");

	if (r == 0)
		r = buf_printf(b,
			       "cordon_sessions{state=\"running\"} %u\n"
			       "cordon_sessions{state=\"idle\"} %u\n"
			       "cordon_sessions{state=\"parked\"} %u\n",
			       s->sessions_running, s->sessions_idle, s->sessions_parked);
	for (size_t i = 0; r == 0 && i < sizeof(gauges) / sizeof(*gauges); i++) {
		r = head(b, gauges[i].name, "gauge", gauges[i].help);
		if (r == 0)
			r = buf_printf(b, "%s %.0f\n", gauges[i].name, gauges[i].value);
	}
	return r;
}

static int write_questions(const struct metrics *m, struct buf *b)
{
	int r = head(b, "cordon_tool_calls_total", "counter", "Tool calls sent to clients.");

	if (r == 0)
		r = buf_printf(b, "cordon_tool_calls_total %llu\n", m->tool_calls);
	if (r == 0)
		r = head(b, "cordon_approvals_total", "counter", "Approvals asked for.");
	return r < 0 ? r : buf_printf(b, "cordon_approvals_total %llu\n", m->approvals);
}

static int write_parkings(const struct metrics *m, struct buf *b)
{
	int r = head(b, "cordon_parkings_total", "counter",
		     "Sessions that were to be parked, by what became of it.");

	return r < 0 ? r
		     : buf_printf(b,
				  "cordon_parkings_total{result=\"parked\"} %llu\n"
				  "cordon_parkings_total{result=\"failed\"} %llu\n",
				  m->parked, m->unparked);
}

static int write_traces(const struct tracer_counts *t, struct buf *b)
{
	int r = head(b, "cordon_trace_spans_total", "counter",
		     "Spans of traces, by what became of them.");

	return r < 0 ? r
		     : buf_printf(b,
				  "cordon_trace_spans_total{result=\"exported\"} %llu\n"
				  "cordon_trace_spans_total{result=\"dropped\"} %llu\n"
				  "cordon_trace_spans_total{result=\"failed\"} %llu\n",
				  (unsigned long long)t->exported, (unsigned long long)t->dropped,
				  (unsigned long long)t->failed);
}

int metrics_write(const struct metrics *m, const struct metrics_state *s, struct buf *ret)
{
	int r = head(ret, "cordon_build_info", "gauge", "The version of the server.");

	if (r == 0)
		r = buf_printf(ret, "cordon_build_info{version=\"%s\"} 1\n", cordon_version());
	if (r == 0)
		r = write_executions(m, ret);
	if (r == 0)
		r = write_limits(m, ret);
	if (r == 0)
		r = write_questions(m, ret);
	if (r == 0)
		r = write_histogram(&m->execution, "cordon_execution_duration_seconds",
				    "How long executions took.", ret);
	if (r == 0)
		r = write_histogram(&m->start, "cordon_session_start_seconds",
				    "How long it took to open sessions.", ret);
	if (r == 0)
		r = write_requests(m, ret);
	if (r == 0)
		r = write_histogram(&m->request, "cordon_http_request_duration_seconds",
				    "How long HTTP requests took, from the headers to the end.",
				    ret);
	if (r == 0)
		r = write_parkings(m, ret);
	if (r == 0)
		r = write_traces(&s->spans, ret);
	return r < 0 ? r : write_gauges(s, ret);
}
