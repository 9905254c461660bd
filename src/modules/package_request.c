/* modules/package_request.c - see package_request.h. */
#include "modules/package_request.h"

#include <stddef.h>
#include <string.h>

#include "base/str.h"
#include "policy/name.h"

enum { SPEC_MAX = 300 };

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static const struct package_manager managers[] = {
	{ .name = "pip",
	  .index = 0,
	  .kind = GUEST_KIND_PYTHON,
	  .offset = offsetof(struct policy, pip),
	  .field = "packages.pip",
	  .source = "packages.pip_index",
	  .lock = "requirements.txt",
	  .lock_field = "packages.pip_lock",
	  .is_name = name_is_package,
	  .version = "[=<>!~ ",
	  .rest = "[]=<>!~ ,.*+-_",
	  .folds = true,
	  .results = "/home/user/.local" },
	{ .name = "npm",
	  .index = 1,
	  .kind = GUEST_KIND_NODE,
	  .offset = offsetof(struct policy, npm),
	  .field = "packages.npm",
	  .source = "packages.npm_registry",
	  .lock = "package-lock.json",
	  .lock_field = "packages.npm_lock",
	  .is_name = name_is_npm,
	  .version = "@",
	  .rest = "@^~<>=| .*+-",
	  .results = "/home/user/node_modules" },
	{ .name = "cran",
	  .index = 2,
	  .kind = GUEST_KIND_R,
	  .offset = offsetof(struct policy, cran),
	  .field = "packages.cran",
	  .source = "packages.cran_repo",
	  .is_name = name_is_cran,
	  .results = "/home/user/R" },
};

const struct package_manager *package_manager_find(const char *name)
{
	enum guest_kind kind = guest_from_name(name);

	for (size_t i = 0; i < sizeof(managers) / sizeof(*managers); i++)
		if (str_eq(name, managers[i].name) || kind == managers[i].kind)
			return &managers[i];
	return NULL;
}

const struct policy_registry *package_manager_registry(const struct package_manager *m,
						       const struct policy *p)
{
	return (const struct policy_registry *)(const void *)((const char *)p + m->offset);
}

/* The length of the name in front of a version. A scope's @ is part of the name. */
static size_t name_length(const struct package_manager *m, const char *spec)
{
	return m->version && spec[0] ? strcspn(spec + 1, m->version) + 1 : strlen(spec);
}

/* The next character of a name as it is compared; a run of - _ . is one. */
static char folded(const char **at, const char *end)
{
	char c = *(*at)++;

	if (c >= 'A' && c <= 'Z')
		return (char)(c | 0x20);
	if (!strchr("-_.", c))
		return c;
	while (*at < end && strchr("-_.", **at))
		(*at)++;
	return '-';
}

static bool is_equal(const struct package_manager *m, const char *a, size_t a_len, const char *b,
		     size_t b_len)
{
	const char *a_end = a + a_len, *b_end = b + b_len;

	if (!m->folds)
		return a_len == b_len && memcmp(a, b, a_len) == 0;
	while (a < a_end && b < b_end)
		if (folded(&a, a_end) != folded(&b, b_end))
			return false;
	return a == a_end && b == b_end;
}

bool package_request_is_same(const struct package_manager *m, const char *a, const char *b)
{
	return is_equal(m, a, name_length(m, a), b, name_length(m, b));
}

static bool is_named(const struct package_manager *m, const struct policy_list *l, const char *name)
{
	for (size_t i = 0; i < l->names.count; i++)
		if (is_equal(m, name, strlen(name), l->names.items[i], strlen(l->names.items[i])))
			return true;
	return l->all;
}

/* npm takes "a@." and "a@x.tgz" for files. */
static bool is_file(const char *version)
{
	const char *text = version + strspn(version, " @");

	return text[0] == '.' || str_ends(text, ".tgz") || str_ends(text, ".tar") ||
	       str_ends(text, ".gz");
}

static bool is_version(const struct package_manager *m, const char *version)
{
	const char *begin = version + strspn(version, " ");

	if (is_file(version))
		return false;
	/* "a >= 1", but not "a b". */
	if (*begin ? !strchr(m->version ? m->version : "", *begin) : *version)
		return false;
	for (const char *c = version; *c; c++)
		if (!strchr(LETTERS, *c) && !(m->rest && strchr(m->rest, *c)))
			return false;
	return true;
}

int package_request_check(const struct package_manager *m, const struct policy *p, const char *spec,
			  struct cordon_error **reterr)
{
	const struct policy_registry *r = package_manager_registry(m, p);

	if (m->lock && str_eq(spec, m->lock))
		return r->lock ? 0
			       : err_set(reterr, CORDON_DENIED,
					 "the policy names no lockfile for %s: %s: name the file "
					 "of the host (%s=PATH)",
					 m->name, m->lock_field, m->lock_field);
	size_t len = strnlen(spec, SPEC_MAX);
	cleanup_free char *name = str_ndup(spec, len < SPEC_MAX ? name_length(m, spec) : 0);
	if (!name)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	const char *version = spec + strlen(name);
	if (!name[0] || !m->is_name(name) || !is_version(m, version))
		return err_set(reterr, CORDON_INVALID,
			       "'%.100s' is not a package of %s: give a name, with a version or "
			       "not; no address, path or option",
			       spec, m->name);
	if (!is_named(m, &r->names, name))
		return err_set(reterr, CORDON_DENIED,
			       "the policy does not name the package '%s': %s: name it in the "
			       "policy (%s+=%s)",
			       name, m->field, m->field, name);
	return 0;
}
