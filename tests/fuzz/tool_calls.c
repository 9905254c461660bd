/* fuzz/tool_calls.c - tool calls made of fragments, through the wire: whatever a guest sends, a
 * handler only gets arguments that fit its schema, and every call is answered once. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "tools/tool_calls.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HELLO "{\"type\":\"hello\",\"version\":1,\"token\":\"" TOKEN "\"}\n"

enum { MAX_CALLS = 5 };

static void check(int is_true)
{
	if (!is_true)
		abort();
}

/* Independent of the schema: {"a": number, "b"?: string of at most 3 or null, "c"?: [integer,
 * ...]}. */
static enum cordon_answer handle(struct cordon_call *c, void *arg)
{
	cleanup_json json_t *args = NULL;
	const char *text = cordon_call_args(c), *key;
	json_t *value;
	int *handled = arg;

	check(++*handled <= MAX_CALLS);
	check(json_parse(text, strlen(text), 0, &args, NULL) == 0 && json_is_object(args));
	json_t *a = json_object_get(args, "a"), *list = json_object_get(args, "c");
	check(json_is_number(a) || json_is_object(a)); /* a big or special number has a tag */
	check(!json_is_object(a) || json_object_get(a, "$"));
	json_object_foreach(args, key, value)
	{
		check(strcmp(key, "a") == 0 || strcmp(key, "b") == 0 || strcmp(key, "c") == 0);
		if (strcmp(key, "b") == 0)
			check(json_is_null(value) ||
			      (json_is_string(value) && json_string_length(value) <= 12));
	}
	for (size_t i = 0; i < json_array_size(list); i++)
		check(!json_is_string(json_array_get(list, i)));
	check(cordon_call_value(c, "[1]", NULL) == 0);
	return CORDON_ANSWER_VALUE;
}

static const char *const fragments[] = {
	"{\"type\":\"tool_call\",\"id\":1,\"call\":",
	"1,\"tool\":\"add\",\"args\":{",
	"2,\"tool\":\"add\",\"args\":{",
	"3,\"tool\":\"add\",\"args\":{",
	"4,\"tool\":\"..\",\"args\":{",
	"5,\"tool\":\"extensions\",\"args\":{\"args\":[\"list\"]",
	"6,\"tool\":\"other\",\"args\":{",
	"\"a\":",
	"\"b\":",
	"\"c\":",
	"\"evil\":",
	"1",
	"2.5",
	"\"x\"",
	"\"long text\"",
	"null",
	"true",
	"[",
	"]",
	"{",
	"}",
	",",
	"{\"$\":\"float\",\"v\":\"nan\"}",
	"{\"$\":\"float\",\"v\":[1]}",
	"{\"$\":\"vec\",\"t\":\"int\",\"v\":[1,2]}",
	"{\"$\":\"int\",\"v\":\"99999999999999999999\"}",
	"{\"$\":\"bytes\",\"v\":\"AA==\"}",
	"}}\n",
	"}}\n",
	"\n",
};

static void run(struct tool_calls *d, const char *bytes, size_t len)
{
	struct wire_options opts = { .token = TOKEN, .message_bytes = 4000 };
	struct wire_message m;
	struct wire *w = NULL;
	struct tool_calls_answer a;
	int fds[2], r = 0;

	check(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	check(wire_new(fds[0], &opts, &w, NULL) == 0);
	check(send(fds[1], HELLO, strlen(HELLO), 0) > 0);
	check(wire_fill(w, NULL) == 1 && wire_next(w, &m, NULL) == 1);
	wire_begin(w, 1, MAX_CALLS);
	tool_calls_begin(d, MAX_CALLS);
	check(send(fds[1], bytes, len, 0) == (ssize_t)len);
	while (r >= 0 && wire_fill(w, NULL) > 0)
		while ((r = wire_next(w, &m, NULL)) > 0) {
			if (m.type != WIRE_TOOL_CALL)
				continue;
			check(tool_calls_dispatch(d, m.call, m.tool.data, m.args.data, m.args.len,
						  &a, NULL) == 1);
			check(a.call == m.call && a.text && strlen(a.text) == a.len);
			check(a.is_error == (a.cause != TOOL_CALLS_VALUE));
		}
	tool_calls_end(d);
	wire_free(w);
	close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_buf struct buf b = { 0 };
	cleanup_policy struct policy policy = { 0 };
	struct cordon_tools *tools = NULL;
	struct tool_calls *d = NULL;
	int handled = 0;
	struct cordon_tool add = {
		.name = "add",
		.fn = handle,
		.arg = &handled,
		.args_json = "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\"},"
			     "\"b\":{\"anyOf\":[{\"type\":\"string\",\"maxLength\":3},{\"type\":"
			     "\"null\"}]},"
			     "\"c\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}},"
			     "\"required\":[\"a\"],\"$defs\":{\"n\":{\"type\":\"number\"}}}",
	};

	if (size == 0 || size > 400)
		return 0;
	buf_init(&b, 60000);
	for (size_t i = 0; i < size; i++)
		(void)buf_add_str(&b,
				  fragments[data[i] % (sizeof(fragments) / sizeof(*fragments))]);
	check(policy_init_level(&policy, LEVEL_STANDARD, NULL) == 0);
	check(cordon_tools_new(&tools, NULL) == 0);
	check(cordon_tools_add(tools, &add, NULL) == 0);
	struct tool_calls_options opts = { .tools = tools, .policy = &policy, .session = "sess_1" };
	check(tool_calls_new(&opts, &d, NULL) == 0);
	if (b.len > 0)
		run(d, b.data, b.len);
	tool_calls_free(d);
	cordon_tools_unref(tools);
	return 0;
}
