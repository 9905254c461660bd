/* modules/package_request.h - the package managers, and whether a policy names what is asked of
 * them. */
#pragma once

#include "base/error.h"
#include "guest/guest.h"
#include "policy/policy.h"

struct package_manager {
	const char *name;     /* "pip" */
	size_t index;         /* among the managers, below SESSION_MANAGERS */
	enum guest_kind kind; /* the guest that it runs in */
	size_t offset;        /* of its struct policy_registry in struct policy */
	const char *field;    /* "packages.pip" */
	const char *source;   /* "packages.pip_index" */
	const char *lock;     /* the word for the policy's lockfile; NULL: it has none */
	const char *lock_field;
	bool (*is_name)(const char *name);
	const char *version; /* characters that a version may begin with; NULL: no versions */
	const char *rest;    /* characters of a version besides letters and digits */
	bool folds;          /* names are the same in any case, with any of - _ . */
	const char *results; /* what is copied into the workspace */
};

/* By the language or its own name; NULL: there is none. */
const struct package_manager *package_manager_find(const char *name);
const struct policy_registry *package_manager_registry(const struct package_manager *m,
						       const struct policy *p);

/* An error unless it is the name of a package, with a version or not, and the policy names it. */
int package_request_check(const struct package_manager *m, const struct policy *p, const char *spec,
			  struct cordon_error **reterr);
/* Whether both are about the same package. */
bool package_request_is_same(const struct package_manager *m, const char *a, const char *b);
