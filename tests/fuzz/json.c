/* fuzz/json.c - what parses is written as text that parses to an equal value, byte for byte again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *value = NULL, *again = NULL;
	struct cordon_error *err = NULL;
	size_t len = 0, again_len = 0;

	json_t *lossy = json_string_lossy((const char *)data, size);
	if (!lossy || json_string_length(lossy) < (size ? 1 : 0))
		abort();
	json_decref(lossy);
	if (json_parse((const char *)data, size, 1 << 20, &value, &err) < 0) {
		if (!err || value || !*cordon_error_message(err))
			abort();
		cordon_error_free(err);
		return 0;
	}
	char *text = json_text(value, &len), *pretty = json_text_pretty(value);
	if (!text || !pretty || strlen(text) != len || err)
		abort();
	if (json_parse(text, len, 0, &again, NULL) < 0 || !json_equal(value, again))
		abort();
	char *text_again = json_text(again, &again_len);
	if (!text_again || again_len != len || memcmp(text, text_again, len) != 0)
		abort();
	json_decref(again);
	again = NULL;
	if (json_parse(pretty, strlen(pretty), 0, &again, NULL) < 0 || !json_equal(value, again))
		abort();
	json_decref(again);
	json_decref(value);
	free(text_again);
	free(pretty);
	free(text);
	return 0;
}
