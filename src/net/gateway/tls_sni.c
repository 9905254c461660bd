/* net/gateway/tls_sni.c - see tls_sni.h. */
#include "net/gateway/tls_sni.h"

#include <stdbool.h>
#include <string.h>

/* The remaining input. A read past the end marks it bad; from then on, reads return zeros. */
struct reader {
	const uint8_t *p;
	size_t len;
	bool is_bad;
};

static const uint8_t *take(struct reader *r, size_t n)
{
	if (r->is_bad || n > r->len) {
		r->is_bad = true;
		return NULL;
	}
	const uint8_t *p = r->p;
	r->p += n;
	r->len -= n;
	return p;
}

static unsigned number(struct reader *r, size_t bytes)
{
	const uint8_t *p = take(r, bytes);
	unsigned v = 0;

	for (size_t i = 0; p && i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

/* A vector that starts with its length, in length_bytes bytes. */
static struct reader vector(struct reader *r, size_t length_bytes)
{
	size_t n = number(r, length_bytes);
	const uint8_t *p = take(r, n);

	return (struct reader){ .p = p, .len = p ? n : 0, .is_bad = !p };
}

static enum tls_sni_result read_server_names(struct reader ext, struct host *ret)
{
	struct reader list = vector(&ext, 2);
	bool found = false;

	if (list.is_bad || ext.len > 0)
		return TLS_SNI_BAD_NAME;
	while (list.len > 0) {
		unsigned type = number(&list, 1);
		struct reader name = vector(&list, 2);
		if (list.is_bad || name.is_bad || type != 0 || found)
			return TLS_SNI_BAD_NAME;
		if (host_parse_plain((const char *)name.p, name.len, ret, NULL) < 0)
			return TLS_SNI_BAD_NAME;
		found = true;
	}
	return found ? TLS_SNI_NAME : TLS_SNI_BAD_NAME;
}

static enum tls_sni_result read_client_hello(struct reader body, struct host *ret)
{
	(void)take(&body, 2 + 32); /* version, random */
	(void)vector(&body, 1);    /* session */
	(void)vector(&body, 2);    /* cipher suites */
	(void)vector(&body, 1);    /* compressions */
	if (body.is_bad)
		return TLS_SNI_NOT_TLS;
	if (body.len == 0)
		return TLS_SNI_NO_NAME;
	struct reader extensions = vector(&body, 2);
	enum tls_sni_result result = TLS_SNI_NO_NAME;
	if (extensions.is_bad || body.len > 0)
		return TLS_SNI_NOT_TLS;
	while (extensions.len > 0) {
		unsigned type = number(&extensions, 2);
		struct reader ext = vector(&extensions, 2);
		if (extensions.is_bad || ext.is_bad)
			return TLS_SNI_NOT_TLS;
		if (type != 0)
			continue;
		if (result != TLS_SNI_NO_NAME)
			return TLS_SNI_BAD_NAME;
		result = read_server_names(ext, ret);
	}
	return result;
}

/* Reads the start of a message, which may be incomplete. */
static enum tls_sni_result read_message(const uint8_t *whole, size_t have, struct host *ret_name)
{
	enum { CLIENT_HELLO = 1 };

	if (have >= 1 && whole[0] != CLIENT_HELLO)
		return TLS_SNI_NOT_TLS;
	if (have < 4)
		return TLS_SNI_MORE;
	size_t want = (size_t)whole[1] << 16 | (size_t)whole[2] << 8 | whole[3];
	if (want > TLS_SNI_MAX - 4)
		return TLS_SNI_NOT_TLS;
	if (have < want + 4)
		return TLS_SNI_MORE;
	return read_client_hello((struct reader){ .p = whole + 4, .len = want }, ret_name);
}

/* A ClientHello may be split over several records. They are joined in a scratch buffer. */
enum tls_sni_result tls_sni_read(const uint8_t *bytes, size_t len, struct host *ret_name)
{
	enum { HANDSHAKE = 22, RECORD_MAX = 16384 };
	uint8_t whole[TLS_SNI_MAX];
	size_t have = 0;
	struct reader in = { .p = bytes, .len = len };

	while (in.len > 0) {
		if (in.p[0] != HANDSHAKE || (in.len > 1 && in.p[1] != 3))
			return TLS_SNI_NOT_TLS;
		if (in.len < 5)
			break;
		size_t size = (size_t)in.p[3] << 8 | in.p[4];
		if (size == 0 || size > TLS_SNI_MAX - have || size > RECORD_MAX)
			return TLS_SNI_NOT_TLS;
		size_t part = in.len - 5 < size ? in.len - 5 : size;
		memcpy(whole + have, in.p + 5, part);
		have += part;
		enum tls_sni_result result = read_message(whole, have, ret_name);
		if (result != TLS_SNI_MORE)
			return result;
		in.p += 5 + part;
		in.len -= 5 + part;
	}
	return len >= TLS_SNI_MAX ? TLS_SNI_NOT_TLS : TLS_SNI_MORE;
}
