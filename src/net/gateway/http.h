/* net/gateway/http.h - a strict parser of HTTP/1 heads, so that no two readers can disagree about a
 * message: CRLF only, no folding, one Content-Length or one "chunked", no control characters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum {
	HTTP_HEAD_MAX = 16384,
	HTTP_FIELDS_MAX = 100,
	HTTP_METHOD_MAX = 32,
};

/* A part of the parsed bytes, not NUL-terminated. */
struct http_slice {
	const char *data;
	size_t len;
};

struct http_field {
	struct http_slice name, value; /* value without surrounding blanks */
};

enum http_framing {
	HTTP_NO_BODY,
	HTTP_LENGTH, /* length bytes */
	HTTP_CHUNKED,
	HTTP_TO_CLOSE, /* responses only */
};

struct http_head {
	/* requests */
	char method[HTTP_METHOD_MAX + 1];
	struct http_slice target;
	struct http_slice host; /* the Host field; data NULL: none */
	/* responses */
	unsigned status;
	struct http_slice reason;
	/* both */
	unsigned minor; /* HTTP/1.minor */
	size_t size;    /* bytes of the head, including the empty line */
	bool keep_alive;
	bool expects_continue;
	bool upgrades; /* Upgrade and Connection: upgrade, or 101 */
	enum http_framing framing;
	uint64_t length;
	struct http_field fields[HTTP_FIELDS_MAX];
	size_t field_count;
};

/* Length of the head at the start of bytes with its empty line, or 0: not all there yet.
 * -CORDON_LIMIT: longer than HTTP_HEAD_MAX. */
ptrdiff_t http_head_length(const char *bytes, size_t len);
/* The slices point into bytes. A CORDON_PROTOCOL error says what is wrong. */
int http_parse_request(const char *bytes, size_t len, struct http_head *ret,
		       struct cordon_error **reterr);
/* method: of the request that this answers. */
int http_parse_response(const char *bytes, size_t len, const char *method, struct http_head *ret,
			struct cordon_error **reterr);

/* The first field of that name, ignoring case; NULL: none. */
const struct http_field *http_field_find(const struct http_head *h, const char *name);
bool http_slice_is(struct http_slice s, const char *text); /* ignores case */
/* Fields that belong to one connection, not to the message. */
bool http_field_is_hop(const struct http_head *h, const struct http_field *f);
