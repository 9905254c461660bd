/* unit/session/test_result.c - what a result keeps, and how it is written as JSON and as text. */
#include "session/result.h"

#include "base/str.h"
#include "harness/test.h"

static struct cordon_result *made(void)
{
	struct cordon_result *r = result_new();

	ASSERT(r != NULL);
	buf_init(&r->out, 4096);
	buf_init(&r->err, 4096);
	return r;
}

TEST(an_empty_one_is_no_success)
{
	cleanup_result struct cordon_result *r = made();

	ASSERT(!cordon_result_success(r));
	ASSERT_STREQ(cordon_result_value_json(r), "null");
	ASSERT_EQ(cordon_result_exit_status(r), 1);
}

TEST(the_first_failure_stands)
{
	cleanup_result struct cordon_result *r = made();

	r->success = true;
	ASSERT_EQ(result_fail(r, "memory", "%d bytes", 5), 0);
	ASSERT_EQ(result_fail(r, "crashed", "later"), 0);
	ASSERT(!r->success);
	ASSERT_STREQ(cordon_result_error_kind(r), "memory");
	ASSERT_STREQ(cordon_result_error(r), "5 bytes");
}

TEST(exit_status_of_each_kind)
{
	static const struct {
		const char *kind;
		int code, status;
	} table[] = {
		{ "timeout", 1, 124 },   { "cpu", 1, 137 },       { "memory", 0, 137 },
		{ "denied", 1, 126 },    { "cancelled", 0, 125 }, { "protocol", 0, 125 },
		{ "internal", 0, 125 },  { "exception", 3, 3 },   { "exception", 0, 1 },
		{ "crashed", 139, 139 }, { "file_size", 0, 1 },
	};
	cleanup_result struct cordon_result *good = made();

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		cleanup_result struct cordon_result *r = made();

		r->exit_code = table[i].code;
		(void)result_fail(r, table[i].kind, "x");
		ASSERT_EQ(cordon_result_exit_status(r), table[i].status);
	}
	good->success = true;
	good->exit_code = 0;
	ASSERT_EQ(cordon_result_exit_status(good), 0);
}

TEST(the_json_of_a_success)
{
	cleanup_result struct cordon_result *r = made();

	r->success = true;
	r->value_json = str_dup("[1, 2]");
	r->text = str_dup("it's \"2\"");
	(void)buf_add(&r->out, "a\0b\xff\n", 5);
	r->time_ms = 1.5;
	r->cpu_ms = 0.25;
	r->memory_mb = 10;
	r->out_truncated = true;
	ASSERT_STREQ(
		cordon_result_json(r),
		"{\"success\": true, \"result\": [1, 2], \"result_text\": \"it's \\\"2\\\"\", "
		"\"stdout\": \"a\\u0000b\xef\xbf\xbd\\n\", \"stderr\": \"\", \"error\": null, "
		"\"error_kind\": null, \"exit_code\": 0, \"execution_time_ms\": 1.500, "
		"\"cpu_time_ms\": 0.250, \"memory_used_mb\": 10.00, \"truncated\": {\"stdout\": "
		"true, \"stderr\": false}, \"outputs\": [], \"tool_calls\": 0, \"denials\": [], "
		"\"warnings\": [], \"restarted\": false, \"assurance\": null}");
	size_t len = strlen(cordon_result_json(r));
	ASSERT_EQ(strlen(cordon_result_json(r)), len); /* made once */
	ASSERT(cordon_result_truncated(r, 1) && !cordon_result_truncated(r, 2));
}

TEST(the_json_of_an_exception)
{
	cleanup_result struct cordon_result *r = made();

	(void)result_fail(r, "syntax", "SyntaxError: no");
	r->is_claimed = true;
	r->exception_name = str_dup("SyntaxError");
	r->exception_message = str_dup("no");
	r->traceback = str_dup("line 1\n");
	r->exception_line = 1;
	r->tool_calls = 7;
	const char *text = cordon_result_json(r);
	ASSERT_HAS(text, "\"success\": false, \"result\": null, ");
	ASSERT_HAS(text, "\"error\": \"SyntaxError: no\", \"error_kind\": \"syntax\", "
			 "\"claimed\": true, \"exception\": {\"type\": \"exception\", \"name\": "
			 "\"SyntaxError\", \"message\": \"no\", \"traceback\": \"line 1\\n\", "
			 "\"line\": 1}, \"exit_code\": 0");
	ASSERT_HAS(text, "\"tool_calls\": 7");
	cleanup_json json_t *parsed = NULL;
	ASSERT_EQ(json_parse(text, strlen(text), 0, &parsed, NULL), 0);
}

TEST(a_loss_is_a_warning_and_the_hosts_own)
{
	cleanup_result struct cordon_result *r = made();

	ASSERT_EQ(result_warn(r, "slow \x1b[31mred"), 0);
	ASSERT_EQ(result_lose(r, "not saved"), 0);
	cleanup_free char *warnings = cordon_result_warnings_text(r);
	cleanup_free char *losses = cordon_result_losses_text(r);
	ASSERT_STREQ(losses, "warning: not saved\n");
	ASSERT_HAS(warnings, "warning: not saved\n");
	ASSERT_HAS(warnings, "warning: slow ");
	ASSERT(!strchr(warnings, '\x1b')); /* nothing that a terminal would obey */
}

TEST(texts_of_denials)
{
	cleanup_result struct cordon_result *r = made();
	cleanup_free char *none = cordon_result_denials_text(r);

	ASSERT_STREQ(none, "");
	json_array_append_new(result_array(&r->denials),
			      json_pack("{s:s, s:s, s:s, s:s}", "operation", "open", "target",
					"/a\nb", "layer", "landlock", "remedy", "mounts"));
	json_array_append_new(result_array(&r->denials), json_pack("{s:n}", "target"));
	cleanup_free char *text = cordon_result_denials_text(r);
	ASSERT_STREQ(text, "denied: open /a\\x0ab (landlock); to allow it: mounts\n"
			   "denied: ? (?); to allow it: none\n");
}

TEST(sanitizing_takes_the_traceback_and_paths)
{
	cleanup_result struct cordon_result *r = made();

	(void)result_fail(r, "exception", "cannot read /srv/secret/key.pem");
	r->exception_message = str_dup("at /srv/secret/key.pem");
	r->traceback = str_dup("File /srv/secret/x.py");
	result_sanitize(r);
	ASSERT(!strstr(r->error, "/srv/secret"));
	ASSERT(!strstr(r->exception_message, "/srv/secret"));
	ASSERT_STREQ(cordon_result_traceback(r), NULL);
}
