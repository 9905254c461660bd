/* unit/wire/test_wire.c - frames, limits, token, ids and the queue over a socketpair. */
#include <poll.h>
#include <sys/resource.h>

#include "harness/test.h"
#include "unit/wire/pair.h"

static void expect_error(struct pair *p, const char *want)
{
	cleanup_error struct cordon_error *e = NULL;
	struct wire_message m;
	int r;

	while ((r = next(p, &m, &e)) > 0)
		;
	ASSERT_EQ(r, -CORDON_PROTOCOL);
	ASSERT_STREQ(cordon_error_message(e), want);
	ASSERT_EQ(wire_next(p->w, &m, NULL), -CORDON_PROTOCOL); /* and it stays broken */
}

TEST(hello_is_taken)
{
	struct pair p = pair_new((struct wire_options){ 0 });
	struct wire_message m;

	ASSERT_EQ(wire_fill(p.w, NULL), 0);
	ASSERT_EQ(wire_next(p.w, &m, NULL), 0);
	say(&p, HELLO);
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_EQ(m.type, WIRE_HELLO);
	ASSERT_STREQ(m.guest.data, "python");
	ASSERT_STREQ(m.language.data, "3.11.2");
	ASSERT(!m.is_template);
	pair_done(&p);
}

TEST(token_is_required)
{
	static const char *const lines[] = {
		"{\"type\":\"hello\",\"version\":1}\n",
		"{\"type\":\"hello\",\"version\":1,\"token\":5}\n",
		"{\"type\":\"hello\",\"version\":1,\"token\":\"\"}\n",
		"{\"type\":\"hello\",\"version\":1,\"token\":\"0123456789abcdef0123456789abcdef"
		"0123456789abcdef0123456789abcdee\"}\n",
		"{\"type\":\"hello\",\"version\":1,\"token\":\"" TOKEN "0\"}\n",
		"{\"type\":\"result\",\"id\":1,\"ok\":true,\"token\":\"" TOKEN "\"}\n",
		"{\"type\":\"tool_call\",\"id\":1,\"call\":1,\"tool\":\"add\"}\n",
		"garbage\n",
		"\n",
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct pair p = pair_new((struct wire_options){ 0 });
		say(&p, lines[i]);
		expect_error(&p, "IPC authentication failed: invalid token from child process");
		pair_done(&p);
	}
	struct pair p = pair_new((struct wire_options){ 0 });
	say(&p, "{\"type\":\"hello\",\"version\":2,\"token\":\"" TOKEN "\"}\n");
	expect_error(&p, "the guest speaks version 2 of the wire, not 1");
	pair_done(&p);
}

TEST(stranger_gets_little_room)
{
	struct pair p = pair_new((struct wire_options){ 0 });
	char big[5000];

	memset(big, 'x', sizeof(big));
	ASSERT_EQ(send(p.guest, big, sizeof(big), 0), (long long)sizeof(big));
	expect_error(&p, "IPC message too large (5000 bytes, max 4096)");
	pair_done(&p);
}

TEST(messages_have_their_fields)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, UINT64_MAX);
	struct wire_message m;

	say(&p, "{\"type\":\"tool_call\",\"id\":1,\"call\":1,\"tool\":\"add\",\"args\":"
		"{\"a\": 1,\"b\":[2]},\"extra\":[{}]}\n"
		"{\"args\":null,\"tool\":\"ping\",\"call\":2,\"id\":1,\"type\":\"tool_call\"}\n"
		"{\"type\":\"tool_call\",\"id\":1,\"call\":3,\"tool\":\"ping\",\"args\":[ ]}\n"
		"{\"type\":\"output\",\"id\":1,\"mime\":\"image/png\",\"encoding\":\"base64\","
		"\"data\":\"AAECAw==\",\"name\":\"figure 1\"}\n"
		"{\"type\":\"result\",\"id\":1,\"ok\":true,\"value\":{\"x\":[1.10]},\"text\":\"{'x'"
		"}\"}\n");
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_EQ(m.type, WIRE_TOOL_CALL);
	ASSERT_EQ(m.id, 1);
	ASSERT_EQ(m.call, 1);
	ASSERT_STREQ(m.tool.data, "add");
	ASSERT_STREQ(m.args.data, "{\"a\": 1,\"b\":[2]}");
	ASSERT_EQ(m.args.len, strlen(m.args.data));
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_STREQ(m.tool.data, "ping");
	ASSERT_STREQ(m.args.data, "{}");
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_STREQ(m.args.data, "{}");
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_EQ(m.type, WIRE_OUTPUT);
	ASSERT(m.is_base64);
	ASSERT_STREQ(m.mime.data, "image/png");
	ASSERT_STREQ(m.data.data, "AAECAw==");
	ASSERT_STREQ(m.name.data, "figure 1");
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_EQ(m.type, WIRE_RESULT);
	ASSERT(m.ok && !m.has_error && !m.has_exit_code);
	ASSERT_STREQ(m.value.data, "{\"x\":[1.10]}");
	ASSERT_STREQ(m.text.data, "{'x'}");
	ASSERT_EQ(next(&p, &m, NULL), 0);
	pair_done(&p);
}

TEST(failed_results)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, UINT64_MAX);
	struct wire_message m;

	say(&p, "{\"type\":\"result\",\"id\":1,\"ok\":false,\"error\":{\"kind\":\"exception\","
		"\"name\":\"ValueError\",\"message\":\"bad "
		"\\u00e9\",\"traceback\":\"a\\nb\",\"line\":3}}\n"
		"{\"type\":\"result\",\"id\":1,\"ok\":false,\"exit_code\":3}\n"
		"{\"type\":\"result\",\"id\":1,\"warnings\":[\"a\"],\"value\":1,\"ok\":true}\n");
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT(!m.ok && m.has_error && !m.value.data);
	ASSERT_STREQ(m.error.kind.data, "exception");
	ASSERT_STREQ(m.error.name.data, "ValueError");
	ASSERT_STREQ(m.error.message.data, "bad \xc3\xa9");
	ASSERT_STREQ(m.error.traceback.data, "a\nb");
	ASSERT_EQ(m.error.line, 3);
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT(!m.ok && !m.has_error && m.has_exit_code);
	ASSERT_EQ(m.exit_code, 3);
	ASSERT(!m.warnings.data);
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_STREQ(m.warnings.data, "[\"a\"]");
	ASSERT_STREQ(m.value.data, "1");
	pair_done(&p);
}

TEST(wrong_types_are_named)
{
	static const struct {
		const char *line, *want;
	} cases[] = {
		{ "", "expected a JSON object" },
		{ "not json", "expected a JSON object" },
		{ "[1]", "expected a JSON object" },
		{ "null", "expected a JSON object" },
		{ "{\"type\":\"x\"", "not valid JSON" },
		{ "{\"type\":\"x\"} {}", "text after the value" },
		{ "{\"a\":1}", "'type' must be a scalar string" },
		{ "{\"type\":7}", "'type' must be a scalar string" },
		{ "{\"type\":[\"tool_call\"]}", "'type' must be a scalar string" },
		{ "{\"type\":\"tool_call\",\"id\":1,\"call\":1,\"tool\":[\"add\"]}",
		  "'tool' must be a scalar string" },
		{ "{\"type\":\"tool_call\",\"id\":1,\"call\":1}",
		  "'tool' must be a scalar string" },
		{ "{\"type\":\"tool_call\",\"id\":1,\"call\":1,\"tool\":\"a\",\"args\":\"x\"}",
		  "'args' must be a list or null" },
		{ "{\"type\":\"tool_call\",\"id\":1,\"call\":1,\"tool\":\"a\",\"args\":[1]}",
		  "'args' must be a list or null" },
		{ "{\"type\":\"tool_call\",\"id\":\"1\",\"call\":1,\"tool\":\"a\"}",
		  "'id' must be a positive integer" },
		{ "{\"type\":\"tool_call\",\"id\":1,\"call\":0,\"tool\":\"a\"}",
		  "'call' must be a positive integer" },
		{ "{\"type\":\"tool_call\",\"id\":1,\"call\":1.0,\"tool\":\"a\"}",
		  "'call' must be a positive integer" },
		{ "{\"type\":\"tool_call\",\"id\":-1,\"call\":1,\"tool\":\"a\"}",
		  "'id' must be a positive integer" },
		{ "{\"type\":\"result\",\"id\":1}", "'ok' must be true or false" },
		{ "{\"type\":\"result\",\"id\":1,\"ok\":1}", "'ok' must be true or false" },
		{ "{\"type\":\"result\",\"id\":1,\"ok\":false}", "'error' must be an object" },
		{ "{\"type\":\"result\",\"id\":1,\"ok\":false,\"error\":\"x\"}",
		  "'error' must be an object" },
		{ "{\"type\":\"result\",\"id\":1,\"ok\":false,\"error\":{\"kind\":1}}",
		  "'error.kind' must be a scalar string" },
		{ "{\"type\":\"result\",\"id\":1,\"ok\":false,\"error\":{\"line\":\"1\"}}",
		  "'error.line' must be a positive integer" },
		{ "{\"type\":\"result\",\"id\":1,\"ok\":true,\"exit_code\":\"0\"}",
		  "'exit_code' must be an integer" },
		{ "{\"type\":\"result\",\"id\":1,\"ok\":true,\"text\":{}}",
		  "'text' must be a scalar string" },
		{ "{\"type\":\"output\",\"id\":1,\"mime\":\"x\",\"encoding\":\"text\",\"data\":"
		  "\"\"}",
		  "'mime' must be a MIME type" },
		{ "{\"type\":\"output\",\"id\":1,\"mime\":\"a/b\\r\\nX: y\",\"encoding\":\"text\","
		  "\"data\":\"\"}",
		  "'mime' must be a MIME type" },
		{ "{\"type\":\"output\",\"id\":1,\"mime\":\"a/"
		  "b\",\"encoding\":\"gzip\",\"data\":\"\"}",
		  "'encoding' must be 'base64' or 'text'" },
		{ "{\"type\":\"output\",\"id\":1,\"mime\":\"a/b\",\"encoding\":\"base64\","
		  "\"data\":\"A*==\"}",
		  "'data' must be base64" },
		{ "{\"type\":\"tool_call\",\"type\":\"result\"}", "duplicate key in an object" },
		{ "{\"type\":\"result\",\"id\":1,\"ok\":true,\"value\":\"\xff\"}",
		  "not valid UTF-8" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pair p = pair_ready((struct wire_options){ 0 }, UINT64_MAX);
		char want[200];
		snprintf(want, sizeof(want), "Malformed IPC message: %s", cases[i].want);
		say(&p, cases[i].line);
		say(&p, "\n");
		expect_error(&p, want);
		pair_done(&p);
	}
}

TEST(unknown_types_are_told_and_counted)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, 2);
	struct wire_message m;

	say(&p, HELLO "{\"type\":\"ping\"}\n");
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_EQ(m.type, WIRE_UNKNOWN);
	ASSERT_STREQ(m.name.data, "hello");
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_STREQ(m.name.data, "ping");
	ASSERT_EQ(wire_get_counts(p.w).unknown, 2);
	for (int i = 0; i < 30; i++)
		say(&p, "{\"type\":\"ping\"}\n");
	expect_error(&p, "Maximum IPC messages (30) exceeded; possible flood attack");
	pair_done(&p);
}

TEST(long_names_are_cut)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, 2);
	struct wire_message m;

	say(&p, "{\"type\":\"");
	for (int i = 0; i < 100; i++)
		say(&p, "\xe2\x82\xac");
	say(&p, "\"}\n");
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_EQ(m.name.len, 63);
	ASSERT_EQ(strlen(m.name.data), 63);
	pair_done(&p);
}

TEST(stale_and_replayed_messages_are_ignored)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, UINT64_MAX);
	struct wire_message m;

	say(&p,
	    "{\"type\":\"result\",\"id\":2,\"ok\":true}\n"
	    "{\"type\":\"tool_call\",\"id\":1,\"call\":2,\"tool\":\"b\"}\n"
	    "{\"type\":\"tool_call\",\"id\":1,\"call\":2,\"tool\":\"again\"}\n"
	    "{\"type\":\"tool_call\",\"id\":1,\"call\":1,\"tool\":\"a\"}\n"
	    "{\"type\":\"tool_call\",\"id\":1,\"call\":1,\"tool\":\"again\"}\n"
	    "{\"type\":\"tool_call\",\"id\":9,\"call\":3,\"tool\":\"other\"}\n"
	    "{\"type\":\"output\",\"id\":9,\"mime\":\"a/b\",\"encoding\":\"text\",\"data\":\"\"}\n"
	    "{\"type\":\"tool_call\",\"id\":1,\"call\":5000,\"tool\":\"far\"}\n"
	    "{\"type\":\"tool_call\",\"id\":1,\"call\":3,\"tool\":\"too old\"}\n"
	    "{\"type\":\"result\",\"id\":1,\"ok\":true}\n");
	static const char *const want[] = { "b", "a", "far" };
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(next(&p, &m, NULL), 1);
		ASSERT_STREQ(m.tool.data, want[i]);
	}
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_EQ(m.type, WIRE_RESULT);
	ASSERT_EQ(wire_get_counts(p.w).stale, 6);
	wire_end(p.w);
	say(&p, "{\"type\":\"result\",\"id\":1,\"ok\":true}\n");
	ASSERT_EQ(next(&p, &m, NULL), 0);
	pair_done(&p);
}

TEST(calls_over_the_budget_are_a_flood)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, 1);
	char line[100];

	for (int i = 1; i <= 22; i++) {
		snprintf(line, sizeof(line),
			 "{\"type\":\"tool_call\",\"id\":1,\"call\":%d,\"tool\":\"a\"}\n", i);
		say(&p, line);
	}
	expect_error(&p, "Maximum IPC messages (20) exceeded; possible flood attack");
	ASSERT_EQ(wire_get_counts(p.w).tool_calls, 22);
	pair_done(&p);
}

TEST(a_hundred_thousand_calls_are_fine_when_unlimited)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, UINT64_MAX);
	struct wire_message m;
	char line[100], answer[200];

	for (uint64_t i = 1; i <= 100000; i++) {
		snprintf(line, sizeof(line),
			 "{\"type\":\"tool_call\",\"id\":1,\"call\":%llu,\"tool\":\"a\"}\n",
			 (unsigned long long)i);
		say(&p, line);
		ASSERT_EQ(next(&p, &m, NULL), 1);
		ASSERT_EQ(m.call, i);
		ASSERT_EQ(wire_send_tool_value(p.w, 1, i, "7", 1, NULL), 0);
		ASSERT(recv(p.guest, answer, sizeof(answer), 0) > 0);
	}
	pair_done(&p);
}

TEST(halves_are_joined)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, UINT64_MAX);
	const char *line = "{\"type\":\"result\",\"id\":1,\"ok\":true,\"value\":[1,2,3]}\n";
	struct wire_message m;

	for (size_t i = 0; line[i]; i++) {
		ASSERT_EQ(next(&p, &m, NULL), 0);
		ASSERT_EQ(send(p.guest, line + i, 1, 0), 1);
	}
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_STREQ(m.value.data, "[1,2,3]");
	say(&p, "{\"type\":");
	ASSERT_EQ(next(&p, &m, NULL), 0);
	ASSERT(!wire_is_closed(p.w));
	close_fdp(&p.guest);
	ASSERT_EQ(next(&p, &m, NULL), 0);
	ASSERT(wire_is_closed(p.w));
	pair_done(&p);
}

TEST(closing_early_loses_no_whole_message)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, UINT64_MAX);
	struct wire_message m;

	say(&p, "{\"type\":\"result\",\"id\":1,\"ok\":true}\n");
	close_fdp(&p.guest);
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_EQ(next(&p, &m, NULL), 0);
	ASSERT(wire_is_closed(p.w));
	ASSERT_EQ(wire_send_tool_value(p.w, 1, 1, "1", 1, NULL), 0);
	ASSERT_EQ(wire_get_queued(p.w), 0);
	pair_done(&p);
}

TEST(limits_come_before_parsing)
{
	struct pair p =
		pair_ready((struct wire_options){ .message_bytes = 100, .rpc_bytes = 200 }, 1);
	char line[400];

	snprintf(line, sizeof(line), "{\"type\":\"tool_call\",%0*d", 100, 0);
	say(&p, line);
	expect_error(&p, "IPC message too large (120 bytes, max 100)");
	pair_done(&p);

	p = pair_ready((struct wire_options){ .message_bytes = 100, .rpc_bytes = 200 }, 1);
	struct wire_message m;
	snprintf(line, sizeof(line),
		 "{\"type\":\"result\",\"id\":1,\"ok\":true,\"text\":\"%0*d\"}\n", 110, 0);
	say(&p, line);
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_EQ(m.text.len, 110);
	snprintf(line, sizeof(line),
		 "{\"type\":\"result\",\"id\":1,\"ok\":true,\"text\":\"%0*d\"}\n", 300, 0);
	say(&p, line);
	expect_error(&p, "IPC message too large (344 bytes, max 200)");
	pair_done(&p);

	/* Tools may take more than other messages, and no more than that. */
	p = pair_ready((struct wire_options){ .message_bytes = 100, .rpc_bytes = 200 }, 1);
	wire_allow_calls(p.w, 600);
	char call[2000], text[601] = "";
	memset(text, 'x', 600);
	snprintf(call, sizeof(call),
		 "{\"type\":\"tool_call\",\"id\":1,\"call\":1,\"tool\":\"x\",\"args\":{\"a\":\"%"
		 "s\"}}\n",
		 text);
	say(&p, call);
	ASSERT_EQ(next(&p, &m, NULL), 1);
	ASSERT_EQ(m.type, WIRE_TOOL_CALL);
	ASSERT(m.args.len > 600);
	snprintf(call, sizeof(call), "{\"type\":\"tool_call\",%0*d", 1200, 0);
	say(&p, call);
	expect_error(&p, "IPC message too large (1220 bytes, max 1112)");
	pair_done(&p);

	/* It only looked like a result. */
	p = pair_ready((struct wire_options){ .message_bytes = 100, .rpc_bytes = 200 }, 1);
	snprintf(line, sizeof(line), "{\"type\":\"result\\u0073\",\"x\":\"%0*d\"}\n", 110, 0);
	say(&p, line);
	expect_error(&p, "IPC message too large (140 bytes, max 100)");
	pair_done(&p);
}

static long rss_kb(void)
{
	struct rusage u;

	ASSERT_EQ(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_maxrss;
}

TEST(an_endless_line_takes_bounded_memory)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, 1);
	static char junk[65536];
	cleanup_error struct cordon_error *e = NULL;
	struct wire_message m;
	long before = rss_kb();
	int r = 0;

	memset(junk, 'x', sizeof(junk));
	say(&p, "{\"type\":\"result\",\"id\":1,\"ok\":true,\"text\":\"");
	for (int i = 0; r == 0 && i < 16384; i++) { /* up to 1 GiB */
		(void)send(p.guest, junk, sizeof(junk), MSG_DONTWAIT);
		r = next(&p, &m, &e);
	}
	ASSERT_EQ(r, -CORDON_PROTOCOL);
	ASSERT(strstr(cordon_error_message(e), "IPC message too large ("));
	ASSERT(strstr(cordon_error_message(e), "max 8388608)"));
	ASSERT(rss_kb() - before < 40000);
	pair_done(&p);
}

TEST(a_guest_that_never_listens_is_held_back)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, UINT64_MAX);
	static char value[100000];
	struct wire_message m;
	char line[100];
	size_t most = 0;
	int handed = 0;

	memset(value, '1', sizeof(value));
	for (int i = 1; i <= 20000; i++) {
		int n = snprintf(line, sizeof(line),
				 "{\"type\":\"tool_call\",\"id\":1,\"call\":%d,\"tool\":\"a\"}\n",
				 i);
		if (send(p.guest, line, (size_t)n, MSG_DONTWAIT) < 0)
			break;
		if (!(wire_events(p.w) & POLLIN))
			continue;
		while (next(&p, &m, NULL) > 0) {
			handed++;
			ASSERT(wire_send_tool_value(p.w, 1, m.call, value, sizeof(value), NULL) >=
			       0);
		}
		if (wire_get_queued(p.w) > most)
			most = wire_get_queued(p.w);
	}
	ASSERT(handed > 2 && handed < 100);
	ASSERT(most < 1000000);
	/* Once it listens, everything flows again. */
	static char sink[1 << 20];
	int answers = 0;
	for (int idle = 0; idle < 3;) {
		ssize_t n = recv(p.guest, sink, sizeof(sink), MSG_DONTWAIT);
		for (ssize_t i = 0; i < n; i++)
			answers += sink[i] == '\n';
		idle = n > 0 ? 0 : idle + 1;
		ASSERT(wire_flush(p.w, NULL) >= 0);
		while (next(&p, &m, NULL) > 0)
			ASSERT(wire_send_tool_value(p.w, 1, m.call, "1", 1, NULL) >= 0);
	}
	ASSERT(answers > handed);
	pair_done(&p);
}
