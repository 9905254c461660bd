/* policy/public.c - the public policy functions. Every change is made on a copy, which replaces the
 * policy only if it succeeds. */
#include "policy/public.h"

#include <string.h>

#include "base/mem.h"
#include "policy/kind.h"

enum { JSON_MAX_BYTES = 16 * 1024 * 1024 };

int cordon_policy_new(const char *level, struct cordon_policy **ret, struct cordon_error **reterr)
{
	enum policy_level l = level ? policy_level_from_name(level) : LEVEL_STANDARD;

	if (l == LEVEL_NONE)
		return err_set(reterr, CORDON_INVALID,
			       "level must be permissive, standard or strict, got: %.80s", level);
	cleanup_free struct cordon_policy *p = mem_alloc(sizeof(*p));
	if (!p)
		return kind_nomem(reterr);
	int r = policy_init_level(&p->p, l, reterr);
	if (r == 0)
		*ret = TAKE_PTR(p);
	return r;
}

struct cordon_policy *cordon_policy_free(struct cordon_policy *p)
{
	if (p)
		policy_done(&p->p);
	free(p);
	return NULL;
}

struct cordon_policy *cordon_policy_copy(const struct cordon_policy *p,
					 struct cordon_error **reterr)
{
	cleanup_free struct cordon_policy *copy = mem_alloc(sizeof(*copy));

	if (!copy) {
		(void)kind_nomem(reterr);
		return NULL;
	}
	return policy_copy(&copy->p, &p->p, reterr) < 0 ? NULL : TAKE_PTR(copy);
}

typedef int (*change_fn)(struct policy *p, const char *text, struct cordon_error **reterr);

static int change(struct cordon_policy *p, change_fn fn, const char *text,
		  struct cordon_error **reterr)
{
	struct policy fresh;
	int r = policy_copy(&fresh, &p->p, reterr);

	if (r < 0)
		return r;
	r = fn(&fresh, text, reterr);
	if (r < 0) {
		policy_done(&fresh);
		return r;
	}
	policy_done(&p->p);
	p->p = fresh;
	return 0;
}

static int apply_text(struct policy *p, const char *text, struct cordon_error **reterr)
{
	cleanup_json json_t *j = NULL;
	int r = json_parse(text, strlen(text), JSON_MAX_BYTES, &j, reterr);

	if (r < 0)
		return err_wrap(reterr, r, "the policy is not valid JSON");
	return policy_apply_json(p, j, reterr);
}

int cordon_policy_apply_json(struct cordon_policy *p, const char *json,
			     struct cordon_error **reterr)
{
	return change(p, apply_text, json, reterr);
}

int cordon_policy_apply_file(struct cordon_policy *p, const char *path,
			     struct cordon_error **reterr)
{
	return change(p, policy_apply_file, path, reterr);
}

int cordon_policy_set(struct cordon_policy *p, const char *assignment, struct cordon_error **reterr)
{
	return change(p, policy_apply_set, assignment, reterr);
}

int cordon_policy_check(const struct cordon_policy *p, struct cordon_error **reterr)
{
	return policy_check(&p->p, reterr);
}

char *cordon_policy_json(const struct cordon_policy *p)
{
	cleanup_json json_t *j = policy_to_json(&p->p);

	return j ? json_text_pretty(j) : NULL;
}

char *cordon_policy_explain(const struct cordon_policy *p)
{
	return policy_explain(&p->p);
}

char *cordon_policy_diff(const struct cordon_policy *a, const struct cordon_policy *b)
{
	return policy_diff(&a->p, &b->p);
}
