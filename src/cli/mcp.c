/* cli/mcp.c - `cordon mcp`: sandboxes as tools for an MCP client. */
#include <cordon/cordon.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/choice.h"
#include "cli/http_door.h"
#include "cli/trace_option.h"
#include "cli/verb.h"
#include "policy/public.h"
#include "serve/mcp/mcpstdio.h"

enum { MOUNTS_MAX = 64, STRICT_PROCESSES = 16 };

static int set_variables(struct cordon_policy *p, struct cordon_error **reterr)
{
	static const struct {
		const char *variable, *key;
	} table[] = { { "CORDON_TIMEOUT_MS", "timeout_ms=" },
		      { "CORDON_MEMORY_BYTES", "memory_bytes=" },
		      { "CORDON_FS_BYTES", "fs_bytes=" },
		      { "CORDON_NETWORK_ALLOW", "network.allow=" },
		      { "CORDON_NETWORK_BLOCK", "network.block=" } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(table) / sizeof(*table); i++) {
		const char *value = getenv(table[i].variable);
		if (value)
			r = choice_set(p, table[i].key, value, reterr);
	}
	return r;
}

/* CORDON_MOUNT_1, CORDON_MOUNT_2, ... until one is not set. */
static int mount_variables(struct cordon_policy *p, struct cordon_error **reterr)
{
	const char *mount;
	char name[32];
	int r = 0;

	for (int i = 1; r == 0 && i <= MOUNTS_MAX; i++) {
		snprintf(name, sizeof(name), "CORDON_MOUNT_%d", i);
		mount = getenv(name);
		if (!mount)
			return 0;
		if (i == 1)
			r = choice_set(p, "mounts=", "", reterr);
		if (r == 0)
			r = choice_add_mount(p, mount, reterr);
		if (r < 0)
			return err_wrap(reterr, r, "%s", name);
	}
	return r;
}

/* A list on the command line replaces the lists of earlier sources. */
static int make_room(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr)
{
	static const struct {
		const char *option, *key;
	} table[] = { { "mount", "mounts=" },
		      { "allow-host", "network.allow=" },
		      { "network-allow", "network.allow=" },
		      { "block-host", "network.block=" },
		      { "network-block", "network.block=" } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(table) / sizeof(*table); i++)
		if (cli_has(c, table[i].option))
			r = choice_set(p, table[i].key, "", reterr);
	return r;
}

/* The number of level strict is for one interpreter. A sandbox for all languages has about twenty
 * processes and threads before any code runs. A number in a file or in --set is somebody's choice,
 * and stays. */
static int make_room_for_languages(const struct cli *c, struct cordon_policy *p,
				   struct cordon_error **reterr)
{
	if (getenv("CORDON_CONFIG") || cli_has(c, "policy") || cli_has(c, "profile"))
		return 0;
	if (p->p.processes != STRICT_PROCESSES)
		return 0;
	return choice_set(p, "processes=", "50", reterr);
}

/* default < file < environment < options: runs after the files and before the options. */
static int environment(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr)
{
	const char *value;
	int r = make_room_for_languages(c, p, reterr);

	if (r == 0)
		r = set_variables(p, reterr);
	if (r == 0)
		r = mount_variables(p, reterr);
	if (r == 0)
		r = make_room(c, p, reterr);
	for (size_t i = 0; r == 0 && (value = cli_value_at(c, "network-allow", i)); i++)
		r = choice_set(p, "network.allow+=", value, reterr);
	for (size_t i = 0; r == 0 && (value = cli_value_at(c, "network-block", i)); i++)
		r = choice_set(p, "network.block+=", value, reterr);
	return r;
}

static void log_traces(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "cordon: mcp: %s\n", text);
}

static int serve_stdio(const struct cli *c, struct mcp_options *o, int out)
{
	cleanup_error struct cordon_error *e = NULL;
	struct trace_option traces = { 0 };
	int r = trace_option_read(c, &traces, &e);

	traces.tracer.report = log_traces;
	if (r == 0 && traces.tracer.url)
		r = tracer_new(&traces.tracer, &o->tracer, &e);
	trace_option_done(&traces);
	if (r < 0)
		return cli_fail(c, e);
	if (mcpstdio_serve(o, STDIN_FILENO, out, &e) < 0)
		_exit(cli_fail(c, e)); /* threads may still run: no destructors */
	o->tracer = tracer_free(o->tracer);
	return 0;
}

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_choice struct cordon_policy *policy = NULL;
	cleanup_error struct cordon_error *e = NULL;
	const char *tools = cli_value(c, "tools");

	(void)argc;
	(void)argv;
	if (choice_policy_between(c, getenv("CORDON_CONFIG"), environment, &policy, &e) < 0)
		return choice_fail(c, e);
	struct mcp_options o = { .policy = policy, .lists_all = str_eq(tools, "full") };
	if (tools && !o.lists_all && !str_eq(tools, "short"))
		return cli_usage(c, "--tools is short or full");
	(void)signal(SIGPIPE, SIG_IGN);
	if (cli_has(c, "http"))
		return http_door_serve_mcp(c, &o);
	/* Only messages may reach the client on stdout. All other output goes to stderr. */
	int out = dup(STDOUT_FILENO);
	if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		cli_error(c, "cannot set up the standard streams");
		return cordon_code_exit_status(CORDON_OS);
	}
	return serve_stdio(c, &o, out);
}

static const struct cli_option options[] = {
	CHOICE_OPTIONS,
	{ "network-allow", 0, "HOST[:PORT]", "the same as --allow-host", true },
	{ "network-block", 0, "HOST[:PORT]", "the same as --block-host", true },
	{ "tools", 0, "short|full",
	  "short (default): a few tools, results cut for a model; full: all, whole", false },
	TRACE_OPTION,
	{ "http", 0, "ADDRESS:PORT", "serve Streamable HTTP at /mcp there; port 0: any", false },
	{ "token-file", 0, "FILE", "with --http: the token that clients must send", false },
	{ "no-token", 0, NULL, "with --http: require no token (loopback only)", false },
	{ "http-host", 0, "NAME", "with --http: also accept this name in Host and Origin", true },
	{ "public", 0, NULL, "with --http: allow an address outside the loopback", false },
	{ 0 },
};

static const struct cli_example examples[] = {
	{ "cordon mcp --level strict", "the command to configure in an MCP client" },
	{ "cordon mcp --mount /srv/data:/data:ro", "with a read-only folder" },
	{ "cordon mcp --tools full", "every tool under a name of its own, for programs" },
	{ "cordon mcp --http 127.0.0.1:8123 --token-file ~/.cordon/token",
	  "for clients that use HTTP" },
	{ 0 },
};

const struct verb verb_mcp = {
	.name = "mcp",
	.summary = "serve an MCP client (Model Context Protocol)",
	.usage = "[OPTION...]",
	.options = options,
	.run = run,
	.about = "Offers run_code, run_command, read_file, write_file, list_files and "
		 "manage_sandbox as tools, over standard input and output or over HTTP "
		 "(docs/mcp.md). With --tools full, each action of manage_sandbox is a tool of "
		 "its own, and long results are not cut.\n\n"
		 "The policy comes from these sources. Later ones override earlier ones, and a "
		 "list replaces the list before it:\n"
		 "- the level\n"
		 "- the files that CORDON_CONFIG and --policy name\n"
		 "- CORDON_TIMEOUT_MS, CORDON_MEMORY_BYTES, CORDON_FS_BYTES\n"
		 "- CORDON_NETWORK_ALLOW, CORDON_NETWORK_BLOCK\n"
		 "- CORDON_MOUNT_1, CORDON_MOUNT_2 and so on\n"
		 "- the options\n\n"
		 "All languages share one sandbox and its limits, so the 16 processes of level "
		 "strict become 50, unless there is a policy file or --set names a "
		 "number.\n\n"
		 "With --otlp it sends traces to a collector (docs/operations.md); "
		 "OTEL_EXPORTER_OTLP_ENDPOINT and the like do the same.\n\n"
		 "With --http it listens on the loopback, or on any address with --public. "
		 "Clients must send a token (from --token-file or CORDON_MCP_TOKEN, otherwise "
		 "one is made and printed), and their Host and Origin must name this server. "
		 "There is no TLS: beyond the loopback, put a proxy in front of it.",
	.examples = examples,
};
