/* cli/base_option.c - see base_option.h. */
#include "cli/base_option.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/choice.h"

static int nomem(struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* Where this name ends. A comma in a version (a>=1,<2) separates no names. */
static const char *end_of(const char *at)
{
	const char *end = at + strcspn(at, ",");

	while (*end && strchr("<>=!~", end[1]) && end[1])
		end += 1 + strcspn(end + 1, ",");
	return end;
}

int base_packages(const struct cli *c, struct strlist *list, const char *const **ret,
		  struct cordon_error **reterr)
{
	const char *value;

	for (size_t i = 0; (value = cli_value_at(c, "with", i)); i++) {
		for (const char *at = value, *end = NULL; !end || *end; at = end + 1) {
			end = end_of(at);
			cleanup_free char *name = str_ndup(at, (size_t)(end - at));
			if (!name || strlist_add(list, name) < 0)
				return nomem(reterr);
		}
	}
	*ret = list->count ? (const char *const *)list->items : NULL;
	return 0;
}

static bool has(const char *dir, const char *name, char **ret)
{
	char *path = str_printf("%s/%s", dir, name);

	free(*ret);
	*ret = path;
	return path && access(path, F_OK) == 0;
}

int base_venv(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr)
{
	const char *dir = cli_value(c, "venv");
	cleanup_free char *full = dir ? realpath(dir, NULL) : NULL, *found = NULL;

	if (!dir)
		return 0;
	if (!full)
		return err_errno(reterr, errno, "--venv %s", dir);
	if (has(full, "bin/python", &found))
		return choice_set(p, "python=", found, reterr);
	if (!has(full, "node_modules", &found))
		return err_set(reterr, CORDON_INVALID,
			       "--venv %s: there is neither bin/python nor node_modules", dir);
	/* Node looks for a node_modules in each directory above the code, up to the root. */
	cleanup_free char *mount = str_printf("%s:/node_modules:ro", found);
	return mount ? choice_add_mount(p, mount, reterr) : nomem(reterr);
}
