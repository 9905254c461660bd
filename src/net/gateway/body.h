/* net/gateway/body.h - finds the end of an HTTP body. The payload is taken out of its framing and
 * framed anew, so a length that one side claims never reaches the other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/gateway/http.h"

struct body {
	enum http_framing framing;
	uint64_t left;  /* bytes left; HTTP_LENGTH: of the body, HTTP_CHUNKED: of the chunk */
	unsigned state; /* of the chunk parser; private */
	unsigned line;  /* length of the current size or trailer line */
	unsigned trailer;
	bool is_done;
};

void body_init(struct body *b, const struct http_head *h);

/* Consumes *ret_used of the bytes, of which *ret_len at *ret_payload are payload. Call again until
 * *ret_used is 0 or b->is_done. -CORDON_PROTOCOL: broken chunks. */
int body_take(struct body *b, const char *bytes, size_t len, size_t *ret_used,
	      const char **ret_payload, size_t *ret_len);
