/* serve/rpc/open_params.c - see open_params.h. */
#include "serve/rpc/open_params.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "policy/public.h"
#include "serve/rpc/target.h"

static int apply_sets(struct cordon_policy *p, const json_t *sets, struct cordon_error **reterr)
{
	size_t i;
	json_t *set;

	json_array_foreach(sets, i, set)
	{
		if (!json_is_string(set))
			return err_set(reterr, CORDON_INVALID, "/params/set/%zu must be a string",
				       i);
		int r = cordon_policy_set(p, json_string_value(set), reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

static int apply_all(struct cordon_policy *p, const json_t *params, struct cordon_error **reterr)
{
	json_t *policy = NULL, *sets = NULL;
	int r = json_get_object(params, "/params", "policy", &policy, reterr);

	if (r == 0)
		r = json_get_array(params, "/params", "set", &sets, reterr);
	if (r == 0 && policy) {
		cleanup_free char *text = json_text(policy, NULL);
		r = text ? cordon_policy_apply_json(p, text, reterr)
			 : err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	if (r == 0 && sets)
		r = apply_sets(p, sets, reterr);
	return r;
}

int open_params_policy(const struct rpc *c, const json_t *params, struct cordon_policy **ret,
		       struct cordon_error **reterr)
{
	struct cordon_policy *p = NULL;
	const char *level = NULL;
	int r = params ? json_get_string(params, "/params", "level", &level, reterr) : 0;

	if (r < 0)
		return r;
	if (level || !c->policy) {
		r = cordon_policy_new(level, &p, reterr);
	} else {
		p = cordon_policy_copy(c->policy, reterr);
		r = p ? 0 : -CORDON_NOMEM;
	}
	if (r == 0 && c->is_shared && c->policy)
		r = policy_inherit(&p->p, &c->policy->p, reterr);
	if (r == 0 && params)
		r = apply_all(p, params, reterr);
	if (r == 0 && c->is_limited && c->policy)
		r = policy_narrows(&c->policy->p, &p->p, reterr);
	if (r < 0) {
		cordon_policy_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

static int read_budgets(const json_t *t, const char *where, struct cordon_tool *ret,
			struct cordon_error **reterr)
{
	int r = json_get_uint(t, where, "max_calls", &ret->max_calls, reterr);

	if (r == 0)
		r = json_get_uint(t, where, "timeout_ms", &ret->timeout_ms, reterr);
	if (r == 0)
		r = json_get_uint(t, where, "result_bytes", &ret->result_bytes, reterr);
	if (r == 0)
		r = json_get_uint(t, where, "argument_bytes", &ret->argument_bytes, reterr);
	if (r == 0)
		r = json_get_bool(t, where, "approval", &ret->approval, reterr);
	if (r == 0)
		r = json_get_bool(t, where, "command", &ret->command, reterr);
	return r;
}

static int read_examples(const json_t *t, const char *where, struct strlist *ret,
			 struct cordon_error **reterr)
{
	json_t *list = NULL, *one;
	size_t i;
	int r = json_get_array(t, where, "examples", &list, reterr);

	json_array_foreach(list, i, one)
	{
		if (r == 0 && !json_is_string(one))
			r = err_set(reterr, CORDON_INVALID, "%s/examples must be a list of strings",
				    where);
		if (r == 0 && strlist_add(ret, json_string_value(one)) < 0)
			r = err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return r;
}

static int read_words(const json_t *t, const char *where, struct cordon_tool *ret,
		      struct cordon_error **reterr)
{
	int r = json_get_string(t, where, "name", &ret->name, reterr);

	if (r == 0)
		r = json_get_string(t, where, "description", &ret->description, reterr);
	if (r == 0)
		r = json_get_string(t, where, "category", &ret->category, reterr);
	if (r == 0)
		r = json_get_string(t, where, "usage", &ret->usage, reterr);
	return r;
}

static int read_tool(struct request *q, struct cordon_tools *tools, const json_t *t, size_t index,
		     struct cordon_error **reterr)
{
	static const char *const keys[] = { "name",           "description",    "args",
					    "category",       "max_calls",      "timeout_ms",
					    "result_bytes",   "approval",       "command",
					    "python_package", "argument_bytes", "usage",
					    "examples" };
	struct cordon_tool tool = { .fn = callback_call_tool, .arg = &q->rpc->callbacks };
	cleanup_free char *args = NULL, *package = NULL;
	cleanup_strlist struct strlist examples = { 0 };
	char where[48];
	json_t *args_json = NULL, *package_json = NULL;

	snprintf(where, sizeof(where), "/params/tools/%zu", index);
	if (!json_is_object(t))
		return err_set(reterr, CORDON_INVALID, "%s must be an object", where);
	int r = json_check_keys(t, where, keys, sizeof(keys) / sizeof(*keys), reterr);
	if (r == 0)
		r = read_words(t, where, &tool, reterr);
	if (r == 0)
		r = read_examples(t, where, &examples, reterr);
	if (r == 0)
		r = json_get_object(t, where, "args", &args_json, reterr);
	if (r == 0)
		r = json_get_object(t, where, "python_package", &package_json, reterr);
	if (r == 0)
		r = read_budgets(t, where, &tool, reterr);
	if (r < 0)
		return r;
	if (!tool.name)
		return err_set(reterr, CORDON_INVALID, "%s needs a name", where);
	tool.examples = (const char *const *)examples.items;
	tool.args_json = args = args_json ? json_text(args_json, NULL) : NULL;
	tool.python_package = package = package_json ? json_text(package_json, NULL) : NULL;
	if ((args_json && !args) || (package_json && !package))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return cordon_tools_add(tools, &tool, reterr);
}

static int read_tools(struct request *q, const json_t *list, struct cordon_tools **ret,
		      struct cordon_error **reterr)
{
	size_t i;
	json_t *t;

	if (!list || json_array_size(list) == 0)
		return 0;
	int r = cordon_tools_new(ret, reterr);
	if (r < 0)
		return r;
	json_array_foreach(list, i, t)
	{
		r = read_tool(q, *ret, t, i, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_env(const json_t *env, struct strlist *ret, struct cordon_error **reterr)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		if (!json_is_string(value))
			return err_set(reterr, CORDON_INVALID,
				       "/params/env/%.100s must be a string", name);
		if (strchr(name, '='))
			return err_set(reterr, CORDON_INVALID,
				       "Invalid environment variable name: '%.100s'", name);
		cleanup_free char *pair = str_printf("%s=%s", name, json_string_value(value));
		if (!pair || strlist_add(ret, pair) < 0)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return 0;
}

int open_params_list(const struct request *q, const char *key, struct strlist *ret,
		     struct cordon_error **reterr)
{
	json_t *list = NULL, *one;
	size_t i;
	int r = json_get_array(q->params, "/params", key, &list, reterr);

	json_array_foreach(list, i, one)
	{
		if (r == 0 && !json_is_string(one))
			r = err_set(reterr, CORDON_INVALID, "/params/%s must be a list of strings",
				    key);
		if (r == 0 && strlist_add(ret, json_string_value(one)) < 0)
			r = err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return r;
}

static void send_audit(const char *line, size_t len, void *arg)
{
	struct rpc *c = arg;

	(void)rpc_notify(c, "audit", line, len);
}

static void send_log(const char *line, size_t len, void *arg)
{
	struct rpc *c = arg;

	(void)rpc_notify(c, "log", line, len);
}

/* Tools that are host commands. The server runs them as its own user, which is also the
 * client's. */
static int read_host_tools(const struct request *q, struct cordon_tools **tools,
			   struct cordon_error **reterr)
{
	json_t *list = NULL;
	int r = json_get_array(q->params, "/params", "host_tools", &list, reterr);

	if (r < 0 || json_array_size(list) == 0)
		return r;
	if (!*tools)
		r = cordon_tools_new(tools, reterr);
	cleanup_free char *text = json_text(list, NULL);
	if (r == 0 && !text)
		r = err_set(reterr, CORDON_NOMEM, "out of memory");
	return r < 0 ? r : cordon_tools_add_json(*tools, text, reterr);
}

static int read_watches(struct request *q, struct open_params *o, struct cordon_error **reterr)
{
	bool audit = false, verbose = false;
	int r = target_bool(q, "audit", &audit, reterr);

	if (r == 0)
		r = target_bool(q, "verbose", &verbose, reterr);
	if (r == 0 && audit) {
		o->options.audit = send_audit;
		o->options.audit_arg = q->rpc;
	}
	if (r == 0 && verbose) {
		o->options.log = send_log;
		o->options.log_arg = q->rpc;
	}
	return r;
}

static int read_rest(struct request *q, struct open_params *o, struct cordon_error **reterr)
{
	json_t *tools = NULL, *env = NULL;
	int r = json_get_array(q->params, "/params", "tools", &tools, reterr);

	if (r == 0)
		r = json_get_object(q->params, "/params", "env", &env, reterr);
	if (r == 0)
		r = target_string(q, "guest", &o->options.guest, reterr);
	if (r == 0)
		r = target_string(q, "workspace", &o->options.workspace, reterr);
	if (r == 0)
		r = target_string(q, "directory", &o->options.directory, reterr);
	if (r == 0)
		r = target_bool(q, "cold", &o->options.cold, reterr);
	if (r == 0)
		r = read_tools(q, tools, &o->tools, reterr);
	if (r == 0)
		r = read_host_tools(q, &o->tools, reterr);
	if (r == 0 && env)
		r = read_env(env, &o->env, reterr);
	if (r == 0)
		r = open_params_list(q, "languages", &o->languages, reterr);
	if (r == 0)
		r = open_params_list(q, "packages", &o->packages, reterr);
	return r < 0 ? r : read_watches(q, o, reterr);
}

int open_params_read(struct request *q, const char *guest, struct open_params *ret,
		     struct cordon_error **reterr)
{
	*ret = (struct open_params){ .options = { .guest = guest } };
	int r = open_params_policy(q->rpc, q->params, &ret->policy, reterr);
	if (r == 0 && q->params)
		r = read_rest(q, ret, reterr);
	if (r < 0)
		return r;
	ret->options.policy = ret->policy;
	ret->options.tools = ret->tools;
	ret->options.env = ret->env.count ? (const char *const *)ret->env.items : NULL;
	if (ret->languages.count)
		ret->options.languages = (const char *const *)ret->languages.items;
	if (ret->packages.count)
		ret->options.packages = (const char *const *)ret->packages.items;
	ret->options.approval = callback_ask;
	ret->options.approval_arg = &q->rpc->callbacks;
	return 0;
}

/* Remembers all parameters or none; without them the session cannot be moved. */
void open_params_remember(struct client_session *cs, const json_t *params, const char *guest)
{
	cleanup_json json_t *kept = params ? json_deep_copy(params) : json_object();

	if (!kept)
		return;
	if (!json_object_get(kept, "guest") && guest &&
	    json_object_set_new(kept, "guest", json_string(guest)) != 0)
		return;
	cs->has_storage = json_is_true(json_object_get(kept, "storage"));
	cs->open_params = TAKE_PTR(kept);
}

void open_params_done(struct open_params *o)
{
	o->policy = cordon_policy_free(o->policy);
	o->tools = cordon_tools_unref(o->tools);
	strlist_done(&o->env);
	strlist_done(&o->languages);
	strlist_done(&o->packages);
}

uint64_t open_params_memory(const struct open_params *o)
{
	return o->policy ? o->policy->p.memory_bytes : 0;
}
