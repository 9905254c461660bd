/* net/host/gateway_process.c - starts the gateway's process and writes its configuration. */
#include "net/host/gateway_process.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/os.h"

#ifndef CORDON_LIBEXECDIR
#define CORDON_LIBEXECDIR "/usr/local/libexec/cordon"
#endif

extern char **environ;

bool gateway_is_needed(const struct policy *p)
{
	return p->network.allow_count > 0 || p->network.block_count > 0;
}

/* $CORDON_GATEWAY, else beside the running program, else the installed one. The caller frees it;
 * NULL: not found. */
static char *find_program(void)
{
	const char *named = getenv("CORDON_GATEWAY");
	char self[4096], path[4200];

	if (named && named[0] == '/')
		return str_dup(named);
	if (os_program_path(self, sizeof(self))) {
		char *slash = strrchr(self, '/');
		*slash = '\0';
		/* Installed beside us, or in the build tree. */
		static const char *const places[] = { "%s/cordon-gateway",
						      "%s/src/net/cordon-gateway",
						      "%s/../libexec/cordon/cordon-gateway" };
		for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			(void)snprintf(path, sizeof(path), places[i], self);
#pragma GCC diagnostic pop
			if (access(path, X_OK) == 0)
				return str_dup(path);
		}
	}
	if (access(CORDON_LIBEXECDIR "/cordon-gateway", X_OK) == 0)
		return str_dup(CORDON_LIBEXECDIR "/cordon-gateway");
	return NULL;
}

static json_t *rules_json(const struct policy_net_rule *rules, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < count; i++) {
		json_t *methods = json_array();
		for (size_t m = 0; m < rules[i].methods.count; m++)
			(void)json_array_append_new(methods,
						    json_string(rules[i].methods.items[m]));
		json_t *rule = json_pack("{s:s, s:i, s:o}", "host", rules[i].host, "port",
					 (int)rules[i].port, "methods", methods);
		if (rule && rules[i].path_prefix)
			(void)json_object_set_new(rule, "path", json_string(rules[i].path_prefix));
		if (!rule || json_array_append_new(list, rule) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *secrets_json(const struct policy *p)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < p->secret_count; i++) {
		const struct policy_secret *s = &p->secrets[i];
		json_t *secret = json_pack("{s:s, s:s, s:s, s:s}", "name", s->name, "value",
					   s->value, "host", s->host, "header",
					   s->header ? s->header : "Authorization");
		if (!secret || json_array_append_new(list, secret) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* Zero means the default; a limit of zero would stop everything. */
static void add_limit(json_t *obj, const char *key, uint64_t value)
{
	if (value > 0)
		(void)json_object_set_new(
			obj, key, json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

/* The host's own proxy: the caller's, else the policy's, which may say to use the environment's. */
static const char *upstream_proxy(const struct gateway_options *o)
{
	static const char *const names[] = { "HTTPS_PROXY", "https_proxy", "ALL_PROXY",
					     "all_proxy" };
	const char *named =
		o->upstream_proxy ? o->upstream_proxy : o->policy->network.upstream_proxy;

	if (!str_eq(named, "environment"))
		return named;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);
		if (value && value[0])
			return value;
	}
	return NULL;
}

static json_t *config_json(const struct gateway_options *o)
{
	const struct policy_network *n = &o->policy->network;
	const char *proxy = upstream_proxy(o);
	json_t *obj = json_pack("{s:o, s:o, s:b, s:b, s:o}", "allow",
				rules_json(n->allow, n->allow_count), "block",
				rules_json(n->block, n->block_count), "ask", n->ask, "callback",
				o->callback, "secrets", secrets_json(o->policy));
	if (!obj)
		return NULL;
	add_limit(obj, "request_bytes", n->request_bytes);
	add_limit(obj, "response_bytes", n->response_bytes);
	add_limit(obj, "timeout_ms", n->timeout_ms);
	add_limit(obj, "tunnel_ms", n->tunnel_ms);
	add_limit(obj, "connections", n->connections);
	add_limit(obj, "total_bytes", n->total_bytes);
	add_limit(obj, "approval_timeout_ms", o->policy->approval_timeout_ms);
	add_limit(obj, "uid", o->uid);
	add_limit(obj, "gid", o->gid);
	if (o->ca_file)
		(void)json_object_set_new(obj, "ca_file", json_string(o->ca_file));
	if (proxy)
		(void)json_object_set_new(obj, "upstream_proxy", json_string(proxy));
	if (o->resolve)
		(void)json_object_set_new(obj, "resolve", json_deep_copy(o->resolve));
	if (o->fetch)
		(void)json_object_set_new(obj, "fetch", json_deep_copy(o->fetch));
	return obj;
}

/* Passes on only the variables that affect name resolution and certificate authorities. */
static size_t pass_environment(char **ret, size_t max)
{
	static const char *const names[] = { "SSL_CERT_FILE=", "SSL_CERT_DIR=", "RES_OPTIONS=",
					     "LOCALDOMAIN=", "RESOLV_HOST_CONF=" };
	size_t count = 0;

	for (char **e = environ; e && *e; e++)
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (str_starts(*e, names[i]) && count + 1 < max)
				ret[count++] = *e;
	ret[count] = NULL;
	return count;
}

static void hash_text(crypto_hash_sha256_state *state, const char *text, size_t len)
{
	crypto_hash_sha256_update(state, (const unsigned char *)text, len);
	crypto_hash_sha256_update(state, (const unsigned char *)"", 1);
}

static void hash_all(const char *program, const char *config, size_t len, uint8_t ret[static 32])
{
	crypto_hash_sha256_state state;
	char *envp[8];
	size_t count = pass_environment(envp, 8);

	crypto_hash_sha256_init(&state);
	hash_text(&state, program, strlen(program));
	hash_text(&state, config, len);
	for (size_t i = 0; i < count; i++)
		hash_text(&state, envp[i], strlen(envp[i]));
	crypto_hash_sha256_final(&state, ret);
}

static char *choose_program(const struct gateway_options *o, struct cordon_error **reterr)
{
	char *program = o->program ? str_dup(o->program) : find_program();

	if (!program)
		(void)err_set(
			reterr, CORDON_UNSUPPORTED,
			"the policy opens the network, but cordon-gateway is not installed: set "
			"CORDON_GATEWAY to its path");
	return program;
}

/* Contains the secrets, so it is in memory, never in a file, and is wiped here. ret_fd NULL: only
 * its hash. */
static int make_config(const struct gateway_options *o, const char *program, int *ret_fd,
		       uint8_t ret_hash[static 32], struct cordon_error **reterr)
{
	cleanup_json json_t *obj = config_json(o);
	size_t len = 0;
	cleanup_free char *text = obj ? json_text(obj, &len) : NULL;

	if (!text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	hash_all(program, text, len, ret_hash);
	int r = ret_fd ? file_from_bytes("gateway", text, len, ret_fd, reterr) : 0;
	explicit_bzero(text, len);
	return r;
}

int gateway_process_hash(const struct gateway_options *o, uint8_t ret[static 32],
			 struct cordon_error **reterr)
{
	cleanup_free char *program = choose_program(o, reterr);

	return program ? make_config(o, program, NULL, ret, reterr) : -CORDON_UNSUPPORTED;
}

static int spawn(const char *program, const int fds[static 3], pid_t *ret_pid,
		 struct cordon_error **reterr)
{
	enum { FIRST = 3 };
	char config[] = "3", control[] = "4", relay[] = "5";
	char *argv[] = { (char *)program, config, control, relay, NULL };
	char *envp[8];
	posix_spawn_file_actions_t actions;

	(void)pass_environment(envp, 8);
	int e = posix_spawn_file_actions_init(&actions);
	if (e)
		return err_errno(reterr, e, "start %s", program);
	for (int i = 0; i < 3 && !e; i++)
		e = posix_spawn_file_actions_adddup2(&actions, fds[i], FIRST + i);
	if (!e)
		e = posix_spawn_file_actions_addclosefrom_np(&actions, FIRST + 3);
	if (!e)
		e = posix_spawn(ret_pid, program, &actions, NULL, argv, envp);
	(void)posix_spawn_file_actions_destroy(&actions);
	return e ? err_errno(reterr, e, "start %s", program) : 0;
}

/* Moves the descriptor to a high number, so that no dup2 in the child overwrites one that is still
 * needed. */
static int lift(int fd, int *ret, struct cordon_error **reterr)
{
	*ret = fcntl(fd, F_DUPFD_CLOEXEC, 16);
	return *ret < 0 ? err_errno(reterr, errno, "duplicate a descriptor") : 0;
}

int gateway_process_start(const struct gateway_options *o, struct gateway_process *ret,
			  struct cordon_error **reterr)
{
	cleanup_free char *program = choose_program(o, reterr);
	cleanup_close int config = -1, control = -1, control_far = -1, relay = -1, relay_far = -1;
	cleanup_close int high0 = -1, high1 = -1, high2 = -1;
	int pair[2];

	if (!program)
		return -CORDON_UNSUPPORTED;
	int r = make_config(o, program, &config, ret->config, reterr);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(reterr, errno, "socketpair");
	control = pair[0];
	control_far = pair[1];
	if (socketpair(AF_UNIX, (o->fetch ? SOCK_STREAM : SOCK_SEQPACKET) | SOCK_CLOEXEC, 0, pair) <
	    0)
		return err_errno(reterr, errno, "socketpair");
	relay = pair[0];
	relay_far = pair[1];
	r = lift(config, &high0, reterr);
	if (r == 0)
		r = lift(control_far, &high1, reterr);
	if (r == 0)
		r = lift(relay_far, &high2, reterr);
	if (r == 0)
		r = spawn(program, (int[]){ high0, high1, high2 }, &ret->pid, reterr);
	if (r < 0)
		return r;
	ret->control_fd = TAKE_FD(control);
	ret->relay_fd = TAKE_FD(relay);
	return 0;
}
