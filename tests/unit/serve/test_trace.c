/* unit/serve/test_trace.c - traces: traceparent, the addresses of collectors, spans and their JSON.
 */
#include "serve/trace/otlp.h"

#include <string.h>

#include "base/json.h"
#include "base/random.h"
#include "base/str.h"
#include "harness/test.h"
#include "serve/trace/endpoint.h"
#include "serve/trace/execution_label.h"
#include "serve/trace/tracer.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static bool parse(const char *text, struct trace_context *ret)
{
	return trace_context_parse(text, strlen(text), ret);
}

TEST(traceparent)
{
	struct trace_context c = { 0 };
	char hex[TRACE_CONTEXT_ID_HEX + 1];

	ASSERT(!trace_context_is_set(&c));
	ASSERT(parse("00-" TRACE "-" SPAN "-01", &c));
	ASSERT(c.is_sampled && trace_context_is_set(&c));
	hex_encode(hex, c.trace_id, sizeof(c.trace_id));
	ASSERT_STREQ(hex, TRACE);
	hex_encode(hex, c.span_id, sizeof(c.span_id));
	ASSERT_STREQ(hex, SPAN);
	ASSERT(parse("00-" TRACE "-" SPAN "-00", &c));
	ASSERT(!c.is_sampled);
	/* Of the flags only the first is known. */
	ASSERT(parse("00-" TRACE "-" SPAN "-ff", &c));
	ASSERT(c.is_sampled);
	ASSERT(parse("00-" TRACE "-" SPAN "-fe", &c));
	ASSERT(!c.is_sampled);
	/* Later versions may add something. */
	ASSERT(parse("01-" TRACE "-" SPAN "-01", &c));
	ASSERT(parse("fe-" TRACE "-" SPAN "-01-more", &c));
}

TEST(invalid_traceparents)
{
	static const char *const bad[] = {
		"",
		"00",
		"00-" TRACE "-" SPAN "-0",
		"00-" TRACE "-" SPAN "-01-",
		"00-" TRACE "-" SPAN "-01-more",
		"00-" TRACE "-" SPAN "-011",
		"01-" TRACE "-" SPAN "-01more",
		"ff-" TRACE "-" SPAN "-01",
		"0-" TRACE "-" SPAN "-001",
		"00_" TRACE "-" SPAN "-01",
		"00-" TRACE "_" SPAN "-01",
		"00-" TRACE "-" SPAN "_01",
		"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
		"00-" TRACE "-B7AD6B7169203331-01",
		"00-" TRACE "-" SPAN "-0A",
		"0A-" TRACE "-" SPAN "-01",
		"00-00000000000000000000000000000000-" SPAN "-01",
		"00-" TRACE "-0000000000000000-01",
		"00-" TRACE "-b7ad6b716920333g-01",
		" 00-" TRACE "-" SPAN "-01",
	};
	struct trace_context c = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ASSERT(!parse(bad[i], &c));
	ASSERT(!trace_context_is_set(&c));
	/* A NUL is a byte like any other. */
	ASSERT(!trace_context_parse("00-" TRACE "-" SPAN "-01\0", 56, &c));
}

TEST(children)
{
	struct trace_context root, child, other, silent = { 0 };

	trace_context_begin(NULL, &root);
	trace_context_begin(&root, &child);
	trace_context_begin(&(struct trace_context){ 0 }, &other);
	ASSERT(root.is_sampled && child.is_sampled && other.is_sampled);
	ASSERT(memcmp(root.trace_id, child.trace_id, sizeof(root.trace_id)) == 0);
	ASSERT(memcmp(root.span_id, child.span_id, sizeof(root.span_id)) != 0);
	ASSERT(memcmp(root.trace_id, other.trace_id, sizeof(root.trace_id)) != 0);
	ASSERT(parse("00-" TRACE "-" SPAN "-00", &silent));
	trace_context_begin(&silent, &child);
	ASSERT(!child.is_sampled);
}

static void expect_url(const char *text, bool is_whole, const char *want, bool is_loopback)
{
	struct endpoint e = { 0 };
	cleanup_error struct cordon_error *problem = NULL;
	int r = endpoint_parse(text, is_whole, &e, &problem);

	if (!want) {
		ASSERT_EQ(r, -CORDON_INVALID);
		ASSERT(problem && !e.url);
		return;
	}
	ASSERT_EQ(r, 0);
	ASSERT_STREQ(e.url, want);
	ASSERT_EQ(e.is_loopback, is_loopback);
	endpoint_done(&e);
}

TEST(addresses_of_collectors)
{
	expect_url("http://localhost:4318", false, "http://127.0.0.1:4318/v1/traces", true);
	expect_url("http://127.0.0.1:4318/", false, "http://127.0.0.1:4318/v1/traces", true);
	expect_url("http://127.0.0.1:4318/v1/traces", false, "http://127.0.0.1:4318/v1/traces",
		   true);
	expect_url("http://[::1]:4318/a//", false, "http://[::1]:4318/a/v1/traces", true);
	expect_url("https://otel.example", false, "https://otel.example:443/v1/traces", false);
	expect_url("http://otel", true, "http://otel:80", false);
	expect_url("https://otel.example/x/", true, "https://otel.example:443/x/", false);
	static const char *const bad[] = { "",
					   "otel:4318",
					   "HTTP://x",
					   "http://",
					   "http:///x",
					   "http://x:",
					   "http://x:0",
					   "http://x:65536",
					   "http://x:99999999999999999999",
					   "http://x:1x",
					   "http://[::1",
					   "http://[::g]",
					   "http://[]",
					   "http://[::1]x",
					   "http://a@b",
					   "http://a?b",
					   "http://a#b",
					   "http://a b",
					   "http://a\\b",
					   "http://a\nb",
					   "http://\xc3\xa4" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_url(bad[i], false, NULL, false);
}

TEST(labels)
{
	ASSERT_EQ(execution_label_language(NULL), 0);
	ASSERT_STREQ(execution_label_language_name(execution_label_language("r")), "r");
	ASSERT_STREQ(execution_label_outcome_name(execution_label_outcome("my own")), "other");
	ASSERT_STREQ(execution_label_limit("memory"), "memory");
	ASSERT(!execution_label_limit("success") && !execution_label_limit(NULL));
}

TEST(figures_of_results)
{
	ASSERT(span_cpu_ms(NULL) < 0);
	ASSERT(span_cpu_ms("{}") < 0);
	/* The value of the code comes first and says what it likes. */
	ASSERT(span_cpu_ms("{\"success\": true, \"result\": {\"a\": 1, \"cpu_time_ms\": 99}, "
			   "\"execution_time_ms\": 2.5, \"cpu_time_ms\": 1.5, \"x\": 1}") == 1.5);
}

/* A span without a tracer keeps nothing but the trace of its parent. */
TEST(spans_that_nobody_wants)
{
	struct trace_context parent = { 0 };
	struct span s;

	span_begin(&s, &(struct span_options){ .parent = &parent, .name = "x" });
	ASSERT(!trace_context_is_set(&s.self));
	ASSERT(parse("00-" TRACE "-" SPAN "-01", &parent));
	span_begin(&s, &(struct span_options){ .parent = &parent, .name = "x" });
	ASSERT(memcmp(s.self.trace_id, parent.trace_id, sizeof(parent.trace_id)) == 0);
	span_set_text(&s, "a", "b");
	span_set_outcome(&s, "python", "success", 1);
	ASSERT_EQ(s.count, 0);
	span_end(&s);
}

static struct span sample(void)
{
	struct span s = { .kind = SPAN_SERVER,
			  .name = "POST",
			  .object = "/v1/x",
			  .begun_unix_ns = 1700000000000000000,
			  .begun_ns = 5,
			  .ended_ns = 12,
			  .has_remote_parent = true,
			  .has_failed = true };

	ASSERT(parse("00-" TRACE "-" SPAN "-01", &s.self));
	ASSERT(parse("00-" TRACE "-1111111111111111-01", &s.parent));
	ASSERT(parse("00-" TRACE "-2222222222222222-01", &s.link));
	s.attributes[0] = (struct span_attribute){ .key = "a", .type = SPAN_TEXT, .text = "b" };
	s.attributes[1] = (struct span_attribute){ .key = "n", .type = SPAN_INTEGER, .integer = 7 };
	s.attributes[2] = (struct span_attribute){ .key = "x", .type = SPAN_REAL, .real = 1.5 };
	s.count = 3;
	return s;
}

TEST(json)
{
	const struct span spans[2] = { sample(), sample() };
	cleanup_buf struct buf b = { 0 };
	cleanup_json json_t *j = NULL;
	cleanup_free char *resource = otlp_resource("a \"name\"\xff");

	buf_init(&b, 1 << 16);
	ASSERT(resource);
	ASSERT_EQ(otlp_write(resource, spans, 2, &b), 0);
	ASSERT_EQ(json_parse(b.data, b.len, 0, &j, NULL), 0);
	ASSERT(strstr(b.data,
		      "{\"traceId\":\"" TRACE "\",\"spanId\":\"" SPAN
		      "\",\"parentSpanId\":\"1111111111111111\",\"flags\":769,\"name\":\"POST "
		      "/v1/x\",\"kind\":2,\"startTimeUnixNano\":\"1700000000000000000\","
		      "\"endTimeUnixNano\":\"1700000000000000007\",\"attributes\":[{\"key\":\"a\","
		      "\"value\":{\"stringValue\":\"b\"}},{\"key\":\"n\",\"value\":{\"intValue\":"
		      "\"7\"}},{\"key\":\"x\",\"value\":{\"doubleValue\":1.500}}],\"links\":[{"
		      "\"traceId\":\"" TRACE "\",\"spanId\":\"2222222222222222\"}],\"status\":{"
		      "\"code\":2}}"));
	/* A limit is an error, not a piece of JSON. */
	cleanup_buf struct buf small = { 0 };
	buf_init(&small, 300);
	ASSERT_EQ(otlp_write(resource, spans, 2, &small), -CORDON_LIMIT);
}

static uint64_t rejected(const char *body)
{
	return otlp_rejected(body, strlen(body));
}

TEST(answers_of_collectors)
{
	ASSERT_EQ(rejected(""), 0);
	ASSERT_EQ(rejected("{}"), 0);
	ASSERT_EQ(rejected("junk"), 0);
	ASSERT_EQ(rejected("[]"), 0);
	ASSERT_EQ(rejected("{\"partialSuccess\":{}}"), 0);
	ASSERT_EQ(rejected("{\"partialSuccess\":{\"rejectedSpans\":\"12\"}}"), 12);
	ASSERT_EQ(rejected("{\"partialSuccess\":{\"rejectedSpans\":12}}"), 12);
	ASSERT_EQ(rejected("{\"partialSuccess\":{\"rejectedSpans\":\"-1\"}}"), 0);
	ASSERT_EQ(rejected("{\"partialSuccess\":{\"rejectedSpans\":[1]}}"), 0);
}
