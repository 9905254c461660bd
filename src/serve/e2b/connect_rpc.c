/* serve/e2b/connect_rpc.c - see connect_rpc.h. */
#include "serve/e2b/connect_rpc.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

enum { FLAG_COMPRESSED = 1, FLAG_END = 2, MESSAGES_MAX = 4096 };

static const struct {
	const char *name;
	unsigned status;
} codes[] = {
	{ "invalid_argument", 400 },  { "not_found", 404 },          { "already_exists", 409 },
	{ "permission_denied", 403 }, { "resource_exhausted", 429 }, { "failed_precondition", 400 },
	{ "unimplemented", 501 },     { "unavailable", 503 },        { "unauthenticated", 401 },
	{ "deadline_exceeded", 504 }, { "canceled", 499 },           { "internal", 500 },
};

const char *connect_rpc_code(enum cordon_code code)
{
	switch (code) {
	case CORDON_INVALID:
		return "invalid_argument";
	case CORDON_NOT_FOUND:
		return "not_found";
	case CORDON_EXISTS:
		return "already_exists";
	case CORDON_DENIED:
		return "permission_denied";
	case CORDON_LIMIT:
	case CORDON_NOMEM:
		return "resource_exhausted";
	case CORDON_STATE:
		return "failed_precondition";
	case CORDON_UNSUPPORTED:
		return "unimplemented";
	case CORDON_TIMEOUT:
		return "deadline_exceeded";
	case CORDON_CANCELLED:
		return "canceled";
	default:
		return "internal";
	}
}

/* Compares a media type without its parameters. */
static bool is_type(const char *header, const char *type)
{
	size_t len = strlen(type);

	return header && strncasecmp(header, type, len) == 0 &&
	       (header[len] == '\0' || header[len] == ';' || header[len] == ' ');
}

/* Whether the body, and so the answer, is made of envelopes. */
static bool is_stream_call(struct httpd_exchange *x)
{
	return is_type(httpd_header(x, "Content-Type"), "application/connect+json");
}

static bool is_compressed(struct httpd_exchange *x, const char *name)
{
	const char *v = httpd_header(x, name);

	return v && *v && strcasecmp(v, "identity") != 0;
}

int connect_rpc_next(const char *bytes, size_t len, const char **ret, size_t *ret_len,
		     struct cordon_error **reterr)
{
	const unsigned char *b = (const unsigned char *)bytes;

	if (len < CONNECT_RPC_FRAME_BYTES)
		return err_set(reterr, CORDON_INVALID, "the envelope is cut: it has %zu bytes",
			       len);
	if (b[0] & FLAG_COMPRESSED)
		return err_set(reterr, CORDON_UNSUPPORTED, "messages must not be compressed");
	if (b[0] != 0)
		return err_set(reterr, CORDON_INVALID, "the envelope has unknown flags: %u", b[0]);
	size_t n = (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4];
	if (n > len - CONNECT_RPC_FRAME_BYTES)
		return err_set(reterr, CORDON_INVALID,
			       "the envelope says %zu bytes, and %zu are there", n,
			       len - CONNECT_RPC_FRAME_BYTES);
	*ret = bytes + CONNECT_RPC_FRAME_BYTES;
	*ret_len = n;
	return 0;
}

/* No text at all is an empty message. */
static int parse(const char *text, size_t len, json_t **ret, struct cordon_error **reterr)
{
	cleanup_json json_t *j = NULL;
	int r = len ? json_parse(text, len, 0, &j, reterr) : 0;

	if (r < 0)
		return r;
	if (!j)
		j = json_object();
	if (!json_is_object(j))
		return err_set(reterr, CORDON_INVALID, "the message must be a JSON object");
	*ret = TAKE_PTR(j);
	return 0;
}

static int check_headers(struct httpd_exchange *x, struct cordon_error **reterr)
{
	bool is_stream = is_stream_call(x);

	if (!is_stream && !is_type(httpd_header(x, "Content-Type"), "application/json"))
		return err_set(reterr, CORDON_INVALID,
			       "the type of the body must be application/json, or for streams "
			       "application/connect+json");
	if (is_compressed(x, is_stream ? "Connect-Content-Encoding" : "Content-Encoding"))
		return err_set(reterr, CORDON_UNSUPPORTED, "messages must not be compressed");
	return 0;
}

int connect_rpc_read(struct httpd_exchange *x, json_t **ret, struct cordon_error **reterr)
{
	size_t len = 0, n = 0;
	const char *body = httpd_body(x, &len), *text = body;
	int r = check_headers(x, reterr);

	n = len;
	if (r == 0 && is_stream_call(x)) {
		r = connect_rpc_next(body, len, &text, &n, reterr);
		if (r == 0 && n + CONNECT_RPC_FRAME_BYTES != len)
			r = err_set(reterr, CORDON_INVALID, "there must be exactly one envelope");
	}
	return r < 0 ? r : parse(text, n, ret, reterr);
}

int connect_rpc_read_all(struct httpd_exchange *x, json_t **ret, struct cordon_error **reterr)
{
	cleanup_json json_t *all = json_array();
	size_t len = 0;
	const char *at = httpd_body(x, &len);
	int r = check_headers(x, reterr);

	while (r == 0 && len > 0) {
		const char *text = NULL;
		json_t *j = NULL;
		size_t n = 0;

		if (json_array_size(all) >= MESSAGES_MAX)
			return err_set(reterr, CORDON_LIMIT, "there are more than %d messages",
				       MESSAGES_MAX);
		r = connect_rpc_next(at, len, &text, &n, reterr);
		if (r == 0)
			r = parse(text, n, &j, reterr);
		if (r == 0)
			json_array_append_new(all, j);
		at += CONNECT_RPC_FRAME_BYTES + n;
		len -= r == 0 ? CONNECT_RPC_FRAME_BYTES + n : 0;
	}
	if (r == 0)
		*ret = TAKE_PTR(all);
	return r;
}

void connect_rpc_answer(struct httpd_exchange *x, json_t *message)
{
	size_t len = 0;
	cleanup_free char *text = json_text(message, &len);

	json_decref(message);
	if (text)
		httpd_answer(x, 200, "application/json", text, len);
	else
		connect_rpc_fail_as(x, "resource_exhausted", "out of memory");
}

static char *error_text(const char *code, const char *sentence, size_t *ret_len)
{
	cleanup_json json_t *j = json_object();

	json_object_set_new(j, "code", json_string(code));
	json_object_set_new(j, "message", json_string_lossy(sentence, strlen(sentence)));
	return json_text(j, ret_len);
}

void connect_rpc_fail_as(struct httpd_exchange *x, const char *code, const char *sentence)
{
	unsigned status = 500;
	size_t len = 0;

	if (is_stream_call(x)) {
		connect_rpc_begin(x);
		connect_rpc_end(x, code, sentence);
		return;
	}
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (str_eq(codes[i].name, code))
			status = codes[i].status;
	cleanup_free char *text = error_text(code, sentence, &len);
	httpd_answer(x, status, "application/json", text, text ? len : 0);
}

void connect_rpc_fail(struct httpd_exchange *x, const struct cordon_error *e)
{
	connect_rpc_fail_as(x, connect_rpc_code(cordon_error_code(e)), cordon_error_message(e));
}

void connect_rpc_begin(struct httpd_exchange *x)
{
	httpd_stream_begin(x, 200, "application/connect+json");
}

char *connect_rpc_frame(unsigned char flags, const char *text, size_t len, size_t *ret_len)
{
	char *frame = len <= UINT32_MAX ? mem_alloc(len + CONNECT_RPC_FRAME_BYTES) : NULL;

	if (!frame)
		return NULL;
	frame[0] = (char)flags;
	for (int i = 0; i < 4; i++)
		frame[1 + i] = (char)(len >> (24 - 8 * i));
	memcpy(frame + CONNECT_RPC_FRAME_BYTES, text, len);
	*ret_len = len + CONNECT_RPC_FRAME_BYTES;
	return frame;
}

static bool send_text(struct httpd_exchange *x, unsigned char flags, const char *text, size_t len)
{
	size_t n = 0;
	cleanup_free char *frame = text ? connect_rpc_frame(flags, text, len, &n) : NULL;

	return frame && httpd_stream_write(x, frame, n);
}

bool connect_rpc_send(struct httpd_exchange *x, json_t *message)
{
	size_t len = 0;
	cleanup_free char *text = json_text(message, &len);

	json_decref(message);
	return send_text(x, 0, text, len);
}

void connect_rpc_end(struct httpd_exchange *x, const char *code, const char *sentence)
{
	size_t len = 0;
	cleanup_free char *error = code ? error_text(code, sentence, &len) : NULL;
	cleanup_free char *text = error ? str_printf("{\"error\":%s}", error) : str_dup("{}");
	bool good = send_text(x, FLAG_END, text, text ? strlen(text) : 0);

	httpd_stream_end(x, good);
}

uint64_t connect_rpc_timeout_ms(struct httpd_exchange *x)
{
	const char *v = httpd_header(x, "Connect-Timeout-Ms");
	char *end = NULL;
	unsigned long long ms = v ? strtoull(v, &end, 10) : 0;

	return end && *end == '\0' && strlen(v) <= 10 ? ms : 0;
}
