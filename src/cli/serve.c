/* cli/serve.c - `cordon serve`: one HTTP server for programs, models and people. */
#include <cordon/cordon.h>
#include <signal.h>

#include "cli/choice.h"
#include "cli/http_door.h"
#include "cli/trace_option.h"
#include "cli/verb.h"

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_choice struct cordon_policy *policy = NULL;
	cleanup_error struct cordon_error *e = NULL;

	if (choice_policy(c, NULL, &policy, &e) < 0)
		return choice_fail(c, e);
	if (cli_has(c, "listen") && cli_has(c, "socket"))
		return cli_usage(c, "--listen and --socket exclude each other");
	if (cli_has(c, "tls-cert") != cli_has(c, "tls-key"))
		return cli_usage(c, "--tls-cert and --tls-key come together");
	(void)signal(SIGPIPE, SIG_IGN);
	return http_door_serve(c, policy, argc, argv);
}

static const char *const words[] = { "key", NULL };

static const struct cli_option options[] = {
	CHOICE_OPTIONS,
	{ "listen", 0, "ADDRESS:PORT", "where to listen; default 127.0.0.1:8123, port 0: any",
	  false },
	{ "socket", 0, "PATH", "listen at a Unix socket instead", false },
	{ "host", 0, "NAME", "also accept this name in Host and Origin", true },
	{ "tls-cert", 0, "FILE", "certificates of the server, PEM; with --tls-key", false },
	{ "tls-key", 0, "FILE", "its private key, PEM", false },
	{ "grace", 0, "TIME", "how long running code may go on at the end; default 30s", false },
	{ "park", 0, "TIME", "park sessions unused for so long; default 30m; none: never", false },
	{ "keep", 0, "TIME", "how long parked sessions are kept; default 168h", false },
	{ "log", 0, NULL, "write a JSON line to stderr for each request", false },
	TRACE_OPTION,
	{ "no-keys", 0, NULL, "require no key: everybody is an administrator", false },
	{ "allow-plaintext", 0, NULL, "let other machines reach it without TLS", false },
	{ "allow-no-keys", 0, NULL, "let other machines reach it without a key", false },
	{ "state", 0, "DIRECTORY", "where keys, audit logs and sessions are kept", false },
	{ "templates", 0, "DIRECTORY", "policy files for the E2B API: NAME.json is template NAME",
	  false },
	{ "admin", 0, NULL, "key add: an administrator's key", false },
	{ "max-sessions", 0, "N", "key add: sessions at once; default 64", false },
	{ "max-executions", 0, "N", "key add: executions at once; default 64", false },
	{ "max-memory", 0, "SIZE", "key add: memory of all its sessions together", false },
	{ "rate", 0, "N/s", "key add: requests a second", false },
	{ "expires", 0, "TIME", "key add: valid for so long: 12h, 30m", false },
	{ 0 },
};

static const struct cli_example examples[] = {
	{ "cordon serve", "at 127.0.0.1:8123; the first start prints an administrator's key" },
	{ "cordon serve key add alice --level strict --max-sessions 8 --rate 20/s",
	  "a key whose sessions are strict, or narrower; printed once" },
	{ "cordon serve key list", "all keys, without their text" },
	{ "cordon serve key revoke alice", "its sessions end within a second" },
	{ "cordon serve --socket ~/.cordon/serve.sock", "at a Unix socket" },
	{ "cordon serve --listen 0.0.0.0:8443 --tls-cert c.pem --tls-key k.pem --host box.example",
	  "for other machines" },
	{ "cordon serve --log --otlp http://127.0.0.1:4318", "with traces for a collector" },
	{ 0 },
};

const struct verb verb_serve = {
	.name = "serve",
	.summary = "serve programs over HTTP",
	.usage = "[OPTION...] [key add NAME | key list | key revoke NAME]",
	.options = options,
	.run = run,
	.words = words,
	.max_operands = 3,
	.about =
		"Serves sessions and executions over HTTP (docs/serve.md, docs/openapi.json). The "
		"options set the policy of sessions that name no level.\n\n"
		"Clients send a key: Authorization: Bearer KEY, or X-API-Key: KEY. A key has a "
		"policy, which its sessions can only narrow, and quotas; it sees only its own "
		"sessions, files and audit log. An administrator's key has no limit. What is "
		"kept is the hash of a key. CORDON_SERVE_KEY is an administrator's key that is "
		"not kept.\n\n"
		"An address that other machines reach needs TLS and keys, unless the options say "
		"otherwise by name; its name in Host and Origin must be given with --host.\n\n"
		"A session that nobody uses is parked: its files, environment and working "
		"directory go to a file, and the next request brings it back, also after a "
		"restart of the server. Variables and processes are lost; the answer says so. "
		"Sessions with commands in the background are not parked before the end, and those "
		"with a saved "
		"workspace are saved anyway.\n\n"
		"On SIGTERM it takes no new work; code that runs may go on for --grace, then it "
		"is ended, and all sessions are parked. A second signal ends the grace at once. It "
		"takes over a socket from systemd "
		"(socket activation) and tells it when it is ready (Type=notify).\n\n"
		"With --otlp it sends traces to a collector of OpenTelemetry as OTLP over HTTP, in "
		"JSON (docs/operations.md). The variables of OpenTelemetry do the same: "
		"OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, "
		"OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_SERVICE_NAME.\n\n"
		"Keys, audit logs and sessions are in --state, STATE_DIRECTORY (of systemd), or "
		"~/.local/state/cordon/serve. One server uses it at a time.",
	.examples = examples,
};
