/* tools/extensions.c - see extensions.h. */
#include "tools/extensions.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "tools/registry.h"
#include "tools/schema.h"

static const char usage[] = "Usage: extensions list [--category NAME] [--json]\n"
			    "       extensions info NAME\n"
			    "       extensions --help\n";

struct reply {
	struct buf out, err;
	int exit_code;
};

static int list_text(struct cordon_tools *tools, const struct policy *policy, const char *category,
		     struct reply *r)
{
	int added = 0;

	for (size_t i = 0;; i++) {
		const struct tool *t = registry_at(tools, i);
		if (!t)
			break;
		if (registry_denied_by(policy, t) || (category && !str_eq(category, t->category)))
			continue;
		if (added++ == 0 &&
		    buf_printf(&r->out, "%-20s %-12s %s\n", "NAME", "CATEGORY", "DESCRIPTION") < 0)
			return -CORDON_NOMEM;
		if (buf_printf(&r->out, "%-20s %-12s %s\n", t->name,
			       t->category ? t->category : "-", t->description) < 0)
			return -CORDON_NOMEM;
	}
	return added ? 0 : buf_add_str(&r->out, "No extensions.\n");
}

static int list_json(struct cordon_tools *tools, const struct policy *policy, const char *category,
		     struct reply *r)
{
	cleanup_json json_t *list = json_array();

	for (size_t i = 0;; i++) {
		const struct tool *t = registry_at(tools, i);
		if (!t)
			break;
		if (registry_denied_by(policy, t) || (category && !str_eq(category, t->category)))
			continue;
		json_t *one = registry_describe(t);
		(void)json_object_del(one, "python_package");
		if (!one || json_array_append_new(list, one) < 0)
			return -CORDON_NOMEM;
	}
	cleanup_free char *text = json_text(list, NULL);
	return text ? buf_printf(&r->out, "%s\n", text) : -CORDON_NOMEM;
}

static int fail(struct reply *r, const char *message, const char *what)
{
	r->exit_code = 1;
	return buf_printf(&r->err, "extensions: %s%s%s\n", message, what ? ": " : "",
			  what ? what : "");
}

static int list(struct cordon_tools *tools, const struct policy *policy, const json_t *args,
		struct reply *r)
{
	const char *category = NULL;
	bool as_json = false;

	for (size_t i = 1; i < json_array_size(args); i++) {
		const char *arg = json_string_value(json_array_get(args, i));
		const char *after = json_string_value(json_array_get(args, i + 1));
		if (str_eq(arg, "--json")) {
			as_json = true;
		} else if (str_eq(arg, "--category") && after) {
			category = after;
			i++;
		} else if (arg && str_starts(arg, "--category=")) {
			category = arg + strlen("--category=");
		} else {
			return fail(r, "unknown option", arg ? arg : "(not a string)");
		}
	}
	return as_json ? list_json(tools, policy, category, r)
		       : list_text(tools, policy, category, r);
}

static int describe_use(const struct tool *t, struct reply *r)
{
	json_t *example;
	size_t i;
	int e = t->usage ? buf_printf(&r->out, "Usage:       %s\n", t->usage) : 0;

	json_array_foreach(t->examples, i, example)
	{
		if (e >= 0)
			e = buf_printf(&r->out, "Example:     %s\n", json_string_value(example));
	}
	return e;
}

static int info(struct cordon_tools *tools, const struct policy *policy, const char *name,
		struct reply *r)
{
	const struct tool *t = name ? registry_find(tools, name) : NULL;

	if (!name)
		return fail(r, "info needs a name", NULL);
	if (!t || registry_denied_by(policy, t))
		return fail(r, "unknown extension", name);
	int e = buf_printf(&r->out, "Name:        %s\nDescription: %s\n", t->name, t->description);
	if (e >= 0 && t->category)
		e = buf_printf(&r->out, "Category:    %s\n", t->category);
	if (e >= 0)
		e = describe_use(t, r);
	cleanup_json json_t *summary = schema_summary(t->schema);
	const char *arg;
	json_t *one;
	if (!summary)
		return -CORDON_NOMEM;
	json_object_foreach(summary, arg, one)
	{
		cleanup_free char *type = json_text(json_object_get(one, "type"), NULL);
		bool is_required = json_is_true(json_object_get(one, "required"));
		if (e >= 0)
			e = buf_printf(&r->out, "Argument:    %s %s%s\n", arg, type ? type : "null",
				       is_required ? "" : " (optional)");
	}
	if (e >= 0 && t->python_package)
		e = buf_printf(&r->out, "Python:      import %s\n", t->name);
	return e;
}

json_t *extensions_run(struct cordon_tools *tools, const struct policy *policy, const json_t *args)
{
	struct reply r = { 0 };
	const char *verb = json_string_value(json_array_get(args, 0));
	int e;

	buf_init(&r.out, 1 << 20);
	buf_init(&r.err, 1 << 16);
	if (str_eq(verb, "--help") || str_eq(verb, "-h") || str_eq(verb, "help"))
		e = buf_add_str(&r.out, usage);
	else if (str_eq(verb, "list"))
		e = list(tools, policy, args, &r);
	else if (str_eq(verb, "info"))
		e = info(tools, policy, json_string_value(json_array_get(args, 1)), &r);
	else if ((e = fail(&r, verb ? "unknown subcommand" : "a subcommand is missing", verb)) >= 0)
		e = buf_add_str(&r.err, usage);
	json_t *out = json_string_lossy(buf_text(&r.out), r.out.len);
	json_t *err = json_string_lossy(buf_text(&r.err), r.err.len);
	json_t *reply =
		json_pack("{s:o,s:o,s:i}", "stdout", out, "stderr", err, "exit_code", r.exit_code);
	buf_done(&r.out);
	buf_done(&r.err);
	if (e >= 0)
		return reply;
	json_decref(reply);
	return NULL;
}
