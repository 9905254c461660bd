/* fault/fault_serve.c - RPC and MCP servers when memory runs out, with a fake library
 * (serve/fake.c). Answers may be cut short; nothing may crash, leak or stay open. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/fault.h"
#include "policy/public.h"
#include "serve/fake.h"
#include "serve/mcp/mcp.h"
#include "serve/rpc/rpc.h"

/* A sanitizer looks for leaks after every round, which takes longer than the round. */
#ifdef __SANITIZE_ADDRESS__
enum { STRIDE = 11 };
#else
enum { STRIDE = 1 };
#endif

static void talk_rpc(const char *const *lines, size_t count)
{
	int out = memfd_create("answers", MFD_CLOEXEC);
	struct rpc *c = rpc_new(&(struct rpc_options){ .in_fd = -1, .out_fd = out });

	ASSERT(c || fault_was_hit());
	for (size_t i = 0; c && i < count; i++)
		(void)rpc_take_line(c, lines[i], strlen(lines[i]));
	if (c)
		rpc_free(c);
	close(out);
}

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
		const char *pair[] = { lines[0], lines[i] };
		FAULT_LOOP
		talk_rpc(pair, 2);
	}
}

#define Q(method, params)                                                                          \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"

TEST(rpc_sessions)
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
		Q("session.execute", "\"code\":\"1\",\"language\":\"r\",\"context\":\"a\""),
		Q("session.context", "\"language\":\"r\""),
		Q("session.command", "\"command\":\"ls\",\"env\":{\"A\":\"b\"},\"stream\":true"),
		Q("session.command", "\"command\":\"ls\",\"background\":true"),
		Q("process.list", ""),
		Q("process.wait", "\"process\":1"),
		Q("process.signal", "\"process\":1,\"signal\":\"INT\""),
		Q("process.resize", "\"process\":1,\"rows\":2,\"columns\":3"),
		Q("process.write", "\"process\":1,\"data\":\"AA==\",\"eof\":true"),
		Q("process.output", "\"process\":1"),
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

TEST(rpc_files_and_the_rest)
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
		Q("pod.list", ""),
		Q("pod.add", "\"name\":\"x\",\"data\":\"AAAA\""),
		Q("fetch", "\"url\":\"http://h/\",\"headers\":[\"A: b\"],\"body_base64\":\"AAAA\""),
		Q("doctor", ""),
		Q("doctor.prove", "\"quick\":true"),
		Q("audit.verify", "\"path\":\"/x\""),
		Q("session.open", "\"levl\":\"strict\""),
	};

	each_rpc(lines, sizeof(lines) / sizeof(*lines));
}

/* Whoever asked for an allowlist and a deadline gets no session without them, for want of memory or
 * not. */
static void expect_what_was_asked_for(const struct cordon_session_options *o)
{
	const struct policy *p = &o->policy->p;

	ASSERT_EQ(p->timeout_ms, 77);
	ASSERT(!p->commands.all);
	ASSERT_EQ(p->commands.names.count, 1u);
	ASSERT_STREQ(p->commands.names.items[0], "ls");
	ASSERT_EQ(p->mount_count, 1);
}

TEST(no_session_is_weaker_than_asked_for)
{
	static const char *const lines[] = {
		Q("create",
		  "\"timeoutMs\":77,\"security\":{\"toolAllowlist\":[\"ls\"]},\"mounts\":[{"
		  "\"path\":\"/mnt/a\",\"files\":{\"f\":\"AA==\"}}]"),
		Q("offload", ""),
		Q("rehydrate", ""),
	};
	static const char *const opened[] = {
		Q("session.open",
		  "\"set\":[\"timeout_ms=77\"],\"policy\":{\"commands\":[\"ls\"],\"mounts\":"
		  "[{\"guest\":\"/mnt/a/f\",\"bytes_base64\":\"AA==\"}]}"),
	};

	fake_on_open = expect_what_was_asked_for;
	FAULT_LOOP
	talk_rpc(lines, 3);
	FAULT_LOOP
	talk_rpc(opened, 1);
}

TEST(rpc_policies)
{
	static const char *const lines[] = {
		Q("version", ""),
		Q("policy.show", "\"level\":\"strict\""),
		Q("policy.check",
		  "\"policy\":{\"timeout_ms\":5,\"network\":{\"allow\":[\"a.example\"]}}"),
		Q("policy.check", "\"policy\":{\"timout_ms\":5}"),
		Q("policy.diff", "\"a\":{\"level\":\"strict\"},\"b\":{\"set\":[\"timeout_ms=5\"]}"),
		Q("session.open",
		  "\"level\":\"strict\",\"set\":[\"timeout_ms=5\"],\"policy\":{\"commands\":["
		  "\"ls\"]},"
		  "\"host_tools\":[{\"name\":\"h\",\"command\":[\"/bin/true\"]}],\"verbose\":true"),
		Q("session.run", "\"code\":\"a text that is longer than sixteen bytes\""),
		"{\"a key that is longer than sixteen bytes\":\"and a value longer than that, "
		"too\"}",
		"not json, and longer than sixteen bytes",
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

TEST(mcp_messages)
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
		CALL("run_code", "\"code\":\"long\",\"language\":\"Python\""),
		CALL("run_code", "\"code\":\"1\",\"language\":\"ts\""),
		CALL("run_command", "\"command\":\"ls\""),
		CALL("write_file", "\"path\":\"/a\",\"contents\":\"AAAA\",\"encoding\":\"base64\""),
		CALL("read_file", "\"path\":\"/a\""),
		CALL("list_directory", ""),
		CALL("create_sandbox", "\"label\":\"x\""),
		CALL("list_sandboxes", ""),
		CALL("list_files", "\"path\":\"/\""),
		CALL("manage_sandbox", "\"action\":\"create\",\"language\":\"R\""),
		CALL("manage_sandbox", "\"action\":\"restart\",\"sandboxId\":\"sess_1\""),
		CALL("import_state", "\"data\":\"AAAA\""),
		CALL("snapshot", "\"sandbox_id\":\"sess_1\""),
		CALL("fork", "\"sandbox_id\":\"sess_1\""),
		CALL("export_state", "\"sandbox_id\":\"sess_1\""),
		CALL("nope", ""),
		Q("nope", ""),
	};
	const struct mcp_sink sink = { .send = drop };
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
