/* fuzz/suggestion.c - hostile results. What is suggested is a valid policy that permits no less. */
#include <stdint.h>
#include <stdlib.h>

#include "policy/suggestion.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_policy struct policy base = { 0 };
	cleanup_suggestion struct suggestion s = { 0 };
	cleanup_json json_t *results = NULL;

	if (json_parse((const char *)data, size, 0, &results, NULL) < 0)
		return 0;
	if (policy_init_level(&base, LEVEL_STRICT, NULL) < 0 ||
	    suggestion_init(&s, &base, NULL) < 0)
		abort();
	if (suggestion_add(&s, results, NULL) < 0)
		return 0;
	cleanup_json json_t *all = suggestion_json(&s);
	if (!all || policy_check(&s.wanted, NULL) < 0 || policy_narrows(&s.wanted, &base, NULL) < 0)
		abort();
	return 0;
}
