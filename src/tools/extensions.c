/* tools/extensions.c - see extensions.h. */
#include "tools/extensions.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "tools/registry.h"
#include "tools/schema.h"

static const char usage[] =
	"Usage: extensions SUBCOMMAND [OPTION]...\n"
	"\n"
	"Subcommands:\n"
	"  list [--category CATEGORY] [--json]   the commands that the host provides\n"
	"  info NAME                             what one of them does\n";

struct reply {
	struct buf out, err;
	int exit_code;
};

/* Whether the list has it. */
static bool is_shown(const struct tool *t, const struct policy *policy, const char *category)
{
	return !registry_denied_by(policy, t) && (!category || str_eq(category, t->category));
}

static const char *category_of(const struct tool *t)
{
	return t->category ? t->category : "";
}

static size_t width_of(const char *text)
{
	size_t n = 0;

	for (const char *p = text; *p; p++)
		n += ((unsigned char)*p & 0xc0) != 0x80;
	return n;
}

static int add_column(struct buf *b, const char *text, size_t width)
{
	size_t n = width_of(text);

	return buf_printf(b, "%s%*s", text, (int)(n < width ? width - n : 0) + 2, "");
}

static int list_head(struct buf *b, size_t names, size_t categories)
{
	int e = add_column(b, "NAME", names);

	if (e >= 0)
		e = add_column(b, "CATEGORY", categories);
	if (e >= 0)
		e = buf_add_str(b, "DESCRIPTION\n");
	for (size_t n = names + categories + 4 + strlen("DESCRIPTION"); e >= 0 && n > 0; n--)
		e = buf_add_str(b, "\xe2\x94\x80");
	return e < 0 ? e : buf_add_str(b, "\n");
}

static int list_text(struct cordon_tools *tools, const struct policy *policy, const char *category,
		     struct reply *r)
{
	size_t count = 0, names = strlen("NAME"), categories = strlen("CATEGORY");
	const struct tool *t;

	for (size_t i = 0; (t = registry_at(tools, i)); i++) {
		if (!is_shown(t, policy, category))
			continue;
		count++;
		size_t name = width_of(t->name), own = width_of(category_of(t));
		names = name > names ? name : names;
		categories = own > categories ? own : categories;
	}
	if (count == 0)
		return buf_add_str(&r->out, "(no extensions registered)\n");
	int e = list_head(&r->out, names, categories);
	for (size_t i = 0; e >= 0 && (t = registry_at(tools, i)); i++) {
		if (!is_shown(t, policy, category))
			continue;
		e = add_column(&r->out, t->name, names);
		if (e >= 0)
			e = add_column(&r->out, category_of(t), categories);
		if (e >= 0)
			e = buf_printf(&r->out, "%s\n", t->description);
	}
	return e;
}

static int list_json(struct cordon_tools *tools, const struct policy *policy, const char *category,
		     struct reply *r)
{
	cleanup_json json_t *list = json_array();

	for (size_t i = 0;; i++) {
		const struct tool *t = registry_at(tools, i);
		if (!t)
			break;
		if (!is_shown(t, policy, category))
			continue;
		json_t *one = registry_describe(t);
		(void)json_object_del(one, "python_package");
		(void)json_object_set_new(one, "category", json_string(category_of(t)));
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
			e = buf_printf(&r->out, "%s  %s\n", i ? "" : "Examples:\n",
				       json_string_value(example));
	}
	return e;
}

static int info(struct cordon_tools *tools, const struct policy *policy, const char *name,
		struct reply *r)
{
	const struct tool *t = name ? registry_find(tools, name) : NULL;

	if (!name) {
		r->exit_code = 1;
		return buf_add_str(&r->err, "extensions info: missing extension name\n");
	}
	if (!t || registry_denied_by(policy, t))
		return fail(r, "unknown extension", name);
	int e = buf_printf(&r->out, "Name:        %s\nCategory:    %s\nDescription: %s\n", t->name,
			   category_of(t), t->description);
	cleanup_json json_t *summary = t->command ? json_object() : schema_summary(t->schema);
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
	return e < 0 ? e : describe_use(t, r);
}

json_t *extensions_run(struct cordon_tools *tools, const struct policy *policy, const json_t *args)
{
	struct reply r = { 0 };
	const char *verb = json_string_value(json_array_get(args, 0));
	int e;

	buf_init(&r.out, 1 << 20);
	buf_init(&r.err, 1 << 16);
	if (!verb || str_eq(verb, "--help") || str_eq(verb, "-h") || str_eq(verb, "help"))
		e = buf_add_str(&r.out, usage);
	else if (str_eq(verb, "list"))
		e = list(tools, policy, args, &r);
	else if (str_eq(verb, "info"))
		e = info(tools, policy, json_string_value(json_array_get(args, 1)), &r);
	else if ((e = fail(&r, "unknown subcommand", verb)) >= 0)
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
