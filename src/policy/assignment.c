/* policy/assignment.c - key=value, as in --set. */
#include <string.h>

#include "policy/kind.h"
#include "policy/limits.h"

enum { ASSIGNMENT_MAX = 1024 * 1024 };

/* env_set.NAME=value adds one variable; everything after = is the value. */
static int add_variable(struct policy *p, const char *name, const char *value,
			struct cordon_error **reterr)
{
	const struct field *f = field_find("env_set");
	cleanup_json json_t *all = f->kind->write(f, p, true);

	if (!all || json_object_set_new(all, name, json_string(value)) < 0)
		return kind_nomem(reterr);
	return f->kind->read(f, p, all, reterr);
}

static int apply_limit(struct policy *p, const char *name, const char *value,
		       struct cordon_error **reterr)
{
	const struct field *f = limits_find(name);
	cleanup_json json_t *j = NULL;

	if (!f)
		return limits_refuse(name, reterr);
	int r = f->kind->parse(f, value, &j, reterr);
	return r < 0 ? r : limits_read_one(p, name, j, reterr);
}

/* key+=value: the current list with these added. "*" stays "*". */
static int extend(const struct field *f, const struct policy *p, json_t **list,
		  struct cordon_error **reterr)
{
	json_t *all = f->kind->write(f, p, true);

	if (!all)
		return kind_nomem(reterr);
	if (json_is_array(all) && json_is_array(*list) && json_array_extend(all, *list) < 0) {
		json_decref(all);
		return kind_nomem(reterr);
	}
	if (!json_is_array(all) && !str_eq(json_string_value(all), "*")) {
		json_decref(all);
		return err_set(reterr, CORDON_INVALID, "%s is not a list: write %s=VALUE", f->name,
			       f->name);
	}
	json_decref(*list);
	*list = all;
	return 0;
}

static int apply(struct policy *p, const char *key, const char *value, bool add,
		 struct cordon_error **reterr)
{
	const struct field *f = field_find(str_eq(key, "packages") ? "packages.pod" : key);
	cleanup_json json_t *j = NULL;

	if (str_starts(key, "limits."))
		return apply_limit(p, key + strlen("limits."), value, reterr);
	if (str_starts(key, "env_set."))
		return add_variable(p, key + strlen("env_set."), value, reterr);
	if (!f)
		return field_refuse(key, reterr);
	int r = f->kind->parse(f, value, &j, reterr);
	if (r == 0 && add)
		r = extend(f, p, &j, reterr);
	return r < 0 ? r : f->kind->read(f, p, j, reterr);
}

int policy_apply_set(struct policy *p, const char *assignment, struct cordon_error **reterr)
{
	size_t len = strnlen(assignment, ASSIGNMENT_MAX + 1);
	const char *equals = strchr(assignment, '=');

	if (len > ASSIGNMENT_MAX || !str_is_utf8(assignment, len))
		return err_set(reterr, CORDON_INVALID,
			       "an assignment must be valid UTF-8 of at most %d bytes",
			       ASSIGNMENT_MAX);
	if (!equals || equals == assignment)
		return err_set(reterr, CORDON_INVALID,
			       "'%.80s' is not an assignment: write KEY=VALUE", assignment);
	bool add = equals > assignment + 1 && equals[-1] == '+';
	cleanup_free char *key = str_ndup(assignment, (size_t)(equals - assignment - add));
	return key ? apply(p, key, equals + 1, add, reterr) : kind_nomem(reterr);
}
