/* tools/registry.c - see registry.h. */
#include "tools/registry.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "tools/command.h"
#include "tools/schema.h"

enum { TOOLS_MAX = 10000, PACKAGE_MAX_BYTES = 1 << 20 };
/* A command may get a whole pipe's data as its input, so it has a larger default than a function.
 * LARGEST_BYTES bounds every tool's own limit, because a host holds several such texts at once. */
enum { COMMAND_BYTES = 16 << 20, LARGEST_BYTES = 256 << 20 };

int cordon_tools_new(struct cordon_tools **ret, struct cordon_error **reterr)
{
	struct cordon_tools *t = mem_alloc(sizeof(*t));

	if (!t)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	atomic_init(&t->refs, 1);
	pthread_rwlock_init(&t->lock, NULL);
	*ret = t;
	return 0;
}

struct cordon_tools *cordon_tools_ref(struct cordon_tools *t)
{
	if (t)
		atomic_fetch_add(&t->refs, 1);
	return t;
}

static struct tool *tool_free(struct tool *tool)
{
	if (!tool)
		return NULL;
	free(tool->name);
	free(tool->description);
	free(tool->category);
	free(tool->usage);
	json_decref(tool->examples);
	free(tool->python_package);
	json_decref(tool->schema);
	command_free(tool->host);
	free(tool);
	return NULL;
}

DEFINE_FREEP(struct tool *, tool_free)
#define cleanup_tool CLEANUP(tool_freep)

struct cordon_tools *cordon_tools_unref(struct cordon_tools *t)
{
	if (!t || atomic_fetch_sub(&t->refs, 1) > 1)
		return NULL;
	for (size_t i = 0; i < t->count; i++)
		(void)tool_free(t->items[i]);
	free(t->items);
	pthread_rwlock_destroy(&t->lock);
	free(t);
	return NULL;
}

static const struct tool *find_locked(const struct cordon_tools *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(t->items[i]->name, name) == 0)
			return t->items[i];
	return NULL;
}

const struct tool *registry_find(struct cordon_tools *t, const char *name)
{
	if (!t)
		return NULL;
	pthread_rwlock_rdlock(&t->lock);
	const struct tool *found = find_locked(t, name);
	pthread_rwlock_unlock(&t->lock);
	return found;
}

const struct tool *registry_at(struct cordon_tools *t, size_t index)
{
	if (!t)
		return NULL;
	pthread_rwlock_rdlock(&t->lock);
	const struct tool *found = index < t->count ? t->items[index] : NULL;
	pthread_rwlock_unlock(&t->lock);
	return found;
}

static int check_package(const struct cordon_tool *tool, struct cordon_error **reterr)
{
	cleanup_json json_t *files = NULL;
	const char *name;
	json_t *text;

	if (!tool->python_package)
		return 0;
	int r = json_parse(tool->python_package, strlen(tool->python_package), PACKAGE_MAX_BYTES,
			   &files, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "Tool '%s': its Python package", tool->name);
	if (!json_is_object(files))
		return err_set(reterr, CORDON_INVALID,
			       "Tool '%s': its Python package must be an object of files",
			       tool->name);
	json_object_foreach(files, name, text)
	{
		/* The guest writes these files below its package directory. */
		if (!*name || *name == '/' || strstr(name, "..") || !json_is_string(text))
			return err_set(reterr, CORDON_INVALID,
				       "Tool '%s': '%.64s' is not a file of a Python package",
				       tool->name, name);
	}
	return 0;
}

static int copy_examples(const char *const *from, json_t **ret)
{
	for (; from && *from; from++) {
		if (!*ret)
			*ret = json_array();
		if (json_array_append_new(*ret, json_string_lossy(*from, strlen(*from))) < 0)
			return -CORDON_NOMEM;
	}
	return 0;
}

static struct tool *tool_copy(const struct cordon_tool *from)
{
	cleanup_tool struct tool *tool = mem_alloc(sizeof(*tool));

	if (!tool)
		return NULL;
	tool->name = str_dup(from->name);
	tool->description = str_dup(from->description ? from->description : "");
	tool->category = str_dup(from->category);
	tool->usage = str_dup(from->usage);
	tool->python_package = str_dup(from->python_package);
	tool->fn = from->fn;
	tool->arg = from->arg;
	tool->max_calls = from->max_calls;
	tool->timeout_ms = from->timeout_ms ? from->timeout_ms : 30000;
	tool->result_bytes = from->result_bytes;
	tool->argument_bytes = from->argument_bytes;
	tool->approval = from->approval;
	tool->command = from->command;
	if (!tool->name || !tool->description || (from->category && !tool->category) ||
	    (from->usage && !tool->usage) || (from->python_package && !tool->python_package) ||
	    copy_examples(from->examples, &tool->examples) < 0)
		return NULL;
	return TAKE_PTR(tool);
}

static int insert(struct cordon_tools *t, struct tool *tool, struct cordon_error **reterr)
{
	if (find_locked(t, tool->name))
		return err_set(reterr, CORDON_EXISTS, "Duplicate tool names: \"%s\"", tool->name);
	if (t->count >= TOOLS_MAX)
		return err_set(reterr, CORDON_LIMIT, "there are %d tools already", TOOLS_MAX);
	struct tool **items = mem_grow(t->items, t->count + 1, sizeof(*items));
	if (!items)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	t->items = items;
	tool->index = t->count;
	items[t->count++] = tool;
	return 0;
}

int registry_add(struct cordon_tools *t, const struct cordon_tool *tool, struct command *host,
		 struct cordon_error **reterr)
{
	if (!schema_is_name(tool->name))
		return err_set(reterr, CORDON_INVALID,
			       "Tool name must be a valid identifier, not \"%.64s\"",
			       tool->name ? tool->name : "");
	if (tool->argument_bytes > LARGEST_BYTES || tool->result_bytes > LARGEST_BYTES)
		return err_set(reterr, CORDON_INVALID,
			       "Tool '%s': argument_bytes and result_bytes must be at most %d",
			       tool->name, LARGEST_BYTES);
	if (!tool->fn && !host)
		return err_set(reterr, CORDON_INVALID, "Tool '%s' has no function", tool->name);
	int r = check_package(tool, reterr);
	if (r < 0)
		return r;
	cleanup_tool struct tool *copy = tool_copy(tool);
	if (!copy)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	const char *args = tool->args_json;
	if (!args && tool->command)
		args = "{\"args\":{\"type\":\"array\",\"required\":false},"
		       "\"stdin\":{\"type\":[\"string\",\"bytes\"],\"required\":false}}";
	r = schema_compile(tool->name, args, &copy->schema, reterr);
	if (r < 0)
		return r;
	pthread_rwlock_wrlock(&t->lock);
	r = insert(t, copy, reterr);
	if (r >= 0) {
		copy->host = host;
		copy = NULL;
	}
	pthread_rwlock_unlock(&t->lock);
	return r;
}

int cordon_tools_add(struct cordon_tools *t, const struct cordon_tool *tool,
		     struct cordon_error **reterr)
{
	return registry_add(t, tool, NULL, reterr);
}

/* With copies: sessions in other threads describe the same tool. */
json_t *registry_describe(const struct tool *tool)
{
	cleanup_json json_t *package = NULL;
	json_t *args = schema_summary(tool->schema);

	if (!args)
		return NULL;
	json_t *j = json_pack("{s:s,s:s,s:o,s:o,s:b}", "name", tool->name, "description",
			      tool->description, "args", args, "schema",
			      json_deep_copy(tool->schema), "command", tool->command);
	if (!j)
		return NULL;
	int r = 0;
	if (tool->category)
		r |= json_object_set_new(j, "category", json_string(tool->category));
	if (tool->usage)
		r |= json_object_set_new(j, "usage", json_string(tool->usage));
	if (tool->examples)
		r |= json_object_set_new(j, "examples", json_deep_copy(tool->examples));
	if (tool->approval)
		r |= json_object_set_new(j, "approval", json_true());
	if (tool->python_package) {
		r |= json_parse(tool->python_package, strlen(tool->python_package), 0, &package,
				NULL);
		r |= json_object_set(j, "python_package", package);
	}
	if (r == 0)
		return j;
	json_decref(j);
	return NULL;
}

static bool is_listed(const struct policy_list *list, const char *name)
{
	return list->all || strlist_has(&list->names, name);
}

json_t *registry_list(struct cordon_tools *t, const struct policy *policy)
{
	cleanup_json json_t *list = json_array();

	for (size_t i = 0;; i++) {
		const struct tool *tool = registry_at(t, i);
		if (!tool)
			break;
		/* A tool that `commands` denies is still listed; calling it gives a clear error. */
		if (policy && !is_listed(&policy->tools, tool->name))
			continue;
		json_t *one = registry_describe(tool);
		if (one && policy)
			(void)json_object_set_new(
				one, "argument_bytes",
				json_integer((json_int_t)registry_argument_max(tool, policy)));
		if (!one || json_array_append_new(list, one) < 0)
			return NULL;
	}
	return TAKE_PTR(list);
}

char *cordon_tools_json(const struct cordon_tools *t)
{
	cleanup_json json_t *list = registry_list((struct cordon_tools *)t, NULL);

	return list ? json_text(list, NULL) : NULL;
}

static uint64_t size_of(uint64_t own, bool is_command, const struct policy *policy)
{
	if (own)
		return own;
	return is_command && policy->message_bytes < COMMAND_BYTES ? COMMAND_BYTES
								   : policy->message_bytes;
}

uint64_t registry_argument_max(const struct tool *tool, const struct policy *policy)
{
	return size_of(tool->argument_bytes, tool->command, policy);
}

uint64_t registry_argument_most(struct cordon_tools *t, const struct policy *policy)
{
	uint64_t most = 0;

	for (size_t i = 0;; i++) {
		const struct tool *tool = registry_at(t, i);
		if (!tool)
			return most;
		uint64_t own = registry_argument_max(tool, policy);
		if (own > most && !registry_denied_by(policy, tool))
			most = own;
	}
}

uint64_t registry_result_max(const struct tool *tool, const struct policy *policy)
{
	return size_of(tool->result_bytes, tool->command, policy);
}

int registry_names(struct cordon_tools *t, struct strlist *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0; i++) {
		const struct tool *tool = registry_at(t, i);
		if (!tool)
			break;
		if (!str_eq(tool->name, ".") && !str_eq(tool->name, ".."))
			r = strlist_add(ret, tool->name);
	}
	if (r == 0 && !strlist_has(ret, "extensions"))
		r = strlist_add(ret, "extensions");
	return r;
}

const char *registry_denied_by(const struct policy *policy, const struct tool *tool)
{
	if (!is_listed(&policy->tools, tool->name))
		return "tools";
	return tool->command && !policy_shells_run(policy, tool->name) ? "commands" : NULL;
}
