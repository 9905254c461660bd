/* policy/array.c - see array.h. */
#include "policy/array.h"

#include "base/mem.h"

static void free_items(const struct array_of *of, char *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		of->done(items + i * of->size);
	free(items);
}

int array_read(const struct field *f, struct policy *p, const json_t *j,
	       struct cordon_error **reterr)
{
	const struct array_of *of = f->kind->items;
	cleanup_json json_t *star = NULL;
	char *items = NULL;
	int r = 0;

	if (of->star && str_eq(json_string_value(j), "*")) {
		star = json_pack("[s]", "*");
		if (!star)
			return kind_nomem(reterr);
		j = star;
	}
	size_t count = json_array_size(j);
	/* The error does not show the value, which may be a secret. */
	if (!json_is_array(j))
		return err_set(reterr, CORDON_INVALID, "%s must be %s", f->name, f->entry);
	if (count > of->max)
		return err_set(reterr, CORDON_INVALID,
			       "%s has %zu entries, at most %zu are allowed", f->name, count,
			       of->max);
	if (count > 0) {
		items = mem_array(count, of->size);
		if (!items)
			return kind_nomem(reterr);
	}
	for (size_t i = 0; r == 0 && i < count; i++) {
		cleanup_free char *where = str_printf("%s[%zu]", f->name, i);
		r = where ? of->read(items + i * of->size, where, json_array_get(j, i), reterr)
			  : kind_nomem(reterr);
	}
	if (r < 0) {
		free_items(of, items, count);
		return r;
	}
	array_done(f, p);
	*(void **)kind_value(f, p) = items;
	*kind_count(f, p) = count;
	return 0;
}

json_t *array_write(const struct field *f, const struct policy *p, bool with_secrets)
{
	const struct array_of *of = f->kind->items;
	const char *items = *(char **)kind_value(f, p);
	cleanup_json json_t *array = json_array();

	for (size_t i = 0; array && i < *kind_count(f, p); i++)
		if (json_array_append_new(array, of->write(items + i * of->size, with_secrets)) < 0)
			return NULL;
	return TAKE_PTR(array);
}

int array_copy(const struct field *f, struct policy *dst, const struct policy *src)
{
	const struct array_of *of = f->kind->items;
	const char *from = *(char **)kind_value(f, src);
	size_t count = *kind_count(f, src);

	if (count == 0)
		return 0;
	char *to = mem_array(count, of->size);
	if (!to)
		return -CORDON_NOMEM;
	*(void **)kind_value(f, dst) = to;
	*kind_count(f, dst) = count;
	for (size_t i = 0; i < count; i++)
		if (of->copy(to + i * of->size, from + i * of->size) < 0)
			return -CORDON_NOMEM;
	return 0;
}

void array_done(const struct field *f, struct policy *p)
{
	char **items = kind_value(f, p);

	free_items(f->kind->items, *items, *kind_count(f, p));
	*items = NULL;
	*kind_count(f, p) = 0;
}

int array_say(const struct field *f, const struct policy *p, struct buf *b)
{
	const struct array_of *of = f->kind->items;
	const char *items = *(char **)kind_value(f, p);
	int r = 0;

	for (size_t i = 0; r == 0 && i < *kind_count(f, p); i++) {
		r = buf_add_str(b, i ? "; " : "");
		if (r == 0)
			r = of->say(items + i * of->size, b);
	}
	return r;
}

enum kind_extent array_extent(const struct field *f, const struct policy *p)
{
	return *kind_count(f, p) ? EXTENT_SOME : EXTENT_NONE;
}

int array_text(const json_t *obj, const char *where, const char *key, const char **ret,
	       struct cordon_error **reterr)
{
	const json_t *member = json_object_get(obj, key);
	const char *s = kind_string(member);

	if (!member)
		return 0;
	if (!s) {
		cleanup_free char *label = str_printf("%s.%s", where, key);
		return label ? kind_refuse(label, "a text", member, reterr) : kind_nomem(reterr);
	}
	*ret = s;
	return 0;
}

int array_keys(const json_t *obj, const char *where, const char *const *names, size_t count,
	       struct cordon_error **reterr)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)obj, key, value)
	{
		size_t i = 0;
		while (i < count && !str_eq(key, names[i]))
			i++;
		if (i < count)
			continue;
		const char *near = str_nearest(key, names, count);
		return err_set(reterr, CORDON_INVALID, "%s: unknown field '%.80s'%s%s%s", where,
			       key, near ? ". Did you mean '" : "", near ? near : "",
			       near ? "'?" : "");
	}
	return 0;
}
