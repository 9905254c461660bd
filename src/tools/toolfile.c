/* tools/toolfile.c - loads tools that are host commands from a JSON file. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "tools/command.h"
#include "tools/registry.h"
#include "tools/schema.h"

enum { FILE_MAX_BYTES = 4 << 20 };

DEFINE_FREEP(struct command *, command_free)
#define cleanup_command CLEANUP(command_freep)

static int take_strings(const json_t *obj, const char *where, const char *key, struct strlist *ret,
			struct cordon_error **reterr)
{
	json_t *list = NULL, *entry;
	size_t i;
	int r = json_get_array(obj, where, key, &list, reterr);

	if (r < 0)
		return r;
	json_array_foreach(list, i, entry)
	{
		const char *s = json_string_value(entry);
		if (!s || strlen(s) != json_string_length(entry))
			return err_set(reterr, CORDON_INVALID, "%s/%s must be a list of strings",
				       where, key);
		if (strlist_add(ret, s) < 0)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return 0;
}

static int take_env(const json_t *obj, const char *where, struct strlist *ret,
		    struct cordon_error **reterr)
{
	json_t *env = NULL, *value;
	const char *name;
	int r = json_get_object(obj, where, "env", &env, reterr);

	if (r < 0)
		return r;
	json_object_foreach(env, name, value)
	{
		const char *s = json_string_value(value);
		if (!s || !*name || strchr(name, '='))
			return err_set(reterr, CORDON_INVALID, "%s/env must be names with strings",
				       where);
		cleanup_free char *entry = str_printf("%s=%s", name, s);
		if (!entry || strlist_add(ret, entry) < 0)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return 0;
}

/* "./add" is relative to the tool file, wherever the host runs. */
static int resolve(struct command *c, const char *directory, struct cordon_error **reterr)
{
	char *first = c->argv.items[0];

	if (!directory)
		return 0;
	c->directory = str_dup(directory);
	if (*first != '/' && strchr(first, '/')) {
		char *whole = str_printf("%s/%s", directory, first);
		if (!whole)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
		free(first);
		c->argv.items[0] = whole;
	}
	return c->directory ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int take_command(const json_t *obj, const char *where, const char *directory,
			struct command **ret, struct cordon_error **reterr)
{
	cleanup_command struct command *c = mem_alloc(sizeof(*c));

	if (!c)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = take_strings(obj, where, "command", &c->argv, reterr);
	if (r >= 0)
		r = take_strings(obj, where, "env_pass", &c->env_pass, reterr);
	if (r >= 0)
		r = take_env(obj, where, &c->env, reterr);
	if (r >= 0)
		r = json_get_bool(obj, where, "argv", &c->is_plain, reterr);
	if (r < 0)
		return r;
	if (c->argv.count == 0 || !*c->argv.items[0])
		return err_set(reterr, CORDON_INVALID,
			       "%s/command must be a list with a program and its arguments", where);
	r = resolve(c, directory, reterr);
	if (r >= 0)
		*ret = TAKE_PTR(c);
	return r;
}

static char *text_of(const json_t *obj, const char *key)
{
	const json_t *j = json_object_get(obj, key);

	return j ? json_text(j, NULL) : NULL;
}

static int take_tool(struct cordon_tools *t, const json_t *obj, const char *where,
		     const char *directory, struct cordon_error **reterr)
{
	static const char *const keys[] = { "name",       "description",    "args",
					    "category",   "command",        "argv",
					    "timeout_ms", "max_calls",      "result_bytes",
					    "approval",   "python_package", "env",
					    "env_pass",   "argument_bytes", "usage",
					    "examples" };
	cleanup_command struct command *host = NULL;
	cleanup_strlist struct strlist examples = { 0 };
	struct cordon_tool tool = { 0 };

	if (!json_is_object(obj))
		return err_set(reterr, CORDON_INVALID, "%s must be an object", where);
	int r = json_check_keys(obj, where, keys, sizeof(keys) / sizeof(*keys), reterr);
	if (r >= 0)
		r = json_get_string(obj, where, "name", &tool.name, reterr);
	if (r >= 0)
		r = json_get_string(obj, where, "description", &tool.description, reterr);
	if (r >= 0)
		r = json_get_string(obj, where, "category", &tool.category, reterr);
	if (r >= 0)
		r = json_get_string(obj, where, "usage", &tool.usage, reterr);
	if (r >= 0)
		r = take_strings(obj, where, "examples", &examples, reterr);
	if (r >= 0)
		r = json_get_uint(obj, where, "timeout_ms", &tool.timeout_ms, reterr);
	if (r >= 0)
		r = json_get_uint(obj, where, "max_calls", &tool.max_calls, reterr);
	if (r >= 0)
		r = json_get_uint(obj, where, "result_bytes", &tool.result_bytes, reterr);
	if (r >= 0)
		r = json_get_uint(obj, where, "argument_bytes", &tool.argument_bytes, reterr);
	if (r >= 0)
		r = json_get_bool(obj, where, "approval", &tool.approval, reterr);
	if (r >= 0)
		r = take_command(obj, where, directory, &host, reterr);
	if (r < 0)
		return r;
	cleanup_free char *args = text_of(obj, "args"), *package = text_of(obj, "python_package");
	tool.args_json = args;
	tool.examples = (const char *const *)examples.items;
	tool.python_package = package;
	tool.command = host->is_plain;
	r = registry_add(t, &tool, host, reterr);
	if (r >= 0)
		host = NULL;
	return r;
}

static int take_tools(struct cordon_tools *t, const json_t *root, const char *directory,
		      struct cordon_error **reterr)
{
	const json_t *list = json_is_object(root) ? json_object_get(root, "tools") : root;
	json_t *one;
	size_t i;

	if (!json_is_array(list))
		return err_set(reterr, CORDON_INVALID,
			       "tools must be a list, or an object with the list 'tools'");
	json_array_foreach((json_t *)list, i, one)
	{
		char where[40];
		(void)snprintf(where, sizeof(where), "/tools/%zu", i);
		int r = take_tool(t, one, where, directory, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

int cordon_tools_add_json(struct cordon_tools *t, const char *json, struct cordon_error **reterr)
{
	cleanup_json json_t *root = NULL;
	int r = json_parse(json, strlen(json), FILE_MAX_BYTES, &root, reterr);

	return r < 0 ? r : take_tools(t, root, NULL, reterr);
}

int cordon_tools_add_file(struct cordon_tools *t, const char *path, struct cordon_error **reterr)
{
	cleanup_json json_t *root = NULL;
	int r = json_parse_file(path, FILE_MAX_BYTES, &root, reterr);

	if (r < 0)
		return r;
	cleanup_free char *real = realpath(path, NULL);
	char *slash = real ? strrchr(real, '/') : NULL;
	if (slash)
		*slash = '\0';
	r = take_tools(t, root, slash && *real ? real : NULL, reterr);
	return r < 0 ? err_wrap(reterr, r, "'%s'", path) : 0;
}
