/* cli/http_door_serve.c - in cordon-http: serves until a signal ends it. */
#include <cordon/cordon.h>
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "cli/http_door.h"
#include "cli/trace_option.h"
#include "serve/http/httpd.h"
#include "serve/mcp/mcphttp.h"

enum { TOKEN_HEX = 48, TOKEN_MIN = 16, TOKEN_FILE_MAX = 4096, SWEEP_SECONDS = 15 };

struct token {
	char *text; /* NULL: no token is needed */
	bool is_own;
};

/* Compares hashes, so that timing reveals neither content nor length. */
static unsigned authorize(struct httpd_exchange *x, enum httpd_right right, void *arg)
{
	static const char scheme[] = "Bearer ";
	const char *authorization = httpd_header(x, "Authorization");
	const struct token *t = arg;
	unsigned char given[32], wanted[32];

	(void)right;
	if (!authorization || strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
		return 401;
	const char *text = authorization + sizeof(scheme) - 1;
	text += strspn(text, " ");
	(void)crypto_generichash(given, sizeof(given), (const unsigned char *)text, strlen(text),
				 NULL, 0);
	(void)crypto_generichash(wanted, sizeof(wanted), (const unsigned char *)t->text,
				 strlen(t->text), NULL, 0);
	httpd_set_principal(x, "token", NULL);
	return sodium_memcmp(given, wanted, sizeof(given)) == 0 ? 0 : 401;
}

static int check_token(const char *token, struct cordon_error **reterr)
{
	size_t len = strlen(token);

	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)token[i]))
			return err_set(reterr, CORDON_INVALID,
				       "a token consists of letters, digits and punctuation");
	return len >= TOKEN_MIN ? 0
				: err_set(reterr, CORDON_INVALID,
					  "a token has at least %d characters", TOKEN_MIN);
}

static int read_token_file(const char *path, char **ret, struct cordon_error **reterr)
{
	cleanup_buf struct buf b = { 0 };
	int r = file_load(path, TOKEN_FILE_MAX, &b, reterr);

	if (r < 0)
		return r;
	while (b.len > 0 && isspace((unsigned char)b.data[b.len - 1]))
		b.data[--b.len] = '\0';
	*ret = b.len ? buf_take(&b) : str_dup("");
	return *ret ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int choose_token(const struct cli *c, struct token *ret, struct cordon_error **reterr)
{
	const char *path = cli_value(c, "token-file"), *named = getenv("CORDON_MCP_TOKEN");
	char made[TOKEN_HEX + 1];
	int r = 0;

	if (cli_has(c, "no-token")) {
		if (cli_has(c, "public"))
			return err_set(reterr, CORDON_INVALID,
				       "--no-token works only on the loopback, not with --public");
		return 0;
	}
	if (path)
		r = read_token_file(path, &ret->text, reterr);
	else if (named)
		ret->text = str_dup(named);
	if (r == 0 && !path && !named) {
		random_hex(made, TOKEN_HEX);
		ret->text = str_dup(made);
		ret->is_own = true;
	}
	(void)unsetenv("CORDON_MCP_TOKEN"); /* child processes need not know it */
	if (r == 0 && !ret->text)
		r = err_set(reterr, CORDON_NOMEM, "out of memory");
	return r < 0 ? r : check_token(ret->text, reterr);
}

/* Waits for a signal to end; sweeps meanwhile. */
static void wait_end(struct mcphttp *room, const sigset_t *ends)
{
	const struct timespec pause = { .tv_sec = SWEEP_SECONDS };

	while (sigtimedwait(ends, NULL, &pause) < 0 && (errno == EAGAIN || errno == EINTR))
		mcphttp_sweep(room);
}

static int serve(const struct cli *c, struct mcphttp *room, const struct token *token,
		 struct tracer *tracer, const sigset_t *ends, struct cordon_error **reterr)
{
	const struct httpd_table tables[] = { { mcphttp_routes, room }, { 0 } };
	cleanup_strlist struct strlist names = { 0 };
	struct httpd *server = NULL;
	const char *name;

	for (size_t i = 0; (name = cli_value_at(c, "http-host", i)); i++)
		if (strlist_add(&names, name) < 0)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
	const struct httpd_options o = { .address = cli_value(c, "http"),
					 .is_public = cli_has(c, "public"),
					 .hosts = (const char *const *)names.items,
					 .authorize = token->text ? authorize : NULL,
					 .authorize_arg = (void *)(uintptr_t)token,
					 .tables = tables,
					 .tracer = tracer };
	int r = httpd_start(&o, &server, reterr);
	if (r < 0)
		return r;
	printf("listening at http://%s/mcp\n", httpd_address(server));
	if (token->is_own)
		printf("Authorization: Bearer %s\n", token->text);
	(void)fflush(stdout);
	wait_end(room, ends);
	/* Ends all sandboxes. A client that does not read its answer gets none. */
	bool is_quiet = mcphttp_close(room);
	cleanup_free char *loss = mcphttp_take_loss(room);
	if (!is_quiet)
		_exit(loss ? cordon_code_exit_status(CORDON_OS) : 0);
	(void)httpd_stop(server);
	return loss ? err_set(reterr, CORDON_OS, "%s", loss) : 0;
}

/* One line for each, as it happens; the end of the server names the first once more. */
static void log_loss(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "cordon: mcp: %s\n", text);
}

static int start_traces(const struct cli *c, struct tracer **ret, struct cordon_error **reterr)
{
	struct trace_option traces = { 0 };
	int r = trace_option_read(c, &traces, reterr);

	traces.tracer.report = log_loss;
	if (r == 0 && traces.tracer.url)
		r = tracer_new(&traces.tracer, ret, reterr);
	trace_option_done(&traces);
	return r;
}

int http_door_serve_mcp(const struct cli *c, const struct mcp_options *options)
{
	cleanup_error struct cordon_error *e = NULL;
	struct mcphttp_options o = { .mcp = *options, .lost = log_loss };
	struct token token = { 0 };
	struct mcphttp *room = NULL;
	sigset_t ends;

	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigaddset(&ends, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &ends, NULL); /* before any thread starts */
	int r = sodium_init() < 0 ? err_set(&e, CORDON_OS, "no randomness") : 0;
	if (r == 0)
		r = choose_token(c, &token, &e);
	if (r == 0)
		r = start_traces(c, &o.mcp.tracer, &e);
	if (r == 0)
		r = mcphttp_new(&o, &room, &e);
	if (r == 0)
		r = serve(c, room, &token, o.mcp.tracer, &ends, &e);
	mcphttp_free(room);
	o.mcp.tracer = tracer_free(o.mcp.tracer);
	free(token.text);
	return r < 0 ? cli_fail(c, e) : 0;
}
