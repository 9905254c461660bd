/* fuzz/policy.c - hostile policies. The first byte chooses: a JSON document, lines of assignments,
 * or the small languages (durations, sizes, mounts, host patterns). An accepted policy must read
 * back equal, and can be copied, explained and compared. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/pattern.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int is_true)
{
	if (!is_true)
		abort();
}

/* Secrets are not written, so a policy with some does not read back. */
static void check_round_trip(const struct policy *p)
{
	cleanup_policy struct policy again = { 0 };
	cleanup_json json_t *first = policy_to_json(p), *second = NULL;

	check(first && policy_init_level(&again, LEVEL_STRICT, NULL) == 0);
	if (p->secret_count)
		return;
	check(policy_apply_json(&again, first, NULL) == 0);
	second = policy_to_json(&again);
	check(json_equal(first, second));
}

static void check_accepted(const struct policy *p)
{
	cleanup_policy struct policy copy = { 0 };
	cleanup_error struct cordon_error *e = NULL;
	uint8_t a[32], b[32];

	check_round_trip(p);
	check(policy_copy(&copy, p, NULL) == 0);
	check(policy_hash(p, a) == 0 && policy_hash(&copy, b) == 0 && memcmp(a, b, 32) == 0);
	char *text = policy_explain(&copy), *diff = policy_diff(p, &copy);
	check(text && text[0] && diff && !diff[0]);
	free(text);
	free(diff);
	if (policy_check(p, &e) < 0)
		check(cordon_error_message(e)[0]);
}

static void document(const char *text, size_t len)
{
	cleanup_policy struct policy p = { 0 };
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *j = NULL;

	check(policy_init_level(&p, LEVEL_STANDARD, NULL) == 0);
	if (json_parse(text, len, 1 << 20, &j, NULL) < 0)
		return;
	if (policy_apply_json(&p, j, &e) == 0)
		check_accepted(&p);
	else
		check(e && cordon_error_message(e)[0]);
}

static void assignments(char *text)
{
	cleanup_policy struct policy p = { 0 };
	char *rest = NULL;

	check(policy_init_level(&p, LEVEL_STANDARD, NULL) == 0);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		(void)policy_apply_set(&p, line, NULL);
	check_accepted(&p);
}

static void small(const char *text)
{
	struct policy_mount m;
	uint64_t v = 0;
	char *host = NULL, *again = NULL;
	uint16_t port;

	if (policy_parse_duration(text, &v, NULL) == 0)
		check(v > 0 && v <= INT64_MAX);
	if (policy_parse_size(text, &v, NULL) == 0)
		check(v > 0 && v <= INT64_MAX);
	if (policy_parse_mount(text, &m, NULL) == 0) {
		check(m.host[0] == '/' && m.guest[0] == '/' && !strstr(m.guest, "/../"));
		free(m.host);
		free(m.guest);
	}
	if (pattern_parse(text, "x", &host, &port, NULL) < 0)
		return;
	check(pattern_parse(host, "x", &again, &port, NULL) == 0 && strcmp(host, again) == 0);
	/* Only a star that was written covers everything. */
	check(!pattern_covers(host, "cordon.invalid") || strchr(text, '*') ||
	      strcmp(host, "cordon.invalid") == 0);
	free(host);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 65536)
		return 0;
	char *text = malloc(size);
	check(text != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] % 3 == 0)
		document(text, size - 1);
	else if (data[0] % 3 == 1)
		assignments(text);
	else
		small(text);
	free(text);
	return 0;
}
