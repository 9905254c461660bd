/* serve/e2b/e2b_routes.c - the paths of the API, and who may use them. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/str.h"
#include "serve/e2b/e2b_state.h"

enum { FILE_MAX = 1 << 30, JSON_MAX = 64 << 10 };

static bool is_token(const struct e2b *e, const char *id, enum e2b_token which, const char *given)
{
	char right[E2B_TOKEN_BYTES];

	e2b_sandbox_token(e, id, which, right);
	return given && strlen(given) == sizeof(right) - 1 &&
	       sodium_memcmp(given, right, sizeof(right) - 1) == 0;
}

/* A request to a sandbox: the token must be that of its id, known or not. So an answer never tells
 * whether a foreign sandbox is there. */
bool e2b_has_token(const struct e2b *e, struct httpd_exchange *x, const char *id)
{
	return is_token(e, id, E2B_TOKEN_ENVD, httpd_header(x, "X-Access-Token")) ||
	       is_token(e, id, E2B_TOKEN_TRAFFIC, httpd_header(x, "E2B-Traffic-Access-Token"));
}

struct search {
	const char *path, *operation, *user, *expiration, *given;
	char id[E2B_ID_BYTES];
};

/* "v1_" and the hash of path, operation, user, token and time of expiry. */
static bool match_signature(struct e2b_sandbox *b, void *arg)
{
	struct search *s = arg;
	char token[E2B_TOKEN_BYTES];
	unsigned char hash[crypto_hash_sha256_BYTES];

	e2b_sandbox_token(b->e2b, b->id, E2B_TOKEN_ENVD, token);
	cleanup_free char *text =
		str_printf("%s:%s:%s:%s%s%s", s->path, s->operation, s->user, token,
			   s->expiration ? ":" : "", s->expiration ? s->expiration : "");
	if (!text)
		return true;
	crypto_hash_sha256(hash, (const unsigned char *)text, strlen(text));
	cleanup_free char *encoded = base64_encode(hash, sizeof(hash), NULL);
	cleanup_free char *right = encoded ? str_printf("v1_%s", encoded) : NULL;
	if (!right)
		return true;
	right[strcspn(right, "=")] = '\0';
	if (strlen(s->given) == strlen(right) && sodium_memcmp(s->given, right, strlen(right)) == 0)
		(void)str_copy(s->id, sizeof(s->id), b->id);
	return s->id[0] == '\0';
}

/* A signed address names no sandbox: it is the one whose token made the signature. */
static bool find_signed(struct e2b *e, struct httpd_exchange *x, char ret[static E2B_ID_BYTES])
{
	const char *path = httpd_query(x, "path"), *user = httpd_query(x, "username");
	struct search s = { .path = path ? path : "",
			    .operation = str_eq(httpd_method(x), "POST") ? "write" : "read",
			    .user = user ? user : "",
			    .expiration = httpd_query(x, "signature_expiration"),
			    .given = httpd_query(x, "signature") };

	if (!s.given)
		return false;
	e2b_sandbox_visit(e, match_signature, &s);
	memcpy(ret, s.id, sizeof(s.id));
	return s.id[0];
}

unsigned e2b_enter(struct e2b *e, struct httpd_exchange *x, const char *id, bool is_counted)
{
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_sandbox_get(e, id, NULL);

	/* Without a tenant it would be nobody's request, and nobody's are not limited. */
	httpd_set_principal(x, id, b ? b->tenant : NULL);
	if (!b)
		return 502;
	return !is_counted || tenant_may_ask(b->tenant) ? 0 : 429;
}

/* The principal of such a request is the id of its sandbox. */
static unsigned authorize(struct httpd_exchange *x, enum httpd_right right, void *arg)
{
	const char *id = httpd_header(x, "E2b-Sandbox-Id");
	char found[E2B_ID_BYTES] = "";

	(void)right;
	if (id && strlen(id) < sizeof(found) && e2b_has_token(arg, x, id))
		(void)str_copy(found, sizeof(found), id);
	else if (!str_eq(httpd_path(x), "/files") || !find_signed(arg, x, found))
		return 401;
	return e2b_enter(arg, x, found, true);
}

/* Of the control plane. */
static bool refuse_key(struct httpd_exchange *x, unsigned status)
{
	if (status == 401)
		e2b_fail(x, 401, "there is no such key, or it has ended");
	return status == 401;
}

/* A header that is no token of the sandbox has not opened it. */
bool e2b_is_expired(const struct e2b *e, struct httpd_exchange *x)
{
	const char *text = httpd_query(x, "signature_expiration");

	return text && strtoll(text, NULL, 10) < (long long)time(NULL) &&
	       !e2b_has_token(e, x, httpd_principal(x));
}

struct e2b_sandbox *e2b_target(struct e2b *e, struct httpd_exchange *x)
{
	struct e2b_sandbox *b = e2b_sandbox_get(e, httpd_principal(x), NULL);
	cleanup_error struct cordon_error *error = NULL;

	if (b && e2b_sandbox_state(b) == E2B_PAUSED && b->auto_resume)
		(void)e2b_sandbox_resume(b, false, &error);
	if (b && e2b_sandbox_state(b) == E2B_RUNNING)
		return b;
	bool is_paused = b && e2b_sandbox_state(b) == E2B_PAUSED;
	e2b_sandbox_put(b);
	if (is_paused && error) { /* it is there */
		e2b_fail_error(x, error);
		return NULL;
	}
	e2b_fail_missing(x);
	return NULL;
}

static void health(struct httpd_exchange *x, void *arg)
{
	struct e2b_sandbox *b = e2b_target(arg, x);

	if (b)
		httpd_answer(x, 204, NULL, NULL, 0);
	e2b_sandbox_put(b);
}

static void missing(struct httpd_exchange *x, void *arg)
{
	(void)arg;
	e2b_fail(x, 501, httpd_route_of(x)->detail);
}

#define TEMPLATES                                                                                  \
	"templates are not built here: a template is a policy file of the server, NAME.json in "   \
	"its directory of templates"
#define VOLUMES "there are no volumes: write the files into the sandbox, or keep it paused"
#define SECRETS "there are no stored secrets: a policy file has `secrets`, which the gateway uses"
#define SNAPSHOTS "there are no snapshots of sandboxes: fork the sandbox, or pause it"
#define TEAMS "there are no teams: the server has keys, made with `cordon serve key`"
#define NETWORK "the network of a sandbox cannot be changed: name a template whose policy allows it"
#define LOGS "logs are not kept: follow the output, or read the server's audit log"

#define CONTROL(m, p, f)                                                                           \
	{                                                                                          \
		.method = m, .path = p, .right = HTTPD_KEY, .fn = f, .body_max = JSON_MAX,         \
		.refuse = refuse_key                                                               \
	}
#define ENVD(m, p, f)                                                                              \
	{                                                                                          \
		.method = m, .path = p, .right = HTTPD_KEY, .fn = f, .body_max = E2B_BODY_MAX,     \
		.authorize = authorize, .refuse = e2b_refuse_missing                               \
	}
#define MISSING(p, why)                                                                            \
	{                                                                                          \
		.path = p, .right = HTTPD_KEY, .fn = missing, .body_max = JSON_MAX, .detail = why  \
	}

const struct httpd_route e2b_routes[] = {
	CONTROL("POST", "/v2/sandboxes", e2b_control_create),
	CONTROL("POST", "/sandboxes", e2b_control_create),
	CONTROL("GET", "/v2/sandboxes", e2b_list_sandboxes),
	CONTROL("GET", "/sandboxes", e2b_list_all),
	CONTROL("GET", "/sandboxes/{sandbox}", e2b_control_info),
	CONTROL("DELETE", "/sandboxes/{sandbox}", e2b_control_kill),
	CONTROL("POST", "/sandboxes/{sandbox}/connect", e2b_control_connect),
	CONTROL("POST", "/v2/sandboxes/{sandbox}/connect", e2b_control_connect),
	CONTROL("POST", "/sandboxes/{sandbox}/resume", e2b_control_connect),
	CONTROL("POST", "/sandboxes/{sandbox}/timeout", e2b_control_timeout),
	CONTROL("POST", "/sandboxes/{sandbox}/refreshes", e2b_control_refresh),
	CONTROL("POST", "/sandboxes/{sandbox}/pause", e2b_control_pause),
	CONTROL("POST", "/sandboxes/{sandbox}/fork", e2b_control_fork),
	CONTROL("GET", "/sandboxes/{sandbox}/metrics", e2b_metrics_one),
	CONTROL("GET", "/sandboxes/metrics", e2b_metrics_many),
	MISSING("/sandboxes/{sandbox}/network", NETWORK),
	MISSING("/sandboxes/{sandbox}/snapshots", SNAPSHOTS),
	MISSING("/sandboxes/{sandbox}/logs", LOGS),
	MISSING("/v2/sandboxes/{sandbox}/logs", LOGS),
	MISSING("/snapshots", SNAPSHOTS),
	MISSING("/templates", TEMPLATES),
	MISSING("/templates/{rest*}", TEMPLATES),
	MISSING("/v2/templates", TEMPLATES),
	MISSING("/v2/templates/{rest*}", TEMPLATES),
	MISSING("/v3/templates", TEMPLATES),
	MISSING("/v3/templates/{rest*}", TEMPLATES),
	MISSING("/volumes", VOLUMES),
	MISSING("/volumes/{rest*}", VOLUMES),
	MISSING("/secrets", SECRETS),
	MISSING("/secrets/{rest*}", SECRETS),
	MISSING("/teams", TEAMS),
	MISSING("/teams/{rest*}", TEAMS),
	MISSING("/nodes", TEAMS),
	MISSING("/nodes/{rest*}", TEAMS),
	MISSING("/api-keys", TEAMS),
	MISSING("/api-keys/{rest*}", TEAMS),

	ENVD("GET", "/health", health),
	ENVD("POST", "/filesystem.Filesystem/Stat", e2b_filesystem_stat),
	ENVD("POST", "/filesystem.Filesystem/MakeDir", e2b_filesystem_make_dir),
	ENVD("POST", "/filesystem.Filesystem/Move", e2b_filesystem_move),
	ENVD("POST", "/filesystem.Filesystem/ListDir", e2b_filesystem_list),
	ENVD("POST", "/filesystem.Filesystem/Remove", e2b_filesystem_remove),
	ENVD("POST", "/filesystem.Filesystem/WatchDir", e2b_watch_stream),
	ENVD("POST", "/filesystem.Filesystem/CreateWatcher", e2b_watch_create),
	ENVD("POST", "/filesystem.Filesystem/GetWatcherEvents", e2b_watch_events),
	ENVD("POST", "/filesystem.Filesystem/RemoveWatcher", e2b_watch_remove),
	ENVD("POST", "/process.Process/Start", e2b_process_start),
	ENVD("POST", "/process.Process/Connect", e2b_process_connect),
	ENVD("POST", "/process.Process/List", e2b_process_list),
	ENVD("POST", "/process.Process/SendInput", e2b_process_input),
	ENVD("POST", "/process.Process/StreamInput", e2b_process_stream_input),
	ENVD("POST", "/process.Process/SendSignal", e2b_process_signal),
	ENVD("POST", "/process.Process/CloseStdin", e2b_process_close_stdin),
	ENVD("POST", "/process.Process/Update", e2b_process_update),
	ENVD("POST", "/execute", e2b_execute),
	ENVD("GET", "/contexts", e2b_context_list),
	ENVD("POST", "/contexts", e2b_context_create),
	ENVD("DELETE", "/contexts/{context}", e2b_context_remove),
	ENVD("POST", "/contexts/{context}/restart", e2b_context_restart),
	ENVD("GET", "/files", e2b_files_read),
	{ .method = "POST",
	  .path = "/files",
	  .right = HTTPD_KEY,
	  .fn = e2b_files_write,
	  .body_max = FILE_MAX,
	  .flags = HTTPD_BODY_FILE,
	  .authorize = authorize,
	  .refuse = e2b_refuse_missing },
	{ 0 },
};
