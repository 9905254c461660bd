/* cli/http_server.c - in cordon-http: `cordon serve` until a signal ends it. */
#include "cli/http_server.h"

#include <cordon/cordon.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/choice.h"
#include "cli/http_door.h"
#include "cli/supervisor_notice.h"
#include "cli/trace_option.h"
#include "policy/policy.h"
#include "serve/server/server.h"

#define KEEP_MS (7ULL * 24 * 3600 * 1000)
enum { GRACE_MS = 30000, PARK_MS = 1800000, LOOK_NS = 20000000, PEM_MAX = 1 << 20 };

/* How the server ends, and who hears of it. */
struct ending {
	sigset_t ends;
	uint64_t grace_ms;
	struct supervisor_notice notice;
};

char *http_server_state(const struct cli *c)
{
	const char *named = cli_value(c, "state"), *unit = getenv("STATE_DIRECTORY");
	const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	cleanup_free char *here = named && named[0] != '/' ? getcwd(NULL, 0) : NULL;
	if (named)
		return here ? str_printf("%s/%s", here, named) : str_dup(named);
	if (unit && *unit)
		return str_ndup(unit, strcspn(unit, ":"));
	if (xdg && *xdg)
		return str_printf("%s/cordon/serve", xdg);
	return home && *home ? str_printf("%s/.local/state/cordon/serve", home)
			     : str_dup("/var/lib/cordon/serve");
}

static void block_signals(sigset_t *ends)
{
	(void)sigemptyset(ends);
	(void)sigaddset(ends, SIGINT);
	(void)sigaddset(ends, SIGTERM);
	(void)sigaddset(ends, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, ends, NULL); /* before any thread starts */
}

/* The first start makes a key, because otherwise nobody could make one over HTTP. */
static int make_first_key(struct server *s, struct cordon_error **reterr)
{
	const struct key k = { .name = KEY_ADMIN_NAME, .is_admin = true };
	struct keys all = { 0 };
	char text[KEY_TEXT_BYTES];
	int r = key_load(s->db, &all, reterr);
	bool is_first = r == 0 && all.count == 0;

	keys_done(&all);
	if (is_first)
		r = key_add(s->db, &k, text, reterr);
	if (is_first && r == 0)
		printf("administrator's key, shown only now: %s\n", text);
	return r;
}

/* Running code may go on until the deadline; a second signal ends the wait. */
static void wait_end(struct server *server, const struct ending *how)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	int signal = 0;

	while (sigwait(&how->ends, &signal) == EINTR)
		;
	supervisor_notice_send(&how->notice, "STOPPING=1");
	server_drain(server);
	deadline_ns until = deadline_after_ms(how->grace_ms);
	while (server_is_busy(server) && !deadline_is_over(until))
		if (sigtimedwait(&how->ends, NULL, &pause) > 0)
			return;
}

static int serve(const struct server_options *o, const struct ending *how,
		 struct cordon_error **reterr)
{
	struct server *server = NULL;
	int r = server_start(o, &server, reterr);

	if (r < 0)
		return r;
	if (o->socket_path)
		printf("listening at %s\n", o->socket_path);
	else
		printf("listening at http%s://%s\n", o->tls_cert ? "s" : "",
		       server_address(server));
	if (!o->no_keys && !o->admin_key)
		r = make_first_key(server, reterr);
	(void)fflush(stdout);
	if (r == 0) {
		supervisor_notice_send(&how->notice, "READY=1");
		wait_end(server, how);
	}
	(void)server_stop(server);
	return r;
}

static int read_file(const char *path, struct buf *ret, struct cordon_error **reterr)
{
	return path ? file_load(path, PEM_MAX, ret, reterr) : 0;
}

static int read_time(const struct cli *c, const char *option, uint64_t *ret,
		     struct cordon_error **reterr)
{
	const char *given = cli_value(c, option);

	if (!given)
		return 0;
	if (str_eq(given, "none")) {
		*ret = UINT64_MAX;
		return 0;
	}
	cleanup_free char *text = choice_seconds(given);
	return text ? policy_parse_duration(text, ret, reterr)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* Options, files and environment. The texts belong to the caller. */
static int read_options(const struct cli *c, struct server_options *o, struct strlist *names,
			struct buf pem[2], uint64_t *ret_grace_ms, struct cordon_error **reterr)
{
	uint64_t keep_ms = KEEP_MS;
	const char *name;
	int r = 0;

	for (size_t i = 0; r == 0 && (name = cli_value_at(c, "host", i)); i++)
		r = strlist_add(names, name);
	if (r == 0)
		r = read_file(cli_value(c, "tls-cert"), &pem[0], reterr);
	if (r == 0)
		r = read_file(cli_value(c, "tls-key"), &pem[1], reterr);
	if (r == 0)
		r = read_time(c, "grace", ret_grace_ms, reterr);
	if (r == 0)
		r = read_time(c, "park", &o->park_ms, reterr);
	if (r == 0)
		r = read_time(c, "keep", &keep_ms, reterr);
	o->keep_s = keep_ms / 1000;
	o->listen_fd =
		!cli_has(c, "listen") && !cli_has(c, "socket") ? supervisor_notice_socket() : 0;
	if (r == 0 && o->listen_fd < 0)
		r = err_set(
			reterr, CORDON_INVALID,
			"systemd gave more than one socket: name one ListenStream= in the unit");
	o->address = cli_value(c, "listen");
	o->socket_path = cli_value(c, "socket");
	o->hosts = (const char *const *)names->items;
	o->tls_cert = pem[0].len ? pem[0].data : NULL;
	o->tls_key = pem[1].len ? pem[1].data : NULL;
	o->no_keys = cli_has(c, "no-keys");
	o->logs = cli_has(c, "log");
	o->templates = cli_value(c, "templates");
	o->allows_plaintext = cli_has(c, "allow-plaintext");
	o->allows_no_keys = cli_has(c, "allow-no-keys");
	return r;
}

/* In the thread of the tracer. */
static void log_traces(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "cordon: serve: %s\n", text);
}

int http_door_serve(const struct cli *c, const struct cordon_policy *policy, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_strlist struct strlist names = { 0 };
	cleanup_free char *key = str_dup(getenv("CORDON_SERVE_KEY"));
	cleanup_free char *state = http_server_state(c);
	struct server_options o = {
		.admin_key = key, .state = state, .policy = policy, .park_ms = PARK_MS
	};
	struct buf pem[2] = { 0 };
	struct ending how = { .grace_ms = GRACE_MS };
	struct trace_option traces = { 0 };

	if (sodium_init() < 0 || !state) {
		cli_error(c, "no randomness, or no memory");
		return cordon_code_exit_status(CORDON_OS);
	}
	if (argc > 0)
		return http_server_key(c, policy, argc - 1, argv + 1);
	block_signals(&how.ends);
	(void)unsetenv("CORDON_SERVE_KEY"); /* child processes need not know it */
	/* Saved workspaces are kept with everything else. */
	cleanup_free char *data = str_printf("%s/data", state);
	if (data)
		(void)setenv("XDG_DATA_HOME", data, 1);
	int r = read_options(c, &o, &names, pem, &how.grace_ms, &e);
	supervisor_notice_init(&how.notice);
	if (r == 0)
		r = trace_option_read(c, &traces, &e);
	traces.tracer.report = log_traces;
	o.tracer = traces.tracer.url ? &traces.tracer : NULL;
	if (r == 0)
		r = serve(&o, &how, &e);
	sodium_memzero(pem[1].data, pem[1].len);
	buf_done(&pem[0]);
	buf_done(&pem[1]);
	trace_option_done(&traces);
	return r < 0 ? cli_fail(c, e) : 0;
}
