/* fault/fault_serve.c - both front doors when memory runs out, before a library that does nothing.
 * What the client hears may be cut short; nothing may crash, leak or stay open. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/fault.h"
#include "serve/mcp.h"
#include "serve/rpc.h"

/* A sanitizer looks for leaks after every round, which takes longer than the round. */
#ifdef __SANITIZE_ADDRESS__
enum { STRIDE = 11 };
#else
enum { STRIDE = 1 };
#endif

static void talk_rpc(json_t *const *messages, size_t count)
{
	int out = memfd_create("answers", MFD_CLOEXEC);
	struct rpc *c = rpc_new(&(struct rpc_options){ .in_fd = -1, .out_fd = out });

	ASSERT(c || fault_was_hit());
	for (size_t i = 0; c && i < count; i++)
		(void)rpc_take_message(c, messages[i]);
	if (c)
		rpc_free(c);
	close(out);
}

/* jansson's parser does not survive the loss of a string's memory (it asserts), so it has some
 * here; what parses again inside, as the policy's methods do, is left to the rooms it belongs to.
 */
static json_t *parse(const char *line)
{
	json_t *message = NULL;

	ASSERT(json_parse(line, strlen(line), 0, &message, NULL) == 0);
	return message;
}

/* Each line by itself, after the sandbox was made. */
static void each_rpc(const char *const *lines, size_t count)
{
	for (size_t i = 1; i < count; i += STRIDE) {
		json_t *pair[] = { parse(lines[0]), parse(lines[i]) };
		FAULT_LOOP
		talk_rpc(pair, 2);
		json_decref(pair[0]);
		json_decref(pair[1]);
	}
}

#define Q(method, params)                                                                          \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"

TEST_WITHIN(rpc_sessions, 120)
{
	static const char *const lines[] = {
		Q("initialize", "\"protocol\":1"),
		Q("create",
		  "\"env\":{\"A\":\"b\"},\"extensions\":[{\"name\":\"t\",\"args\":{\"a\":"
		  "\"number\"}}],\"mounts\":[{\"path\":\"/mnt/a\",\"files\":{\"f\":\"AA==\"}}]"),
		Q("initialize", "\"protocol\":1"),
		Q("run", "\"command\":\"echo hi\",\"stream\":true"),
		Q("session.execute",
		  "\"code\":\"1\",\"context\":{\"x\":1},\"stdin_base64\":\"AA==\""),
		Q("env.set", "\"name\":\"B\",\"value\":\"c\""),
		Q("env.get", "\"name\":\"B\""),
		Q("mount", "\"path\":\"/mnt/b\",\"files\":{\"g\":\"AA==\"}"),
		Q("offload", ""),
		Q("sandbox.fork", ""),
		Q("sandbox.create", "\"label\":\"l\""),
		Q("sandbox.list", ""),
		Q("shell.history.list", ""),
		Q("session.describe", ""),
		Q("session.list", ""),
		Q("approval.resolve", "\"id\":\"x\",\"value\":{\"a\":1}"),
		Q("sandbox.destroy", ""),
		"[]",
		"{\"id\":\"cb_1\",\"result\":{\"value\":1}}",
		Q("nope", ""),
	};

	each_rpc(lines, sizeof(lines) / sizeof(*lines));
}

TEST_WITHIN(rpc_files_and_the_rest, 120)
{
	static const char *const lines[] = {
		Q("create", ""),
		Q("files.write", "\"path\":\"/a\",\"data\":\"AA==\""),
		Q("files.read", "\"path\":\"/a\""),
		Q("files.read", "\"path\":\"/a\",\"offset\":1,\"length\":9"),
		Q("files.stat", "\"path\":\"a\""),
		Q("files.list", "\"path\":\"/a\""),
		Q("files.export", ""),
		Q("files.import", "\"data\":\"AAAA\""),
		Q("files.get_tar", "\"path\":\"/a\""),
		Q("files.put_tar", "\"path\":\"/a\",\"data\":\"AAAA\""),
		Q("snapshot.create", ""),
		Q("snapshot.list", ""),
		Q("snapshot.restore", "\"id\":\"1\""),
		Q("project.open", "\"directory\":\"/x\""),
		Q("project.apply", "\"paths\":[\"a\",\"b\"]"),
		Q("saved.list", ""),
		Q("sanitize", "\"message\":\"/home/x\""),
		Q("validate", "\"code\":\"1\""),
		Q("pool.open", "\"size\":1"),
	};

	each_rpc(lines, sizeof(lines) / sizeof(*lines));
}

static bool drop(const json_t *message, void *arg)
{
	(void)arg;
	return message != NULL;
}

#define CALL(name, args)                                                                           \
	Q("tools/call", "\"name\":\"" name "\",\"arguments\":{" args "},\"_meta\":{}")

TEST_WITHIN(mcp_messages, 120)
{
	static const char *const lines[] = {
		Q("initialize", "\"protocolVersion\":\"2025-11-25\""),
		Q("server/discover", ""),
		Q("tools/list", ""),
		Q("resources/list", ""),
		Q("resources/read", "\"uri\":\"cordon://policy\""),
		Q("resources/read", "\"uri\":\"x\""),
		Q("logging/setLevel", "\"level\":\"debug\""),
		CALL("run_code", "\"code\":\"1\""),
		CALL("run_command", "\"command\":\"ls\""),
		CALL("write_file", "\"path\":\"/a\",\"contents\":\"AAAA\",\"encoding\":\"base64\""),
		CALL("read_file", "\"path\":\"/a\""),
		CALL("list_directory", ""),
		CALL("create_sandbox", "\"label\":\"x\""),
		CALL("list_sandboxes", ""),
		CALL("import_state", "\"data\":\"AAAA\""),
		CALL("snapshot", "\"sandbox_id\":\"sess_1\""),
		CALL("fork", "\"sandbox_id\":\"sess_1\""),
		CALL("export_state", "\"sandbox_id\":\"sess_1\""),
		CALL("nope", ""),
		Q("nope", ""),
	};
	const struct mcp_sink sink = { drop, NULL };
	const struct mcp_options o = { 0 };

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i += STRIDE) {
		json_t *message = parse(lines[i]);
		FAULT_LOOP
		{
			struct mcp m;
			mcp_init(&m, &o);
			json_decref(mcp_handle(&m, message, &sink));
			mcp_done(&m);
		}
		json_decref(message);
	}
}
