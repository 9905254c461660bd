/* inside/guests/r/r_base64.c - bytes to base64 text and back. */
#include "inside/guests/r/cordon_r.h"

void base64_encode(struct bytes *b, const unsigned char *p, size_t len)
{
	static const char set[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < len; i += 3) {
		unsigned v = (unsigned)p[i] << 16 | (i + 1 < len ? (unsigned)p[i + 1] << 8 : 0) |
			     (i + 2 < len ? p[i + 2] : 0);
		char out[4] = { set[v >> 18], set[v >> 12 & 63],
				i + 1 < len ? set[v >> 6 & 63] : '=',
				i + 2 < len ? set[v & 63] : '=' };
		bytes_add(b, out, 4);
	}
}

static unsigned digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (unsigned)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (unsigned)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0') + 52;
	return c == '+' ? 62 : c == '/' ? 63 : 64;
}

size_t base64_decode(struct json v, unsigned char *ret)
{
	unsigned acc = 0, bits = 0;
	size_t n = 0;
	for (size_t i = 0; i < v.len; i++) {
		unsigned d = digit(v.at[i]);
		if (d == 64)
			continue;
		acc = acc << 6 | d;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			if (ret)
				ret[n] = (unsigned char)(acc >> bits);
			n++;
		}
	}
	return n;
}
