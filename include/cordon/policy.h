/* cordon/policy.h - what the code may do, and its limits (docs/policy.md).
 *
 * Threads: a policy belongs to one thread at a time while it is changed. Sessions take a copy when
 * they open; reading one from several threads is safe. */
#pragma once

#include <cordon/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct cordon_policy;

/* level: "permissive", "standard" or "strict"; NULL: standard. */
int cordon_policy_new(const char *level, struct cordon_policy **ret, struct cordon_error **reterr);
struct cordon_policy *cordon_policy_free(struct cordon_policy *p);
struct cordon_policy *cordon_policy_copy(const struct cordon_policy *p,
					 struct cordon_error **reterr);
/* Applies a JSON object, a file with one, or one "key=value". On failure p is unchanged. */
int cordon_policy_apply_json(struct cordon_policy *p, const char *json,
			     struct cordon_error **reterr);
int cordon_policy_apply_file(struct cordon_policy *p, const char *path,
			     struct cordon_error **reterr);
int cordon_policy_set(struct cordon_policy *p, const char *assignment,
		      struct cordon_error **reterr);
/* Refuses contradictions and names the fields. A session checks its policy when it opens. */
int cordon_policy_check(const struct cordon_policy *p, struct cordon_error **reterr);
/* The whole policy as JSON text; the caller frees it. NULL: out of memory. */
char *cordon_policy_json(const struct cordon_policy *p);
/* The policy in sentences, one per line; the caller frees it. NULL: out of memory. */
char *cordon_policy_explain(const struct cordon_policy *p);
/* What changes from a to b, one field per line, empty if they are equal. The caller frees it. NULL:
 * out of memory. */
char *cordon_policy_diff(const struct cordon_policy *a, const struct cordon_policy *b);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
