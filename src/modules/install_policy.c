/* modules/install_policy.c - the policy of an installation's sandbox, and what its guest is told.
 */
#include <string.h>

#include "base/str.h"
#include "modules/installer.h"
#include "policy/field.h"
#include "policy/name.h"

#define FOLDER "/mnt/registry"
#define LOCK "/mnt/lockfile"

enum { HOST_MAX = 256, MEMORY_MIN = 512 << 20, PROCESSES_MIN = 128, OPEN_FILES_MIN = 1024 };
enum { FILES_BESIDE = 16384 };

static bool is_url(const char *source)
{
	return source[0] != '/';
}

static int nomem(struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* The port between these; 0: it is none. */
static int number_at(const char *at, const char *end)
{
	int n = 0;

	for (; at < end; at++) {
		if (*at < '0' || *at > '9')
			return 0;
		n = n * 10 + *at - '0';
		if (n > 65535)
			return 0;
	}
	return n;
}

/* http://[::1]:8080/simple gives ::1 and 8080. `localhost` is the host's loopback. */
static bool split_url(const char *url, char host[static HOST_MAX], int *port)
{
	bool is_tls = str_starts(url, "https://");
	const char *at = url + (is_tls ? 8 : 7), *end = at + strcspn(at, "/"), *colon = NULL;
	size_t len;

	if (*at == '[') {
		const char *close = memchr(at, ']', (size_t)(end - at));
		if (!close)
			return false;
		at++;
		len = (size_t)(close - at);
		colon = close[1] == ':' ? close + 1 : NULL;
	} else {
		colon = memchr(at, ':', (size_t)(end - at));
		len = (size_t)((colon ? colon : end) - at);
	}
	if (len == 0 || len >= HOST_MAX)
		return false;
	memcpy(host, at, len);
	host[len] = '\0';
	if (str_eq(host, "localhost"))
		(void)str_copy(host, HOST_MAX, "127.0.0.1");
	*port = colon ? number_at(colon + 1, end) : is_tls ? 443 : 80;
	return *port > 0;
}

static const char *registry_of(const struct policy_registry *r)
{
	return r->sources.count ? r->sources.items[0] : NULL;
}

/* One rule for each named host: only GET and HEAD, so that code of a package can publish nothing.
 */
static int add_rules(const struct policy_registry *r, json_t *rules, struct cordon_error **reterr)
{
	char host[HOST_MAX];
	int port = 0;

	if (!registry_of(r) || !is_url(registry_of(r)))
		return 0;
	for (size_t i = 0; i < r->sources.count; i++) {
		const char *url = r->sources.items[i];
		if (!is_url(url))
			return err_set(reterr, CORDON_INVALID,
				       "'%s' is a directory: only the first place can be one, "
				       "and then it is the only one",
				       url);
		if (!split_url(url, host, &port))
			return err_set(reterr, CORDON_INVALID, "'%s' names no host", url);
		if (json_array_append_new(rules,
					  json_pack("{s:s, s:i, s:[s, s]}", "host", host, "port",
						    port, "methods", "GET", "HEAD")) < 0)
			return nomem(reterr);
	}
	return 0;
}

/* Credentials for the registry stay in the gateway, as for all hosts. */
static int add_secrets(const struct policy *from, const json_t *rules, json_t *secrets)
{
	size_t at;
	json_t *rule;

	for (size_t i = 0; i < from->secret_count; i++) {
		const struct policy_secret *s = &from->secrets[i];
		json_array_foreach(rules, at, rule)
		{
			if (!str_eq(json_string_value(json_object_get(rule, "host")), s->host))
				continue;
			if (json_array_append_new(secrets,
						  json_pack("{s:s, s:s, s:s, s:s*}", "name",
							    s->name, "value", s->value, "host",
							    s->host, "header", s->header)) < 0)
				return -1;
			break;
		}
	}
	return 0;
}

static int add_mounts(const struct policy_registry *r, json_t *mounts)
{
	const char *place = registry_of(r);

	if (place && !is_url(place) &&
	    json_array_append_new(mounts, json_pack("{s:s, s:s, s:s}", "host", place, "guest",
						    FOLDER, "mode", "ro")) < 0)
		return -1;
	if (r->lock && json_array_append_new(mounts, json_pack("{s:s, s:s, s:s}", "host", r->lock,
							       "guest", LOCK, "mode", "ro")) < 0)
		return -1;
	return 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What is installed must fit into the session's workspace. Caches and builds need more besides, but
 * not without a limit: the host looks at all that is there. */
static uint64_t file_count(const struct policy *from)
{
	uint64_t max = field_find("file_count")->max;

	return from->file_count < (max - FILES_BESIDE) / 2 ? from->file_count * 2 + FILES_BESIDE
							   : max;
}

/* A workspace in memory counts as memory, so there is room for both. */
static void set_limits(const struct policy *from, struct policy *p)
{
	p->memory_bytes = larger(from->memory_bytes, MEMORY_MIN) + from->install_bytes;
	p->cpu_percent = larger(from->cpu_percent, 100);
	p->processes = larger(from->processes, PROCESSES_MIN);
	p->open_files = larger(from->open_files, OPEN_FILES_MIN);
	p->fs_bytes = p->file_bytes = from->install_bytes;
	p->file_count = file_count(from);
	p->timeout_ms = from->install_ms;
	p->cpu_seconds = p->max_executions = POLICY_UNLIMITED;
	p->network.response_bytes = p->network.total_bytes = from->install_bytes;
	p->network.request_bytes = 1 << 20;
	p->network.timeout_ms = from->install_ms;
	p->network.ask = false;
	p->validate = p->sanitize_errors = false;
}

int install_policy(const struct package_manager *m, const struct policy *from, struct policy *ret,
		   struct cordon_error **reterr)
{
	const struct policy_registry *registry = package_manager_registry(m, from);
	cleanup_json json_t *rules = json_array(), *secrets = json_array(), *mounts = json_array();
	cleanup_policy struct policy p = { 0 };
	int r = rules ? add_rules(registry, rules, reterr) : nomem(reterr);

	if (r < 0)
		return r;
	if (!secrets || !mounts || add_secrets(from, rules, secrets) < 0 ||
	    add_mounts(registry, mounts) < 0)
		return nomem(reterr);
	cleanup_json json_t *other = json_pack(
		"{s:O, s:O, s:[], s:[], s:{}, s:s, s:s, s:[], s:n, s:{s:O, s:[]}}", "mounts",
		mounts, "secrets", secrets, "tools", "expose", "env_set", "commands", "*",
		"modules", "*", "preload", "result_name", "network", "allow", rules, "block");
	if (!other)
		return nomem(reterr);
	r = policy_copy(&p, from, reterr);
	if (r == 0)
		r = policy_apply_json(&p, other, reterr);
	if (r < 0)
		return r;
	set_limits(from, &p);
	r = policy_check(&p, reterr);
	if (r == 0) {
		*ret = p;
		p = (struct policy){ 0 };
	}
	return r;
}

/* Hosts that are named with http:// : pip uses those only if it is told so. */
static int add_plain(const struct policy_registry *r, json_t *plain)
{
	for (size_t i = 0; i < r->sources.count; i++) {
		const char *url = r->sources.items[i];
		if (str_starts(url, "http://") &&
		    json_array_append_new(plain, json_stringn(url + 7, strcspn(url + 7, "/"))) < 0)
			return -1;
	}
	return 0;
}

/* The names without the word for the lockfile. */
static int add_names(const struct package_manager *m, const struct strlist *names, json_t *list)
{
	for (size_t i = 0; i < names->count; i++)
		if (!str_eq(m->lock, names->items[i]) &&
		    json_array_append_new(list, json_string(names->items[i])) < 0)
			return -1;
	return 0;
}

char *install_request(const struct package_manager *m, const struct policy *p,
		      const struct strlist *names)
{
	const struct policy_registry *r = package_manager_registry(m, p);
	const char *place = registry_of(r), *url = "", *folder = "";
	bool is_locked = m->lock && strlist_has(names, m->lock);
	cleanup_json json_t *list = json_array(), *plain = json_array();

	if (!list || !plain || add_plain(r, plain) < 0 || add_names(m, names, list) < 0)
		return NULL;
	if (place && is_url(place))
		url = place;
	else if (place)
		folder = FOLDER;
	cleanup_json json_t *j =
		json_pack("{s:{s:O, s:s, s:s, s:s, s:O, s:b}}", "request", "names", list, "url",
			  url, "folder", folder, "lock", is_locked ? LOCK : "", "plain", plain,
			  "build", p->workspace_exec ? 1 : 0);
	return j ? json_text(j, NULL) : NULL;
}
