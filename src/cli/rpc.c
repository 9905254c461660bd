/* cli/rpc.c - `cordon rpc`: the whole library for a client program, over JSON-RPC. */
#include <cordon/cordon.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/os.h"
#include "cli/choice.h"
#include "cli/companion.h"
#include "cli/verb.h"
#include "serve/rpc/rpc.h"
#include "serve/rpc/socket.h"

struct client {
	int fd;
	const struct cordon_policy *policy;
};

static void *serve_client(void *arg)
{
	cleanup_free struct client *c = arg;
	struct rpc_options o = {
		.in_fd = c->fd, .out_fd = c->fd, .policy = c->policy, .program = OS_PROGRAM
	};

	cleanup_error struct cordon_error *e = NULL;
	int r = rpc_serve(&o, &e);
	if (r < 0)
		log_error_chain("rpc", e); /* the client is gone, so this only goes to the log */
	if (r == 0 || cordon_error_code(e) == CORDON_OS)
		close(c->fd);
	return NULL;
}

static int serve_socket(const struct cli *c, const char *path, const struct cordon_policy *policy)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_close int listener = -1;

	if (socket_listen(path, &listener, &e) < 0)
		return cli_fail(c, e);
	for (;;) {
		struct client *client = mem_alloc(sizeof(*client));
		pthread_t thread;

		if (!client || socket_accept(listener, &client->fd, &e) < 0) {
			free(client);
			return cli_fail(c, e);
		}
		client->policy = policy;
		if (pthread_create(&thread, NULL, serve_client, client) != 0) {
			rpc_turn_away(client->fd);
			close(client->fd);
			free(client);
			continue;
		}
		(void)pthread_detach(thread);
	}
}

/* The key stays in the environment: arguments can be seen by other users. */
static int connect_server(const struct cli *c)
{
	const char *server = cli_value(c, "server"), *ca = cli_value(c, "ca");
	char program[PATH_MAX];

	if (c->given_count > 1U + (ca != NULL))
		return cli_usage(
			c, "--server goes only with --ca: the server has a policy of its own");
	if (!companion_find("cordon-connect", program, sizeof(program))) {
		cli_error(c, "cordon-connect is missing: install all of cordon");
		return cordon_code_exit_status(CORDON_UNSUPPORTED);
	}
	(void)execl(program, "cordon-connect", server, ca, NULL);
	cli_error(c, "cannot start %s", program);
	return cordon_code_exit_status(CORDON_OS);
}

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_choice struct cordon_policy *policy = NULL;
	cleanup_error struct cordon_error *e = NULL;
	const char *path = cli_value(c, "socket");

	(void)argc;
	(void)argv;
	if (cli_has(c, "server"))
		return connect_server(c);
	if (cli_has(c, "ca"))
		return cli_usage(c, "--ca is for --server");
	if (choice_policy(c, NULL, &policy, &e) < 0)
		return choice_fail(c, e);
	(void)signal(SIGPIPE, SIG_IGN);
	if (path)
		return serve_socket(c, path, policy);
	/* Only messages may reach the client on stdout. All other output goes to stderr. */
	int out = dup(STDOUT_FILENO);
	if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		cli_error(c, "cannot set up the standard streams");
		return cordon_code_exit_status(CORDON_OS);
	}
	struct rpc_options o = {
		.in_fd = STDIN_FILENO, .out_fd = out, .policy = policy, .program = OS_PROGRAM
	};
	if (rpc_serve(&o, &e) < 0)
		_exit(cli_fail(c, e)); /* threads may still run: no destructors */
	return 0;
}

static const struct cli_option options[] = {
	CHOICE_OPTIONS,
	{ "socket", 0, "PATH", "listen at a Unix socket instead of standard input", false },
	{ "server", 0, "URL",
	  "connect to a cordon serve: https://HOST, http:// on the loopback, unix:PATH", false },
	{ "ca", 0, "FILE", "trust these authorities for --server instead of the system's", false },
	{ 0 },
};

static const struct cli_example examples[] = {
	{ "cordon rpc", "the clients for Python, R and Node start this" },
	{ "cordon rpc --level strict --socket ~/.cordon/rpc.sock",
	  "for many programs of one user; strict by default" },
	{ "CORDON_KEY=... cordon rpc --server https://cordon.example",
	  "standard input and output to a server" },
	{ 0 },
};

const struct verb verb_rpc = {
	.name = "rpc",
	.summary = "serve a program over JSON-RPC",
	.usage = "[OPTION...]",
	.options = options,
	.run = run,
	.about =
		"Speaks JSON-RPC 2.0, one message per line (docs/rpc.md): sessions, executions "
		"with streamed output, tools that the client implements, files, snapshots, "
		"pools, policies. The options set the policy of sessions that name no level. "
		"When the client is gone, everything it owned ends within a second.\n\n"
		"With --server it connects standard input and output to a cordon serve. The key is "
		"the environment variable CORDON_KEY. A failure is the answer to the first line.",
	.examples = examples,
};
