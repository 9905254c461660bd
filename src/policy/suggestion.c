/* policy/suggestion.c - see suggestion.h. */
#include "policy/suggestion.h"

#include <string.h>

#include "policy/difference.h"
#include "policy/explanation.h"
#include "policy/kind.h"

#define HOST_OPTION "--allow-host "

enum { DENIALS_MAX = 1000, TEXT_MAX_BYTES = 300, DEPTH_MAX = 2 };

int suggestion_init(struct suggestion *ret, const struct policy *base, struct cordon_error **reterr)
{
	struct suggestion s = { .changes = json_array(),
				.by_hand = json_array(),
				.impossible = json_array(),
				.allowed = json_array() };
	int r = s.changes && s.by_hand && s.impossible && s.allowed ? 0 : kind_nomem(reterr);

	if (r == 0)
		r = policy_copy(&s.base, base, reterr);
	if (r == 0)
		r = policy_copy(&s.wanted, base, reterr);
	if (r < 0)
		suggestion_done(&s);
	else
		*ret = s;
	return r;
}

void suggestion_done(struct suggestion *s)
{
	policy_done(&s->base);
	policy_done(&s->wanted);
	json_decref(s->changes);
	json_decref(s->by_hand);
	json_decref(s->impossible);
	json_decref(s->allowed);
	*s = (struct suggestion){ 0 };
}

static const char *text_of(const json_t *denial, const char *key)
{
	const char *text = json_string_value(json_object_get(denial, key));

	return text ? text : "";
}

/* The assignment at the end of a remedy, as --set takes it. *ret stays NULL if there is none, or if
 * it has characters that no remedy of ours has. */
static int find_assignment(const char *remedy, char **ret)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.+-[]:*=";
	const char *open = strrchr(remedy, '('), *prefix = "";
	size_t len = open ? strlen(open) : 0;

	if (len < 3 || len > TEXT_MAX_BYTES || open[len - 1] != ')')
		return 0;
	const char *inner = open + 1;
	if (str_starts(inner, HOST_OPTION)) {
		inner += strlen(HOST_OPTION);
		prefix = "network.allow+=";
	}
	if (strspn(inner, plain) != strlen(inner) - 1)
		return 0;
	*ret = str_printf("%s%.*s", prefix, (int)strlen(inner) - 1, inner);
	return *ret ? 0 : -CORDON_NOMEM;
}

/* The field that an assignment may change; *ret stays NULL if there is none. A remedy that begins
 * with another field offers a choice. */
static int find_field(const char *assignment, const char *remedy, const struct field **ret)
{
	size_t len = strcspn(assignment, "+=");
	cleanup_free char *name = str_ndup(assignment, len);
	const struct field *f = name ? field_find(name) : NULL;

	if (!name)
		return -CORDON_NOMEM;
	if (!f || f->sense != SENSE_LOOSER)
		return 0;
	if (f->kind != &kind_rules && (!str_starts(remedy, f->name) || remedy[len] != ':'))
		return 0;
	if (f->kind == &kind_number || f->kind == &kind_flag || f->kind == &kind_list ||
	    f->kind == &kind_rules)
		*ret = f;
	return 0;
}

/* Our own copy of a denial, with nothing but what is shown, cut to a size. */
static json_t *copy_denial(const json_t *denial)
{
	static const char *const keys[] = { "operation", "target", "remedy" };
	json_int_t count = json_integer_value(json_object_get(denial, "count"));
	cleanup_json json_t *d = json_object();

	for (size_t i = 0; d && i < sizeof(keys) / sizeof(*keys); i++) {
		const char *text = text_of(denial, keys[i]);
		if (json_object_set_new(d, keys[i],
					json_string_lossy(text, strnlen(text, TEXT_MAX_BYTES))) < 0)
			return NULL;
	}
	/* What is not the host's plain word counts as claimed. */
	json_t *claimed = json_object_get(denial, "claimed");
	if (json_object_set_new(d, "claimed", json_boolean(claimed && !json_is_false(claimed))) < 0)
		return NULL;
	return json_object_set_new(d, "count", json_integer(count > 0 ? count : 1)) < 0
		       ? NULL
		       : TAKE_PTR(d);
}

static bool is_same(const json_t *a, const json_t *b)
{
	return str_eq(text_of(a, "operation"), text_of(b, "operation")) &&
	       str_eq(text_of(a, "target"), text_of(b, "target")) &&
	       str_eq(text_of(a, "remedy"), text_of(b, "remedy")) &&
	       json_is_true(json_object_get(a, "claimed")) ==
		       json_is_true(json_object_get(b, "claimed"));
}

/* Several results often have the same denial. */
static int note(json_t *list, const json_t *denial)
{
	cleanup_json json_t *d = copy_denial(denial);
	json_t *known;
	size_t i;

	if (!d)
		return -CORDON_NOMEM;
	json_array_foreach(list, i, known)
	{
		json_t *count = json_object_get(known, "count");
		json_int_t more = json_integer_value(json_object_get(d, "count"));
		if (!is_same(known, d))
			continue;
		if (more <= INT32_MAX && json_integer_value(count) <= INT32_MAX)
			json_integer_set(count, json_integer_value(count) + more);
		return 0;
	}
	return json_array_append(list, d) < 0 ? -CORDON_NOMEM : 0;
}

static json_t *change_of(const json_t *changes, const char *field)
{
	json_t *change;
	size_t i;

	json_array_foreach(changes, i, change)
	{
		if (str_eq(text_of(change, "field"), field))
			return change;
	}
	return NULL;
}

/* assignment NULL: another denial for what was suggested before. */
static int note_change(struct suggestion *s, const struct field *f, const char *assignment,
		       const json_t *denial)
{
	json_t *change = change_of(s->changes, f->name);

	if (!change) {
		change = json_pack("{s:s, s:[], s:[]}", "field", f->name, "assignments", "denials");
		if (!change || json_array_append_new(s->changes, change) < 0)
			return -CORDON_NOMEM;
	}
	if (assignment && json_array_append_new(json_object_get(change, "assignments"),
						json_string(assignment)) < 0)
		return -CORDON_NOMEM;
	return note(json_object_get(change, "denials"), denial);
}

/* 1: p permits no more than limit; 0: it does; or -CORDON_NOMEM. */
static int is_within(const struct policy *limit, const struct policy *p)
{
	int r = policy_narrows(limit, p, NULL);

	return r == -CORDON_NOMEM ? r : r == 0;
}

/* The policy with the assignment, in *ret, which is zeroed. 1: it is valid; 0: it is not; or
 * -CORDON_NOMEM. */
static int change(const struct policy *p, const char *assignment, struct policy *ret)
{
	int r = policy_copy(ret, p, NULL);

	if (r == 0)
		r = policy_apply_set(ret, assignment, NULL);
	if (r == 0)
		r = policy_check(ret, NULL);
	return r == -CORDON_NOMEM ? r : r == 0;
}

/* `wanted` permits it already: since the base did, or since an earlier denial. */
static int note_permitted(struct suggestion *s, const struct field *f, const char *assignment,
			  const json_t *denial)
{
	cleanup_policy struct policy alone = { 0 };
	int r = change(&s->base, assignment, &alone);

	if (r >= 0)
		r = is_within(&s->base, &alone);
	if (r < 0)
		return r;
	return r ? note(s->allowed, denial) : note_change(s, f, NULL, denial);
}

/* Takes the change into `wanted`, if it permits more than that and nothing less. */
static int try_change(struct suggestion *s, const struct field *f, const char *assignment,
		      const json_t *denial)
{
	cleanup_policy struct policy with = { 0 };
	int r = change(&s->wanted, assignment, &with);

	if (r <= 0)
		return r < 0 ? r : note(s->by_hand, denial);
	r = is_within(&s->wanted, &with);
	if (r != 0)
		return r < 0 ? r : note_permitted(s, f, assignment, denial);
	/* Something would be lost if a list is replaced, or network.allow closes what was open. */
	r = is_within(&with, &s->wanted);
	if (r <= 0)
		return r < 0 ? r : note(s->by_hand, denial);
	r = note_change(s, f, assignment, denial);
	if (r == 0) {
		struct policy old = s->wanted;
		s->wanted = with;
		with = old;
	}
	return r;
}

static int add_denial(struct suggestion *s, const json_t *denial)
{
	const char *remedy = text_of(denial, "remedy");
	cleanup_free char *assignment = NULL;
	const struct field *f = NULL;

	if (!remedy[0] || str_starts(remedy, "none"))
		return note(s->impossible, denial);
	int r = find_assignment(remedy, &assignment);
	if (r == 0 && assignment)
		r = find_field(assignment, remedy, &f);
	if (r < 0)
		return r;
	return f ? try_change(s, f, assignment, denial) : note(s->by_hand, denial);
}

static int add_result(struct suggestion *s, const json_t *denials, struct cordon_error **reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(denials); i++) {
		if (++s->count > DENIALS_MAX)
			return err_set(reterr, CORDON_LIMIT,
				       "there are more than %d denials: give fewer results",
				       DENIALS_MAX);
		r = add_denial(s, json_array_get(denials, i));
	}
	return r < 0 ? kind_nomem(reterr) : 0;
}

static int add(struct suggestion *s, const json_t *j, int depth, struct cordon_error **reterr)
{
	const json_t *denials = json_object_get(j, "denials"),
		     *inner = json_object_get(j, "result");
	int r = 0;

	if (json_is_array(denials))
		return add_result(s, denials, reterr);
	if (depth < DEPTH_MAX && json_is_object(inner))
		return add(s, inner, depth + 1, reterr);
	if (depth >= DEPTH_MAX || !json_is_array(j))
		return err_set(reterr, CORDON_INVALID,
			       "this is not the result of an execution: it has no denials");
	for (size_t i = 0; r == 0 && i < json_array_size(j); i++)
		r = add(s, json_array_get(j, i), depth + 1, reterr);
	return r;
}

int suggestion_add(struct suggestion *s, const json_t *results, struct cordon_error **reterr)
{
	return add(s, results, 0, reterr);
}

static int explain(const struct suggestion *s, json_t *change)
{
	const struct field *f = field_find(text_of(change, "field"));
	cleanup_free char *diff = f ? difference_of(f, &s->base, &s->wanted) : NULL;
	cleanup_free char *means = f ? explanation_of(f, &s->wanted) : NULL;

	if (!diff || !means || json_object_set_new(change, "diff", json_string(diff)) < 0)
		return -CORDON_NOMEM;
	return json_object_set_new(change, "means", json_string(means)) < 0 ? -CORDON_NOMEM : 0;
}

json_t *suggestion_json(const struct suggestion *s)
{
	cleanup_json json_t *all =
		json_pack("{s:o, s:O, s:O, s:O}", "changes", json_deep_copy(s->changes), "by_hand",
			  s->by_hand, "impossible", s->impossible, "allowed", s->allowed);
	json_t *changes = json_object_get(all, "changes");

	for (size_t i = 0; i < json_array_size(changes); i++)
		if (explain(s, json_array_get(changes, i)) < 0)
			return NULL;
	return TAKE_PTR(all);
}
