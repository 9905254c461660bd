/* fuzz/package_request.c - names of packages that a client asks for. What is accepted is a name: no
 * option, path or address for the package manager. Ranges have blanks and bars ("a@1 || 2"); each
 * request is one argument of its own. */
#include "modules/package_request.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_harmless(const char *spec)
{
	const char *slash = strchr(spec, '/');
	const char *version = spec[0] ? strchr(spec + 1, '@') : NULL;

	if (!spec[0] || strchr("-./~", spec[0]) || (version && version[1] == '.'))
		return false; /* npm takes "a@." for a directory */
	if (slash && (spec[0] != '@' || strchr(slash + 1, '/') || slash[1] == '.'))
		return false; /* only that of a scope */
	for (const char *p = spec; *p; p++)
		if (*p < ' ' || *p > '~' || strchr("\\:;'\"`$&(){}%?#", *p))
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "pip", "npm", "cran" };
	static struct policy p;
	cleanup_free char *spec = str_ndup((const char *)data, size);

	if (!p.processes && (policy_init_level(&p, LEVEL_STANDARD, NULL) < 0 ||
			     policy_apply_set(&p, "packages.pip=*", NULL) < 0 ||
			     policy_apply_set(&p, "packages.npm=*", NULL) < 0 ||
			     policy_apply_set(&p, "packages.cran=*", NULL) < 0))
		abort();
	for (size_t i = 0; spec && i < 3; i++) {
		const struct package_manager *m = package_manager_find(names[i]);

		if (!m || package_request_check(m, &p, spec, NULL) < 0)
			continue;
		if (!is_harmless(spec) || !package_request_is_same(m, spec, spec))
			abort();
	}
	return 0;
}
