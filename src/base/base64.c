/* base/base64.c - RFC 4648 base64, standard alphabet, with padding. */
#include "base/base64.h"

#include <stdint.h>

#include "base/mem.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *bytes, size_t len, size_t *ret_len)
{
	const unsigned char *in = bytes;
	size_t groups = len / 3 + (len % 3 != 0), size;

	if (!size_mul(groups, 4, &size) || !size_add(size, 1, &size))
		return NULL;
	char *text = mem_alloc(size);
	if (!text)
		return NULL;
	char *out = text;
	for (; len >= 3; len -= 3, in += 3) {
		*out++ = alphabet[in[0] >> 2];
		*out++ = alphabet[(in[0] & 3) << 4 | in[1] >> 4];
		*out++ = alphabet[(in[1] & 15) << 2 | in[2] >> 6];
		*out++ = alphabet[in[2] & 63];
	}
	if (len > 0) {
		unsigned char second = len > 1 ? in[1] : 0;
		*out++ = alphabet[in[0] >> 2];
		*out++ = alphabet[(in[0] & 3) << 4 | second >> 4];
		*out++ = len > 1 ? alphabet[(second & 15) << 2] : '=';
		*out++ = '=';
	}
	if (ret_len)
		*ret_len = size - 1;
	return text;
}

/* 0..63, or -1 for a character outside the alphabet. */
static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_decode(const char *text, size_t len, void **ret, size_t *ret_len,
		  struct cordon_error **reterr)
{
	if (len % 4 != 0)
		return err_set(reterr, CORDON_INVALID,
			       "base64: %zu characters, not a multiple of 4", len);
	size_t padding = 0;
	if (len > 0 && text[len - 1] == '=')
		padding = text[len - 2] == '=' ? 2 : 1;
	size_t size = len / 4 * 3 - padding, chars = len - padding, done = 0;
	cleanup_free unsigned char *bytes = mem_alloc(size + 1);
	if (!bytes)
		return err_set(reterr, CORDON_NOMEM, "base64: out of memory");
	uint32_t bits = 0;
	int have = 0;
	for (size_t i = 0; i < chars; i++) {
		int v = value_of(text[i]);
		if (v < 0)
			return err_set(reterr, CORDON_INVALID,
				       "base64: character %zu is not in the alphabet", i + 1);
		bits = bits << 6 | (uint32_t)v;
		have += 6;
		if (have >= 8) {
			have -= 8;
			bytes[done++] = (unsigned char)(bits >> have);
		}
	}
	if (bits & ((1u << have) - 1))
		return err_set(reterr, CORDON_INVALID, "base64: stray bits before the padding");
	*ret = TAKE_PTR(bytes);
	*ret_len = size;
	return 0;
}
