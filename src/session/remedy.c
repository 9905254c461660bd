/* session/remedy.c - see remedy.h. */
#include "session/remedy.h"

#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "guest/mounts.h"
#include "guest/view.h"
#include "policy/field.h"

/* The name may be the guest's word. One that is no plain word must not look like a remedy. */
char *remedy_command(const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.+-[";

	if (!name[0] || name[strspn(name, plain)])
		return str_dup("commands: name the program in the policy");
	return str_printf("commands: name the program in the policy (commands+=%s)", name);
}

const char *remedy_command_of(const char *path)
{
	static const char *const dirs[] = { "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/bin/",
					    "/sbin/" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		if (str_starts(path, dirs[i]) && !strchr(path + strlen(dirs[i]), '/'))
			return path + strlen(dirs[i]);
	return path[0] == '/' ? NULL : path;
}

/* Whether workspace_exec decides about this file. */
static bool is_of_workspace(const char *path, const struct guest_denial_setting *s)
{
	return mounts_is_inside(path) || mounts_live_at(s->policy, path) ||
	       str_starts(path, "/run/mounts/") ||
	       (s->private_dir && str_starts(path, s->private_dir));
}

static void set_text(json_t *denial, const char *key, const char *text)
{
	(void)json_object_set_new(denial, key, json_string(text ? text : "none"));
}

/* false: the policy did not refuse it. */
static bool refine(json_t *denial, const struct guest_denial_setting *s)
{
	const char *target = json_string_value(json_object_get(denial, "target"));
	const char *name = target ? remedy_command_of(target) : NULL;

	if (!str_eq(json_string_value(json_object_get(denial, "operation")), "execute") || !target)
		return true;
	if (name && !view_has_command(name))
		return false;
	if (name) {
		cleanup_free char *text = remedy_command(name);
		set_text(denial, "remedy", text);
	} else if (is_of_workspace(target, s)) {
		/* There it was not hidden from the code: it is not there. */
		if (str_eq(json_string_value(json_object_get(denial, "layer")), "mount"))
			return false;
		set_text(denial, "rule", REMEDY_EXEC_RULE);
		set_text(denial, "remedy", REMEDY_EXEC);
	} else if (str_starts(target, "/usr/")) {
		set_text(denial, "remedy",
			 "commands: only * has programs outside the directories of programs "
			 "(commands=*)");
		return access(target, X_OK) == 0;
	} else {
		set_text(denial, "remedy",
			 "none: only programs of /usr, of the workspace and of mounts can be "
			 "executed");
	}
	return true;
}

void remedy_programs(json_t *denials, const struct guest_denial_setting *s)
{
	for (size_t i = 0; i < json_array_size(denials);)
		if (refine(json_array_get(denials, i), s))
			i++;
		else
			(void)json_array_remove(denials, i);
}

static const struct limit {
	const char *kind, *field, *operation;
} limits[] = {
	{ "timeout", "timeout_ms", "run longer" },
	{ "cpu", "cpu_seconds", "use more CPU time" },
	{ "memory", "memory_bytes", "use more memory" },
	{ "processes", "processes", "start more processes" },
	{ "file_size", "file_bytes", "make a larger file" },
	{ "disk", "fs_bytes", "write more into the workspace" },
	{ "files", "file_count", "make more files" },
	{ "open_files", "open_files", "open more files" },
};

static void add_limit(const struct limit *l, uint64_t value, bool is_claimed,
		      struct cordon_result *r)
{
	const struct field *f = field_find(l->field);
	uint64_t more = f && value <= f->max / 2 ? value * 2 : f ? f->max : 0;
	cleanup_free char *rule = str_printf("%s is %llu", l->field, (unsigned long long)value);
	cleanup_free char *remedy = more > value ? str_printf("%s: raise it (%s=%llu)", l->field,
							      l->field, (unsigned long long)more)
						 : str_dup("none: the limit cannot be higher");

	json_t *d = json_pack("{s:s, s:n, s:s, s:s, s:s, s:i}", "operation", l->operation, "target",
			      "layer", "limit", "rule", rule ? rule : "", "remedy",
			      remedy ? remedy : "none", "count", 1);
	if (is_claimed)
		(void)json_object_set_new(d, "claimed", json_true());
	json_array_append_new(result_array(&r->denials), d);
}

static void add_limit_of(const char *kind, const struct policy *p, uint64_t instead,
			 bool is_claimed, struct cordon_result *r)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		const struct field *f = field_find(limits[i].field);
		uint64_t value = instead;

		if (!str_eq(kind, limits[i].kind) || !f)
			continue;
		if (!value)
			memcpy(&value, (const char *)p + f->offset, sizeof(value));
		if (value != POLICY_UNLIMITED)
			add_limit(&limits[i], value, is_claimed, r);
	}
}

void remedy_limit_met(const char *kind, const struct policy *p, struct cordon_result *r)
{
	add_limit_of(kind, p, 0, true, r);
}

void remedy_limit(const struct policy *p, uint64_t timeout_ms, bool is_out_of_files,
		  struct cordon_result *r)
{
	const char *kind = r->kind;

	if (!kind || r->success)
		return;
	if (str_eq(kind, "disk") && is_out_of_files)
		kind = "files";
	add_limit_of(kind, p, str_eq(kind, "timeout") ? timeout_ms : 0, false, r);
}
