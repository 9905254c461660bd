/* policy/net_rule.c - one entry of network.allow or network.block. */
#include <string.h>

#include "policy/array.h"
#include "policy/name.h"
#include "policy/pattern.h"

enum { RULES_MAX = 1024, METHODS_MAX = 32, PATH_MAX_LEN = 2048 };

static void item_done(void *item)
{
	struct policy_net_rule *rule = item;

	free(rule->host);
	strlist_done(&rule->methods);
	free(rule->path_prefix);
	*rule = (struct policy_net_rule){ 0 };
}

static int read_port(struct policy_net_rule *rule, const char *where, const json_t *j,
		     struct cordon_error **reterr)
{
	json_int_t port = json_integer_value(j);

	if (!json_is_integer(j) || port < 1 || port > UINT16_MAX) {
		cleanup_free char *label = str_printf("%s.port", where);
		return label ? kind_refuse(label, "a number from 1 to 65535", j, reterr)
			     : kind_nomem(reterr);
	}
	if (rule->port && rule->port != port)
		return err_set(reterr, CORDON_INVALID, "%s names two ports", where);
	rule->port = (uint16_t)port;
	return 0;
}

static int read_methods(struct policy_net_rule *rule, const char *where, const json_t *j,
			struct cordon_error **reterr)
{
	cleanup_free char *label = str_printf("%s.methods", where);
	size_t i;
	json_t *item;

	if (!label)
		return kind_nomem(reterr);
	if (!json_is_array(j) || json_array_size(j) == 0 || json_array_size(j) > METHODS_MAX)
		return kind_refuse(label, "a list of HTTP methods", j, reterr);
	json_array_foreach(j, i, item)
	{
		char method[40];
		const char *s = kind_string(item);
		if (!s || !str_copy(method, sizeof(method), s))
			return kind_refuse(label, "a list of HTTP methods", item, reterr);
		for (char *c = method; *c; c++)
			if (*c >= 'a' && *c <= 'z')
				*c = (char)(*c & ~0x20);
		if (!name_is_method(method))
			return kind_refuse(label, "a list of HTTP methods", item, reterr);
		if (!strlist_has(&rule->methods, method) && strlist_add(&rule->methods, method) < 0)
			return kind_nomem(reterr);
	}
	return 0;
}

static int read_path(struct policy_net_rule *rule, const char *where, const char *path,
		     struct cordon_error **reterr)
{
	if (!name_is_path(path) || strlen(path) > PATH_MAX_LEN || strpbrk(path, "?# \\"))
		return err_set(
			reterr, CORDON_INVALID,
			"%s: the path must begin with '/' and be without '..', '?' and '#', got: "
			"%.100s",
			where, path);
	rule->path_prefix = str_dup(path);
	return rule->path_prefix ? 0 : kind_nomem(reterr);
}

static int read_object(struct policy_net_rule *rule, const char *where, const json_t *j,
		       struct cordon_error **reterr)
{
	static const char *const keys[] = { "host", "port", "methods", "path" };
	const json_t *port = json_object_get(j, "port"), *methods = json_object_get(j, "methods");
	const char *host = NULL, *path = NULL;
	int r = array_keys(j, where, keys, sizeof(keys) / sizeof(*keys), reterr);

	if (r == 0)
		r = array_text(j, where, "host", &host, reterr);
	if (r == 0)
		r = array_text(j, where, "path", &path, reterr);
	if (r == 0 && !host)
		r = err_set(reterr, CORDON_INVALID, "%s needs host", where);
	if (r == 0)
		r = pattern_parse(host, where, &rule->host, &rule->port, reterr);
	if (r == 0 && port)
		r = read_port(rule, where, port, reterr);
	if (r == 0 && methods)
		r = read_methods(rule, where, methods, reterr);
	if (r == 0 && path)
		r = read_path(rule, where, path, reterr);
	return r;
}

static int item_read(void *item, const char *where, const json_t *j, struct cordon_error **reterr)
{
	struct policy_net_rule *rule = item;
	const char *text = kind_string(j);

	if (json_is_object(j))
		return read_object(rule, where, j, reterr);
	if (!text)
		return kind_refuse(where, "a host or an object with one", j, reterr);
	return pattern_parse(text, where, &rule->host, &rule->port, reterr);
}

static json_t *item_write(const void *item, bool with_secrets)
{
	const struct policy_net_rule *rule = item;
	cleanup_json json_t *j = json_pack("{s:s}", "host", rule->host);
	cleanup_json json_t *methods = json_array();
	bool ok = j && methods;

	(void)with_secrets;
	/* Uses the shortest form that is read back as the same rule. */
	if (ok && !rule->port && !rule->methods.count && !rule->path_prefix)
		return json_string(rule->host);
	for (size_t i = 0; ok && i < rule->methods.count; i++)
		ok = json_array_append_new(methods, json_string(rule->methods.items[i])) == 0;
	if (ok && rule->port)
		ok = json_object_set_new(j, "port", json_integer(rule->port)) == 0;
	if (ok && rule->methods.count)
		ok = json_object_set(j, "methods", methods) == 0;
	if (ok && rule->path_prefix)
		ok = json_object_set_new(j, "path", json_string(rule->path_prefix)) == 0;
	return ok ? TAKE_PTR(j) : NULL;
}

static int item_copy(void *dst, const void *src)
{
	struct policy_net_rule *to = dst;
	const struct policy_net_rule *from = src;

	to->port = from->port;
	to->host = str_dup(from->host);
	to->path_prefix = str_dup(from->path_prefix);
	if (!to->host || (from->path_prefix && !to->path_prefix))
		return -CORDON_NOMEM;
	return strlist_copy(&to->methods, &from->methods);
}

static int item_say(const void *item, struct buf *b)
{
	const struct policy_net_rule *rule = item;
	int r = buf_add_str(b, str_eq(rule->host, "*") ? "every host" : rule->host);

	if (r == 0 && rule->port)
		r = buf_printf(b, " port %u", rule->port);
	if (r == 0 && rule->methods.count)
		r = buf_add_str(b, " with ");
	if (r == 0)
		r = kind_say_words(&rule->methods, b);
	if (r == 0 && rule->path_prefix)
		r = buf_printf(b, " below %s", rule->path_prefix);
	return r;
}

static const struct array_of items = {
	.size = sizeof(struct policy_net_rule),
	.max = RULES_MAX,
	.star = true,
	.read = item_read,
	.write = item_write,
	.copy = item_copy,
	.done = item_done,
	.say = item_say,
};
const struct kind kind_rules = ARRAY_KIND(&items);
