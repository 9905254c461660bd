/* policy/level.c - the levels: preset policies. */
#include <string.h>

#include "policy/kind.h"

static const char *const names[] = { "none", "permissive", "standard", "strict" };

enum policy_level policy_level_from_name(const char *name)
{
	for (int level = LEVEL_PERMISSIVE; level <= LEVEL_STRICT; level++)
		if (str_eq(name, names[level]))
			return (enum policy_level)level;
	return LEVEL_NONE;
}

const char *policy_level_name(enum policy_level level)
{
	return (unsigned int)level <= LEVEL_STRICT ? names[level] : names[LEVEL_NONE];
}

static int set_field(const struct field *f, struct policy *p, int index,
		     struct cordon_error **reterr)
{
	cleanup_json json_t *j = NULL;

	if (f->kind == &kind_number)
		*(uint64_t *)kind_value(f, p) = f->number[index];
	else if (f->kind == &kind_flag)
		*(bool *)kind_value(f, p) = f->number[index];
	else if (f->kind == &kind_layers)
		*(uint32_t *)kind_value(f, p) = (uint32_t)f->number[index];
	else if (f->words[index]) {
		int r = f->kind->parse(f, f->words[index], &j, reterr);
		return r < 0 ? r : f->kind->read(f, p, j, reterr);
	}
	return 0;
}

int policy_init_level(struct policy *ret, enum policy_level level, struct cordon_error **reterr)
{
	cleanup_policy struct policy p = { .level = level };

	if (level < LEVEL_PERMISSIVE || level > LEVEL_STRICT)
		return err_set(reterr, CORDON_INVALID,
			       "the level must be permissive, standard or strict");
	for (size_t i = 0; i < field_count; i++) {
		int r = set_field(&field_table[i], &p, level - 1, reterr);
		if (r < 0)
			return r;
	}
	*ret = p;
	p = (struct policy){ 0 };
	return 0;
}
