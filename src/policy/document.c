/* policy/document.c - reads and writes a policy as JSON. */
#include "policy/document.h"

#include <string.h>

#include "policy/kind.h"
#include "policy/limits.h"

enum { FILE_MAX_BYTES = 16 * 1024 * 1024 };

static int read_level(struct policy *p, const json_t *j, struct cordon_error **reterr)
{
	const struct field *f = field_find("level");
	struct policy fresh = { 0 };
	int r = f->kind->read(f, &fresh, j, reterr);

	if (r == 0)
		r = policy_init_level(&fresh, fresh.level, reterr);
	if (r < 0)
		return r;
	policy_done(p);
	*p = fresh;
	return 0;
}

static int read_field(struct policy *p, const char *name, const json_t *j,
		      struct cordon_error **reterr)
{
	const struct field *f = field_find(name);

	return f ? f->kind->read(f, p, j, reterr) : field_refuse(name, reterr);
}

static int read_group(struct policy *p, const char *group, const json_t *obj,
		      struct cordon_error **reterr)
{
	const char *key;
	json_t *value;

	if (!json_is_object(obj))
		return kind_refuse(group, "an object", obj, reterr);
	json_object_foreach((json_t *)(uintptr_t)obj, key, value)
	{
		cleanup_free char *name = str_printf("%s.%s", group, key);
		if (!name)
			return kind_nomem(reterr);
		int r = read_field(p, name, value, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

int policy_apply_json(struct policy *p, const json_t *obj, struct cordon_error **reterr)
{
	const json_t *level = json_object_get(obj, "level");
	const char *key;
	json_t *value;
	int r = 0;

	if (!json_is_object(obj))
		return kind_refuse("a policy", "a JSON object", obj, reterr);
	if (level)
		r = read_level(p, level, reterr);
	json_object_foreach((json_t *)(uintptr_t)obj, key, value)
	{
		if (r < 0)
			return r;
		if (str_eq(key, "level"))
			continue;
		if (str_eq(key, "limits"))
			r = limits_read(p, value, reterr);
		else if (str_eq(key, "packages") && !json_is_object(value))
			r = read_field(p, "packages.pod", value, reterr); /* its older name */
		else if (field_is_group(key))
			r = read_group(p, key, value, reterr);
		else if (strchr(key, '.'))
			r = field_refuse(key, reterr);
		else
			r = read_field(p, key, value, reterr);
	}
	return r;
}

int policy_apply_file(struct policy *p, const char *path, struct cordon_error **reterr)
{
	cleanup_json json_t *j = NULL;
	int r = json_parse_file(path, FILE_MAX_BYTES, &j, reterr);

	if (r == 0)
		r = policy_apply_json(p, j, reterr);
	return r < 0 ? err_wrap(reterr, r, "policy '%s'", path) : 0;
}

/* Stores a value under its dotted name. */
static int put(json_t *root, const char *name, json_t *value)
{
	const char *dot = strchr(name, '.');

	if (!dot)
		return json_object_set_new(root, name, value);
	cleanup_free char *group = str_ndup(name, (size_t)(dot - name));
	json_t *inner = group ? json_object_get(root, group) : NULL;
	if (group && !inner) {
		inner = json_object();
		if (json_object_set_new(root, group, inner) < 0)
			inner = NULL;
	}
	/* Also consumes the value if inner is NULL. */
	return json_object_set_new(inner, dot + 1, value);
}

json_t *document_write(const struct policy *p, bool with_secrets)
{
	cleanup_json json_t *root = json_object();

	for (size_t i = 0; root && i < field_count; i++) {
		const struct field *f = &field_table[i];
		if (put(root, f->name, f->kind->write(f, p, with_secrets)) < 0)
			return NULL;
	}
	return TAKE_PTR(root);
}

json_t *document_write_changes(const struct policy *p)
{
	cleanup_policy struct policy preset = { 0 };
	cleanup_json json_t *root = json_object();

	if (!root || policy_init_level(&preset, p->level, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < field_count; i++) {
		const struct field *f = &field_table[i];
		cleanup_json json_t *own = f->kind->write(f, p, false);
		cleanup_json json_t *usual = f->kind->write(f, &preset, false);
		bool is_written = f->kind == &kind_level || !json_equal(own, usual);
		if (!own || !usual || (is_written && put(root, f->name, json_incref(own)) < 0))
			return NULL;
	}
	return TAKE_PTR(root);
}

json_t *policy_to_json(const struct policy *p)
{
	return document_write(p, false);
}
