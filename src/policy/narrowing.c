/* policy/narrowing.c - whether a policy permits no more than another: a key's policy is the limit
 * of its sessions. A field that is not known to be harmless must be the same. */
#include <string.h>

#include "policy/kind.h"

/* What cannot widen anything: names, and values that the code could set itself. */
static bool is_free(const struct field *f)
{
	static const char *const names[] = { "level", "result_name", "validate", "env_set" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_eq(f->name, names[i]))
			return true;
	return false;
}

static bool has(const json_t *array, const json_t *item)
{
	for (size_t i = 0; i < json_array_size(array); i++)
		if (json_equal(json_array_get(array, i), item))
			return true;
	return false;
}

static bool is_subset(const json_t *of, const json_t *part)
{
	if (!json_is_array(of) || !json_is_array(part))
		return false;
	for (size_t i = 0; i < json_array_size(part); i++)
		if (!has(of, json_array_get(part, i)))
			return false;
	return true;
}

/* A mount by value brings nothing of the host's. */
static bool are_mounts_within(const struct policy *limit, const struct policy *p)
{
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct policy_mount *m = &p->mounts[i];
		bool is_known = !m->host;

		for (size_t k = 0; k < limit->mount_count && !is_known; k++) {
			const struct policy_mount *other = &limit->mounts[k];
			is_known = str_eq(other->host, m->host) && str_eq(other->guest, m->guest) &&
				   m->mode <= other->mode;
		}
		if (!is_known)
			return false;
	}
	return true;
}

/* 1, 0 or -CORDON_NOMEM. */
static int are_rules_within(const struct field *f, const struct policy *of,
			    const struct policy *part)
{
	cleanup_json json_t *all = f->kind->write(f, of, true),
			    *some = f->kind->write(f, part, true);

	return all && some ? is_subset(all, some) : -CORDON_NOMEM;
}

/* network.allow opens hosts; network.block alone opens all others. 1, 0 or -CORDON_NOMEM. */
static int is_network_within(const struct policy *limit, const struct policy *p)
{
	const struct field *allow = field_find("network.allow"),
			   *block = field_find("network.block");
	const struct policy_network *a = &limit->network, *z = &p->network;

	if (z->allow_count == 0 && z->block_count == 0)
		return true;
	if (a->allow_count == 0 && a->block_count == 0)
		return false;
	int r = are_rules_within(block, p, limit);
	if (r <= 0 || a->allow_count == 0)
		return r;
	return z->allow_count > 0 ? are_rules_within(allow, limit, p) : false;
}

/* a: of the limit. null is no limit for numbers, and nothing for texts. */
static bool is_looser(const struct field *f, const json_t *a, const json_t *z)
{
	if (f->kind == &kind_text)
		return !json_is_null(z);
	if (json_is_null(a) || json_is_string(a))
		return false;
	if (json_is_integer(a) && json_is_integer(z))
		return json_integer_value(z) > json_integer_value(a);
	if (json_is_boolean(a) && json_is_boolean(z))
		return json_is_true(z);
	return !is_subset(a, z);
}

static bool is_tighter(const json_t *a, const json_t *z)
{
	if (json_is_boolean(a) && json_is_boolean(z))
		return json_is_true(z);
	return is_subset(z, a);
}

/* a, z: the field's values, which differ. */
static bool is_within(const struct field *f, const json_t *a, const json_t *z)
{
	if (is_free(f))
		return true;
	if (f->sense == SENSE_LOOSER)
		return !is_looser(f, a, z);
	if (f->sense == SENSE_TIGHTER || str_eq(f->name, "network.ask"))
		return is_tighter(a, z);
	return false;
}

static int compare(const struct field *f, const struct policy *limit, const struct policy *p,
		   struct cordon_error **reterr)
{
	cleanup_json json_t *a = f->kind->write(f, limit, true), *z = f->kind->write(f, p, true);
	cleanup_json json_t *shown = f->kind->write(f, p, false);
	int good;

	if (!a || !z || !shown)
		return kind_nomem(reterr);
	if (str_eq(f->name, "mounts"))
		good = are_mounts_within(limit, p);
	else if (str_eq(f->name, "network.allow") || str_eq(f->name, "network.block"))
		good = is_network_within(limit, p);
	else
		good = json_equal(a, z) || is_within(f, a, z);
	if (good)
		return good < 0 ? kind_nomem(reterr) : 0;
	cleanup_free char *text = json_text(shown, NULL);
	return err_set(reterr, CORDON_DENIED, "%s: the policy above this one does not allow %.200s",
		       f->name, text ? text : "that");
}

int policy_narrows(const struct policy *limit, const struct policy *p, struct cordon_error **reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < field_count; i++)
		r = compare(&field_table[i], limit, p, reterr);
	return r;
}

int policy_inherit(struct policy *p, const struct policy *from, struct cordon_error **reterr)
{
	static const char *const names[] = { "python",         "r",          "node",
					     "shell",          "preload",    "audit",
					     "audit_required", "audit_sync", "audit_rotate_bytes",
					     "audit_keep" };
	cleanup_json json_t *values = json_object();

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct field *f = field_find(names[i]);
		json_t *value = f->kind->write(f, from, true);
		if (!value || json_object_set_new(values, names[i], value) != 0)
			return kind_nomem(reterr);
	}
	return policy_apply_json(p, values, reterr);
}
