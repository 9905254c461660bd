/* net/gateway/config.c - see config.h. */
#include "net/gateway/config.h"

#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "net/gateway/url.h"

static int no_memory(struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int read_methods(const json_t *rule, struct strlist *ret, struct cordon_error **reterr)
{
	json_t *list = NULL, *item;
	size_t i;
	int r = json_get_array(rule, "", "methods", &list, reterr);

	if (r < 0 || !list)
		return r;
	json_array_foreach(list, i, item)
	{
		if (!json_is_string(item))
			return err_set(reterr, CORDON_INVALID, "a method is not a string");
		if (strlist_add(ret, json_string_value(item)) < 0)
			return no_memory(reterr);
	}
	return 0;
}

static int read_rule(const json_t *obj, struct policy_net_rule *ret, struct cordon_error **reterr)
{
	const char *host = NULL, *path = NULL;
	uint64_t port = 0;
	int r = json_get_string(obj, "", "host", &host, reterr);

	if (r == 0)
		r = json_get_string(obj, "", "path", &path, reterr);
	if (r == 0)
		r = json_get_uint(obj, "", "port", &port, reterr);
	if (r == 0)
		r = read_methods(obj, &ret->methods, reterr);
	if (r < 0)
		return r;
	if (port > UINT16_MAX)
		return err_set(reterr, CORDON_INVALID, "port %llu is above 65535",
			       (unsigned long long)port);
	ret->port = (uint16_t)port;
	ret->host = str_dup(host ? host : "");
	ret->path_prefix = str_dup(path);
	return ret->host && (!path || ret->path_prefix) ? 0 : no_memory(reterr);
}

static int read_rules(const json_t *obj, const char *key, struct policy_net_rule **ret,
		      size_t *ret_count, struct cordon_error **reterr)
{
	json_t *list = NULL, *item;
	size_t i;
	int r = json_get_array(obj, "", key, &list, reterr);

	if (r < 0 || !list || json_array_size(list) == 0)
		return r;
	*ret = mem_array(json_array_size(list), sizeof(**ret));
	if (!*ret)
		return no_memory(reterr);
	json_array_foreach(list, i, item)
	{
		*ret_count = i + 1;
		r = read_rule(item, &(*ret)[i], reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

static void free_rules(struct policy_net_rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(rules[i].host);
		free(rules[i].path_prefix);
		strlist_done(&rules[i].methods);
	}
	free(rules);
}

static int read_ruleset(const json_t *obj, struct config *c, struct cordon_error **reterr)
{
	struct policy_network net = { 0 };
	int r = json_get_bool(obj, "", "ask", &net.ask, reterr);

	if (r == 0)
		r = read_rules(obj, "allow", &net.allow, &net.allow_count, reterr);
	if (r == 0)
		r = read_rules(obj, "block", &net.block, &net.block_count, reterr);
	if (r == 0)
		r = ruleset_new(&net, &c->rules, reterr);
	free_rules(net.allow, net.allow_count);
	free_rules(net.block, net.block_count);
	return r;
}

static int read_secrets(const json_t *obj, struct config *c, struct cordon_error **reterr)
{
	json_t *list = NULL, *item;
	size_t i;
	int r = json_get_array(obj, "", "secrets", &list, reterr);

	json_array_foreach(list, i, item)
	{
		const char *name = NULL, *value = NULL, *host = NULL, *header = NULL;
		if (r == 0)
			r = json_get_string(item, "", "name", &name, reterr);
		if (r == 0)
			r = json_get_string(item, "", "value", &value, reterr);
		if (r == 0)
			r = json_get_string(item, "", "host", &host, reterr);
		if (r == 0)
			r = json_get_string(item, "", "header", &header, reterr);
		if (r == 0)
			r = secret_list_add(&c->secrets, name, value, host, header, reterr);
		if (r < 0)
			return r;
	}
	return r;
}

static int add_pin(struct config *c, const char *name, const char *address,
		   struct cordon_error **reterr)
{
	struct address_block b;
	struct config_pin pin = { 0 };
	int r = host_parse(name, strlen(name), &pin.name, reterr);

	if (r < 0)
		return r;
	if (!address || !address_parse_block(address, &b) || strchr(address, '/'))
		return err_set(reterr, CORDON_INVALID, "resolve: '%s' is not an address",
			       address ? address : "?");
	pin.address = b.base;
	struct config_pin *grown = mem_grow(c->pins, c->pin_count + 1, sizeof(*grown));
	if (!grown)
		return no_memory(reterr);
	c->pins = grown;
	c->pins[c->pin_count++] = pin;
	return 0;
}

static int read_pins(const json_t *obj, struct config *c, struct cordon_error **reterr)
{
	json_t *map = NULL, *list, *item;
	const char *name;
	size_t i;
	int r = json_get_object(obj, "", "resolve", &map, reterr);

	if (r < 0 || !map)
		return r;
	json_object_foreach(map, name, list)
	{
		json_array_foreach(list, i, item)
		{
			r = add_pin(c, name, json_string_value(item), reterr);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* "http://[user:password@]host[:port]", as in HTTPS_PROXY. */
static int read_proxy(const json_t *obj, struct config *c, struct cordon_error **reterr)
{
	const char *text = NULL;
	cleanup_url struct url u = { 0 };
	int r = json_get_string(obj, "", "upstream_proxy", &text, reterr);

	if (r < 0 || !text)
		return r;
	r = url_parse(text, strlen(text), &u, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "upstream_proxy");
	if (u.is_tls)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "upstream_proxy: only http:// proxies are supported");
	c->has_proxy = true;
	c->proxy = u.host;
	c->proxy_port = u.port;
	const char *at = strrchr(text, '@'), *from = strstr(text, "://");
	if (!u.has_userinfo || !at || !from)
		return 0;
	cleanup_free char *user = base64_encode(from + 3, (size_t)(at - from - 3), NULL);
	c->proxy_authorization = user ? str_printf("Basic %s", user) : NULL;
	return c->proxy_authorization ? 0 : no_memory(reterr);
}

static int read_numbers(const json_t *obj, struct config *c, struct cordon_error **reterr)
{
	const struct {
		const char *key;
		uint64_t *to, preset;
	} numbers[] = {
		{ "request_bytes", &c->request_bytes, 10 << 20 },
		{ "response_bytes", &c->response_bytes, 10 << 20 },
		{ "timeout_ms", &c->timeout_ms, 30000 },
		{ "tunnel_ms", &c->tunnel_ms, 600000 },
		{ "connections", &c->connections, 64 },
		{ "total_bytes", &c->total_bytes, 100 << 20 },
		{ "approval_timeout_ms", &c->approval_timeout_ms, 300000 },
		{ "uid", &c->uid, 0 },
		{ "gid", &c->gid, 0 },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		*numbers[i].to = numbers[i].preset;
		int r = json_get_uint(obj, "", numbers[i].key, numbers[i].to, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

int config_read(const json_t *obj, struct config *ret, struct cordon_error **reterr)
{
	static const char *const keys[] = {
		"allow",      "block",       "ask",         "request_bytes",       "response_bytes",
		"timeout_ms", "connections", "total_bytes", "approval_timeout_ms", "callback",
		"secrets",    "ca_file",     "resolve",     "upstream_proxy",      "uid",
		"gid",        "fetch",       "tunnel_ms"
	};
	cleanup_config struct config c = { 0 };
	const char *ca_file = NULL;

	int r = json_check_keys(obj, "", keys, sizeof(keys) / sizeof(*keys), reterr);
	if (r == 0)
		r = read_numbers(obj, &c, reterr);
	if (r == 0)
		r = json_get_bool(obj, "", "callback", &c.callback, reterr);
	if (r == 0)
		r = json_get_string(obj, "", "ca_file", &ca_file, reterr);
	if (r == 0 && ca_file && !(c.ca_file = str_dup(ca_file)))
		r = no_memory(reterr);
	if (r == 0)
		r = read_ruleset(obj, &c, reterr);
	if (r == 0)
		r = read_secrets(obj, &c, reterr);
	if (r == 0)
		r = read_pins(obj, &c, reterr);
	if (r == 0)
		r = read_proxy(obj, &c, reterr);
	if (r == 0)
		r = json_get_object(obj, "", "fetch", &c.fetch, reterr);
	json_incref(c.fetch);
	if (r < 0)
		return r;
	*ret = c;
	c = (struct config){ 0 };
	return 0;
}

void config_done(struct config *c)
{
	c->rules = ruleset_free(c->rules);
	secret_list_done(&c->secrets);
	free(c->ca_file);
	free(c->pins);
	free(c->proxy_authorization);
	json_decref(c->fetch);
	*c = (struct config){ 0 };
}
