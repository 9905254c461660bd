/* fuzz/httpreq.c - what a client of the gateway may send first (an HTTP request with its body, a
 * SOCKS greeting, a ClientHello), and what a server may answer. */
#include <stdlib.h>
#include <string.h>

#include "net/gateway/body.h"
#include "net/gateway/http.h"
#include "net/gateway/socks.h"
#include "net/gateway/tls_sni.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_head(const struct http_head *h, const char *bytes, size_t len)
{
	for (size_t i = 0; i < h->field_count; i++) {
		const struct http_field *f = &h->fields[i];
		if (f->name.data < bytes || f->value.data + f->value.len > bytes + len ||
		    memchr(f->value.data, '\r', f->value.len) ||
		    memchr(f->value.data, '\n', f->value.len))
			abort();
		(void)http_field_is_hop(h, f);
	}
}

static void read_body(const struct http_head *h, const char *bytes, size_t len)
{
	struct body b;
	size_t used, piece;
	const char *payload;

	body_init(&b, h);
	while (len > 0 && !b.is_done) {
		if (body_take(&b, bytes, len, &used, &payload, &piece) < 0 || used == 0)
			break;
		if (used > len || piece > used || payload < bytes || payload + piece > bytes + used)
			abort();
		bytes += used;
		len -= used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http_head h;
	const char *bytes = (const char *)data;
	struct host host;
	uint16_t port;
	enum socks_reply reply;

	(void)socks_read_greeting(data, size);
	(void)socks_read_request(data, size, &host, &port, &reply);
	(void)tls_sni_read(data, size, &host);
	ptrdiff_t len = http_head_length(bytes, size);
	if (len <= 0)
		return 0;
	if (http_parse_request(bytes, (size_t)len, &h, NULL) == 0) {
		check_head(&h, bytes, (size_t)len);
		read_body(&h, bytes + len, size - (size_t)len);
	}
	if (http_parse_response(bytes, (size_t)len, "GET", &h, NULL) == 0) {
		check_head(&h, bytes, (size_t)len);
		read_body(&h, bytes + len, size - (size_t)len);
	}
	return 0;
}
