/* serve/mcp/mcplang.c - see mcplang.h. */
#include "serve/mcp/mcplang.h"

#include "base/language_name.h"

int mcplang_find(const char *name, struct mcplang *ret, struct cordon_error **reterr)
{
	struct language_name known;

	if (!language_name_find(name, &known))
		return err_set(reterr, CORDON_INVALID,
			       "there is no language '%.40s'; there are python, r, javascript, "
			       "typescript and bash",
			       name);
	*ret = (struct mcplang){ .guest = known.guest, .is_typescript = known.is_typescript };
	return 0;
}
