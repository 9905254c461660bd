/* unit/wire/test_send.c - lines to the guest. */
#include <poll.h>

#include "base/json.h"
#include "harness/test.h"
#include "unit/wire/pair.h"

static json_t *heard(struct pair *p)
{
	static char line[1 << 20];
	json_t *j = NULL;
	ssize_t n = recv(p->guest, line, sizeof(line), 0);

	ASSERT(n > 0 && line[n - 1] == '\n');
	ASSERT(!memchr(line, '\n', (size_t)n - 1));
	ASSERT_EQ(json_parse(line, (size_t)n, 0, &j, NULL), 0);
	return j;
}

TEST(lines_to_the_guest_are_json)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, UINT64_MAX);
	const char *code = "print(\"\\\xc3\xa9\")\n\t\x01\x7f'\r\b\f";
	struct wire_execute x = { .id = 18446744073709551ULL,
				  .code = code,
				  .code_len = strlen(code),
				  .is_shown = true,
				  .context_json = "{\"x\":\n[1, 2]}",
				  .env_json = "{\"A\":\"b\"}" };

	ASSERT_EQ(wire_send_execute(p.w, &x, NULL), 0);
	cleanup_json json_t *j = heard(&p);
	ASSERT_STREQ(json_string_value(json_object_get(j, "type")), "execute");
	ASSERT_STREQ(json_string_value(json_object_get(j, "code")), code);
	ASSERT_EQ(json_integer_value(json_object_get(j, "id")), 18446744073709551);
	ASSERT(json_is_true(json_object_get(j, "show")));
	ASSERT_EQ(json_array_size(json_object_get(json_object_get(j, "context"), "x")), 2);
	ASSERT_STREQ(json_string_value(json_object_get(json_object_get(j, "env"), "A")), "b");

	ASSERT_EQ(wire_send_tool_error(p.w, 3, 4, "bad \xff \"x\"", NULL), 0);
	cleanup_json json_t *k = heard(&p);
	ASSERT_STREQ(json_string_value(json_object_get(k, "error")), "bad \xef\xbf\xbd \"x\"");
	ASSERT_EQ(json_integer_value(json_object_get(k, "id")), 3);
	ASSERT_EQ(json_integer_value(json_object_get(k, "call")), 4);

	ASSERT_EQ(wire_send_line(p.w, "{\"type\":\"exit\"}", 15, NULL), 0);
	cleanup_json json_t *l = heard(&p);
	ASSERT_STREQ(json_string_value(json_object_get(l, "type")), "exit");

	x.code = "\xff";
	x.code_len = 1;
	ASSERT_EQ(wire_send_execute(p.w, &x, NULL), -CORDON_INVALID);
	ASSERT_EQ(wire_get_queued(p.w), 0);
	pair_done(&p);
}

TEST(questions_to_the_guest_are_json)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, 0);

	ASSERT_EQ(wire_send_inspect(
			  p.w, &(struct wire_inspect){ 7, "is_complete", "f(\n\"", 4, NULL }, NULL),
		  0);
	cleanup_json json_t *j = heard(&p);
	ASSERT_STREQ(json_string_value(json_object_get(j, "type")), "inspect");
	ASSERT_EQ(json_integer_value(json_object_get(j, "id")), 7);
	ASSERT_STREQ(json_string_value(json_object_get(j, "question")), "is_complete");
	ASSERT_STREQ(json_string_value(json_object_get(j, "code")), "f(\n\"");
	ASSERT_EQ(wire_send_inspect(p.w, &(struct wire_inspect){ 7, "complete", "\xff", 1, NULL },
				    NULL),
		  -CORDON_INVALID);
	ASSERT_EQ(wire_get_queued(p.w), 0);
	pair_done(&p);
}

TEST(code_with_a_nul_arrives_whole)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, UINT64_MAX);
	struct wire_execute x = { .id = 1, .code = "a\0b", .code_len = 3 };

	ASSERT_EQ(wire_send_execute(p.w, &x, NULL), 0);
	cleanup_json json_t *j = heard(&p);
	ASSERT_EQ(json_string_length(json_object_get(j, "code")), 3);
	pair_done(&p);
}

TEST(queue_has_a_limit)
{
	struct pair p = pair_ready((struct wire_options){ .queue_bytes = 1000 }, UINT64_MAX);
	static char big[2000];
	cleanup_error struct cordon_error *e = NULL;

	memset(big, 'x', sizeof(big));
	ASSERT_EQ(wire_send_line(p.w, big, sizeof(big), &e), -CORDON_LIMIT);
	ASSERT_EQ(wire_get_queued(p.w), 0);
	ASSERT_EQ(wire_send_line(p.w, big, 900, NULL), 0);
	pair_done(&p);
}

TEST(partial_writes_go_on)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, UINT64_MAX);
	static char big[3000000], back[1 << 16];
	size_t got = 0;

	memset(big, 'y', sizeof(big));
	ASSERT_EQ(wire_send_line(p.w, big, sizeof(big), NULL), 1);
	ASSERT(wire_events(p.w) & POLLOUT);
	while (got < sizeof(big) + 1) {
		ssize_t n = recv(p.guest, back, sizeof(back), 0);
		ASSERT(n > 0);
		got += (size_t)n;
		ASSERT(wire_flush(p.w, NULL) >= 0);
	}
	ASSERT_EQ(wire_get_queued(p.w), 0);
	ASSERT_EQ(wire_events(p.w), POLLIN);
	pair_done(&p);
}

TEST(bad_options_are_refused)
{
	struct wire *w = NULL;

	ASSERT_EQ(wire_new(0, &(struct wire_options){ .token = "short" }, &w, NULL),
		  -CORDON_INVALID);
	ASSERT_EQ(wire_new(-1, &(struct wire_options){ .token = TOKEN }, &w, NULL), -CORDON_OS);
	ASSERT(!w);
	wire_free(NULL);
}
