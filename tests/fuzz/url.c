/* fuzz/url.c - URLs and host names: normalising twice gives the same as once. */
#include "net/gateway/url.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_url struct url u = { 0 }, again = { 0 }, relative = { 0 };
	struct host h, same;
	uint16_t port = 0;

	if (host_parse_authority((const char *)data, size, &h, &port, NULL) == 0 &&
	    (host_parse(h.name, strlen(h.name), &same, NULL) < 0 || !host_equal(&h, &same)))
		abort();
	if (url_parse((const char *)data, size, &u, NULL) < 0)
		return 0;
	cleanup_free char *text = url_text(&u);
	if (!text || strpbrk(text, "\r\n \t#") || !u.port || u.path[0] != '/')
		abort();
	if (strlen(text) <= URL_MAX_LEN) {
		if (url_parse(text, strlen(text), &again, NULL) < 0 ||
		    !host_equal(&u.host, &again.host) || strcmp(u.path, again.path) != 0)
			abort();
		(void)url_resolve(&u, (const char *)data, size, &relative, NULL);
	}
	return 0;
}
