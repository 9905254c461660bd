/* net/gateway/http.c - see http.h. */
#include "net/gateway/http.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static bool is_token_char(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct http_slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_token_char((unsigned char)s.data[i]))
			return false;
	return s.len > 0;
}

bool http_slice_is(struct http_slice s, const char *text)
{
	return s.data && s.len == strlen(text) && strncasecmp(s.data, text, s.len) == 0;
}

static struct http_slice trim(struct http_slice s)
{
	while (s.len > 0 && (s.data[0] == ' ' || s.data[0] == '\t')) {
		s.data++;
		s.len--;
	}
	while (s.len > 0 && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* Whether the comma-separated list has the token, ignoring case. */
static bool has_token(struct http_slice s, const char *token)
{
	while (s.len > 0) {
		const char *comma = memchr(s.data, ',', s.len);
		size_t len = comma ? (size_t)(comma - s.data) : s.len;
		if (http_slice_is(trim((struct http_slice){ s.data, len }), token))
			return true;
		size_t skip = comma ? len + 1 : len;
		s.data += skip;
		s.len -= skip;
	}
	return false;
}

const struct http_field *http_field_find(const struct http_head *h, const char *name)
{
	for (size_t i = 0; i < h->field_count; i++)
		if (http_slice_is(h->fields[i].name, name))
			return &h->fields[i];
	return NULL;
}

bool http_field_is_hop(const struct http_head *h, const struct http_field *f)
{
	static const char *const hop[] = { "Connection",
					   "Proxy-Connection",
					   "Keep-Alive",
					   "TE",
					   "Trailer",
					   "Transfer-Encoding",
					   "Upgrade",
					   "Proxy-Authorization",
					   "Proxy-Authenticate",
					   "Proxy-Authentication-Info" };
	char name[64];

	for (size_t i = 0; i < sizeof(hop) / sizeof(*hop); i++)
		if (http_slice_is(f->name, hop[i]))
			return true;
	if (f->name.len >= sizeof(name))
		return false;
	memcpy(name, f->name.data, f->name.len);
	name[f->name.len] = '\0';
	/* Fields that Connection lists belong to the connection too, except those for framing and
	 * routing. */
	if (strcasecmp(name, "Host") == 0 || strcasecmp(name, "Content-Length") == 0)
		return false;
	for (size_t i = 0; i < h->field_count; i++)
		if (http_slice_is(h->fields[i].name, "Connection") &&
		    has_token(h->fields[i].value, name))
			return true;
	return false;
}

ptrdiff_t http_head_length(const char *bytes, size_t len)
{
	const char *end = memmem(bytes, len, "\r\n\r\n", 4);

	if (end && end + 4 - bytes <= HTTP_HEAD_MAX)
		return end + 4 - bytes;
	return len >= HTTP_HEAD_MAX ? -CORDON_LIMIT : 0;
}

/* Cuts one line off *rest. False: it does not end in CRLF, or has a stray control character. */
static bool cut_line(struct http_slice *rest, struct http_slice *ret)
{
	for (size_t i = 0; i < rest->len; i++) {
		unsigned char c = (unsigned char)rest->data[i];
		if (c == '\r') {
			if (i + 1 >= rest->len || rest->data[i + 1] != '\n')
				return false;
			*ret = (struct http_slice){ rest->data, i };
			rest->data += i + 2;
			rest->len -= i + 2;
			return true;
		}
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return false;
}

static int parse_field(struct http_slice line, struct http_head *h, struct cordon_error **reterr)
{
	const char *colon = memchr(line.data, ':', line.len);

	if (!colon)
		return err_set(reterr, CORDON_PROTOCOL, "a header line has no colon");
	struct http_slice name = { line.data, (size_t)(colon - line.data) };
	struct http_slice value = { colon + 1, line.len - name.len - 1 };
	if (!is_token(name)) /* also catches folding and blanks before the colon */
		return err_set(reterr, CORDON_PROTOCOL, "a header name has a forbidden character");
	if (h->field_count == HTTP_FIELDS_MAX)
		return err_set(reterr, CORDON_LIMIT, "more than %d header lines", HTTP_FIELDS_MAX);
	h->fields[h->field_count++] = (struct http_field){ name, trim(value) };
	return 0;
}

static int parse_fields(struct http_slice rest, struct http_head *h, struct cordon_error **reterr)
{
	for (;;) {
		struct http_slice line;
		if (!cut_line(&rest, &line))
			return err_set(reterr, CORDON_PROTOCOL,
				       "a header line has a control character or no CRLF");
		if (line.len == 0)
			break;
		int r = parse_field(line, h, reterr);
		if (r < 0)
			return r;
	}
	return rest.len == 0 ? 0 : err_set(reterr, CORDON_PROTOCOL, "bytes after the head");
}

static int parse_length(struct http_slice s, uint64_t *ret, struct cordon_error **reterr)
{
	uint64_t value = 0;

	if (s.len == 0 || s.len > 18)
		return err_set(reterr, CORDON_PROTOCOL, "Content-Length is not a number");
	for (size_t i = 0; i < s.len; i++) {
		if (s.data[i] < '0' || s.data[i] > '9')
			return err_set(reterr, CORDON_PROTOCOL, "Content-Length is not a number");
		value = value * 10 + (unsigned)(s.data[i] - '0');
	}
	*ret = value;
	return 0;
}

struct framing {
	bool has_length, is_chunked, close, keep;
};

static int read_framing_field(const struct http_field *f, struct http_head *h, struct framing *s,
			      struct cordon_error **reterr)
{
	if (http_slice_is(f->name, "Content-Length")) {
		if (s->has_length)
			return err_set(reterr, CORDON_PROTOCOL, "two Content-Length fields");
		s->has_length = true;
		return parse_length(f->value, &h->length, reterr);
	}
	if (http_slice_is(f->name, "Transfer-Encoding")) {
		if (s->is_chunked || !http_slice_is(f->value, "chunked") || h->minor == 0)
			return err_set(reterr, CORDON_PROTOCOL,
				       "Transfer-Encoding is not one \"chunked\"");
		s->is_chunked = true;
	} else if (http_slice_is(f->name, "Connection") ||
		   http_slice_is(f->name, "Proxy-Connection")) {
		s->close |= has_token(f->value, "close");
		s->keep |= has_token(f->value, "keep-alive");
		h->upgrades |= has_token(f->value, "upgrade");
	}
	return 0;
}

/* Finds where the message ends and whether another may follow. 1: it has a Content-Length. */
static int read_framing(struct http_head *h, struct cordon_error **reterr)
{
	struct framing s = { 0 };

	for (size_t i = 0; i < h->field_count; i++) {
		int r = read_framing_field(&h->fields[i], h, &s, reterr);
		if (r < 0)
			return r;
	}
	if (s.has_length && s.is_chunked)
		return err_set(reterr, CORDON_PROTOCOL,
			       "both Content-Length and Transfer-Encoding");
	if (s.is_chunked)
		h->framing = HTTP_CHUNKED;
	else if (s.has_length && h->length > 0)
		h->framing = HTTP_LENGTH;
	h->keep_alive = !s.close && (h->minor == 1 || s.keep);
	h->upgrades &= http_field_find(h, "Upgrade") != NULL;
	return s.has_length;
}

static int read_request_fields(struct http_head *h, struct cordon_error **reterr)
{
	int r = read_framing(h, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < h->field_count; i++) {
		if (http_slice_is(h->fields[i].name, "Host")) {
			if (h->host.data)
				return err_set(reterr, CORDON_PROTOCOL, "two Host fields");
			h->host = h->fields[i].value;
		} else if (http_slice_is(h->fields[i].name, "Expect")) {
			if (!http_slice_is(h->fields[i].value, "100-continue"))
				return err_set(reterr, CORDON_PROTOCOL, "unknown Expect");
			h->expects_continue = true;
		}
	}
	if (!h->host.data && h->minor == 1)
		return err_set(reterr, CORDON_PROTOCOL, "no Host field");
	return 0;
}

static int parse_version(struct http_slice s, unsigned *ret_minor, struct cordon_error **reterr)
{
	if (s.len != 8 || memcmp(s.data, "HTTP/1.", 7) != 0 ||
	    (s.data[7] != '0' && s.data[7] != '1'))
		return err_set(reterr, CORDON_PROTOCOL, "not HTTP/1.0 or HTTP/1.1");
	*ret_minor = (unsigned)(s.data[7] - '0');
	return 0;
}

static int parse_request_line(struct http_slice line, struct http_head *h,
			      struct cordon_error **reterr)
{
	const char *first = memchr(line.data, ' ', line.len);
	const char *last = memrchr(line.data, ' ', line.len);

	if (!first || first == last)
		return err_set(reterr, CORDON_PROTOCOL, "not a request line");
	struct http_slice method = { line.data, (size_t)(first - line.data) };
	h->target = (struct http_slice){ first + 1, (size_t)(last - first - 1) };
	struct http_slice version = { last + 1, line.len - (size_t)(last + 1 - line.data) };
	if (!is_token(method) || method.len > HTTP_METHOD_MAX)
		return err_set(reterr, CORDON_PROTOCOL, "method is not a token");
	for (size_t i = 0; i < h->target.len; i++)
		if ((unsigned char)h->target.data[i] <= 0x20 ||
		    (unsigned char)h->target.data[i] >= 0x7f)
			return err_set(reterr, CORDON_PROTOCOL,
				       "target has a blank or a control character");
	if (h->target.len == 0)
		return err_set(reterr, CORDON_PROTOCOL, "target is empty");
	memcpy(h->method, method.data, method.len);
	h->method[method.len] = '\0';
	return parse_version(version, &h->minor, reterr);
}

int http_parse_request(const char *bytes, size_t len, struct http_head *ret,
		       struct cordon_error **reterr)
{
	struct http_slice rest = { bytes, len }, line;

	memset(ret, 0, offsetof(struct http_head, fields));
	ret->field_count = 0;
	ret->size = len;
	if (len > HTTP_HEAD_MAX)
		return err_set(reterr, CORDON_LIMIT, "head is longer than %d bytes", HTTP_HEAD_MAX);
	if (!cut_line(&rest, &line))
		return err_set(reterr, CORDON_PROTOCOL,
			       "the request line has a control character or no CRLF");
	int r = parse_request_line(line, ret, reterr);
	if (r == 0)
		r = parse_fields(rest, ret, reterr);
	return r < 0 ? r : read_request_fields(ret, reterr);
}

static int parse_status_line(struct http_slice line, struct http_head *h,
			     struct cordon_error **reterr)
{
	if (line.len < 12 || line.data[8] != ' ' || (line.len > 12 && line.data[12] != ' '))
		return err_set(reterr, CORDON_PROTOCOL, "not a status line");
	for (size_t i = 9; i < 12; i++) {
		if (line.data[i] < '0' || line.data[i] > '9')
			return err_set(reterr, CORDON_PROTOCOL, "status is not a number");
		h->status = h->status * 10 + (unsigned)(line.data[i] - '0');
	}
	if (h->status < 100)
		return err_set(reterr, CORDON_PROTOCOL, "status is below 100");
	if (line.len > 13)
		h->reason = (struct http_slice){ line.data + 13, line.len - 13 };
	return parse_version((struct http_slice){ line.data, 8 }, &h->minor, reterr);
}

int http_parse_response(const char *bytes, size_t len, const char *method, struct http_head *ret,
			struct cordon_error **reterr)
{
	struct http_slice rest = { bytes, len }, line;

	memset(ret, 0, offsetof(struct http_head, fields));
	ret->field_count = 0;
	ret->size = len;
	if (!cut_line(&rest, &line))
		return err_set(reterr, CORDON_PROTOCOL,
			       "the status line has a control character or no CRLF");
	int r = parse_status_line(line, ret, reterr);
	if (r == 0)
		r = parse_fields(rest, ret, reterr);
	if (r == 0)
		r = read_framing(ret, reterr);
	if (r < 0)
		return r;
	if (ret->framing == HTTP_NO_BODY && r == 0) { /* r: it has a Content-Length */
		ret->framing = HTTP_TO_CLOSE;
		ret->keep_alive = false;
	}
	if (ret->status < 200 || ret->status == 204 || ret->status == 304 ||
	    strcmp(method, "HEAD") == 0)
		ret->framing = HTTP_NO_BODY;
	return 0;
}
