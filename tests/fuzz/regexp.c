/* fuzz/regexp.c - a schema's pattern (up to the first NUL) and a text (after it). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tools/regexp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *nul = memchr(data, '\0', size), *why = NULL;

	if (!nul || size > 5000)
		return 0;
	size_t len = (size_t)(nul - (const char *)data), rest = size - len - 1;
	struct regexp *r = regexp_new((const char *)data, len, &why);
	if (!r != (why != NULL))
		abort(); /* either an expression or a reason */
	if (!r)
		return 0;
	if (regexp_cost(r) > 1000)
		abort();
	bool is_in = regexp_is_in(r, nul + 1, rest);
	/* Put after a text that nothing in it can follow, it is still there: it has no anchors. */
	if (is_in && str_is_utf8(nul + 1, rest) && !memchr(data, '^', len) &&
	    !memchr(data, '$', len) && !memchr(data, '\\', len)) {
		char *longer = malloc(rest + 2);
		if (!longer)
			abort();
		longer[0] = '\x01';
		memcpy(longer + 1, nul + 1, rest);
		if (!regexp_is_in(r, longer, rest + 1))
			abort();
		free(longer);
	}
	regexp_free(r);
	return 0;
}
