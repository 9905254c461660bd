/* serve/http/sse.c - see sse.h. */
#include "serve/http/sse.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"

bool sse_is_wanted(struct httpd_exchange *x)
{
	static const char type[] = "text/event-stream";
	const char *accept = httpd_header(x, "Accept");

	for (const char *at = accept; at && *at; at = strchr(at, ',')) {
		at += strspn(at, ", \t");
		size_t n = strcspn(at, ",; \t");
		if (n == sizeof(type) - 1 && strncasecmp(at, type, n) == 0)
			return true;
	}
	return false;
}

bool sse_send(struct httpd_exchange *x, const char *event, const char *data, size_t len)
{
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, SIZE_MAX / 2);
	if (buf_printf(&b, "event: %s\ndata: ", event) < 0 || buf_add(&b, data, len) < 0 ||
	    buf_add(&b, "\n\n", 2) < 0)
		return false;
	return httpd_stream_write(x, b.data, b.len);
}

bool sse_send_text(struct httpd_exchange *x, const char *event, const char *bytes, size_t len)
{
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, SIZE_MAX / 2);
	if (buf_printf(&b, "event: %s\ndata: {\"data\":\"", event) < 0 ||
	    json_add_text(&b, bytes, len) < 0 || buf_add_str(&b, "\"}\n\n") < 0)
		return false;
	return httpd_stream_write(x, b.data, b.len);
}
