/* policy/limits.c - see limits.h. */
#include "policy/limits.h"

#include "policy/kind.h"
#include "policy/number.h"

static const struct {
	const char *name, *field;
} aliases[] = {
	{ "cpu", "cpu_seconds" }, { "memory", "memory_bytes" }, { "fsize", "file_bytes" },
	{ "nproc", "processes" }, { "nofile", "open_files" },   { "stack", "stack_bytes" },
};

enum { UNKNOWN_MAX = 200 };

const struct field *limits_find(const char *name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
		if (str_eq(name, aliases[i].name))
			return field_find(aliases[i].field);
	return NULL;
}

int limits_refuse(const char *names, struct cordon_error **reterr)
{
	return err_set(
		reterr, CORDON_INVALID,
		"Unknown limit name(s): %s. Valid names: cpu, memory, fsize, nproc, nofile, stack",
		names);
}

/* Reports all unknown names at once, as far as they fit. */
static int check_names(const json_t *obj, struct cordon_error **reterr)
{
	cleanup_buf struct buf b = { 0 };
	const char *key;
	json_t *value;

	buf_init(&b, UNKNOWN_MAX);
	json_object_foreach((json_t *)(uintptr_t)obj, key,
			    value) if (!limits_find(key) &&
				       buf_printf(&b, "%s%.60s", b.len ? ", " : "", key) < 0) break;
	return b.len ? limits_refuse(buf_text(&b), reterr) : 0;
}

int limits_read_one(struct policy *p, const char *name, const json_t *j,
		    struct cordon_error **reterr)
{
	const struct field *f = limits_find(name);
	cleanup_free char *label = str_printf("Limit '%s'", name);

	if (!f)
		return limits_refuse(name, reterr);
	return label ? number_read(f, label, j, kind_value(f, p), reterr) : kind_nomem(reterr);
}

int limits_read(struct policy *p, const json_t *obj, struct cordon_error **reterr)
{
	const char *key;
	json_t *value;

	if (!json_is_object(obj))
		return kind_refuse("limits", "an object of limit names and numbers", obj, reterr);
	int r = check_names(obj, reterr);
	json_object_foreach((json_t *)(uintptr_t)obj, key, value)
	{
		if (r < 0)
			return r;
		r = limits_read_one(p, key, value, reterr);
	}
	return r;
}
