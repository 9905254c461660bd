/* fuzz/json.c - what parses is written as text that parses to an equal value and is written the
 * same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

static void check_text(const json_t *value, const char *text, size_t len)
{
	json_t *again = NULL;

	check(json_parse(text, len, 0, &again, NULL) == 0);
	check(json_equal(value, again));
	json_decref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *value = NULL, *again = NULL;
	struct cordon_error *err = NULL;
	size_t len = 0, again_len = 0;

	json_t *lossy = json_string_lossy((const char *)data, size);
	check(lossy && json_string_length(lossy) >= (size ? 1 : 0));
	json_decref(lossy);
	if (json_parse((const char *)data, size, 1 << 20, &value, &err) < 0) {
		check(err && !value && *cordon_error_message(err));
		cordon_error_free(err);
		return 0;
	}
	char *text = json_text(value, &len), *pretty = json_text_pretty(value);
	check(text && pretty && strlen(text) == len && !err);
	check_text(value, pretty, strlen(pretty));
	check_text(value, text, len);
	check(json_parse(text, len, 0, &again, NULL) == 0);
	char *text_again = json_text(again, &again_len);
	check(text_again && again_len == len && memcmp(text, text_again, len) == 0);
	json_decref(again);
	json_decref(value);
	free(text_again);
	free(pretty);
	free(text);
	return 0;
}
