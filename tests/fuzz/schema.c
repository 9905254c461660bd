/* fuzz/schema.c - a tool's schema (up to the first NUL) and a call's arguments (after it). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cordon/session.h"
#include "tools/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *nul = memchr(data, '\0', size);
	json_t *schema = NULL;

	if (!nul || size > 20000)
		return 0;
	size_t args_len = size - (size_t)(nul + 1 - (const char *)data);
	/* Any text is a message to sanitise: what comes back is never longer than asked for. */
	char *copy = strndup(nul + 1, args_len), *clean = copy ? cordon_sanitize(copy, 50) : NULL;
	size_t chars = 0;
	for (const char *p = clean; p && *p; p++)
		chars += (*p & 0xc0) != 0x80;
	if (!clean || chars > 50)
		abort();
	free(copy);
	free(clean);
	if (schema_compile("t", (const char *)data, &schema, NULL) < 0)
		return 0;
	char *refusal = schema_refusal(schema, "t", nul + 1, args_len);
	json_t *summary = schema_summary(schema);
	if (!summary || (refusal && !*refusal))
		abort();
	free(refusal);
	json_decref(summary);
	json_decref(schema);
	return 0;
}
