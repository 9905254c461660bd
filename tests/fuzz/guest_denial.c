/* fuzz/guest_denial.c - what code writes to stderr and in its exceptions, which the host reads for
 * denials. There are few of them, and they are JSON whatever the text is. */
#include "session/guest_denial.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MANY = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy p;
	cleanup_result struct cordon_result *r = result_new();
	cleanup_free char *text = str_ndup((const char *)data, size);
	struct guest_denial_setting s = { .policy = &p };
	struct guest_denial d = { 0 };

	if (!p.processes && (policy_init_level(&p, LEVEL_STRICT, NULL) < 0 ||
			     policy_apply_set(&p, "commands=cat", NULL) < 0))
		abort();
	if (!r || !text)
		return 0;
	guest_denial_parse(&d, text);
	(void)guest_denial_file(&d, &s, r);
	guest_denial_done(&d);
	(void)guest_denial_lines(text, &s, r);
	guest_denial_module(text, &p, r);
	guest_denial_network(text, &p, r);
	guest_denial_command(text, &p, r);
	guest_denial_not_found(text, &p, r);
	if (json_array_size(r->denials) > MANY)
		abort();
	cleanup_free char *json = r->denials ? json_text(r->denials, NULL) : NULL;
	if (r->denials && (!json || !str_is_utf8(json, strlen(json))))
		abort();
	return 0;
}
