/* base/random.c - see random.h. */
#include "base/random.h"

#include "base/os.h"

void random_bytes(void *ret, size_t len)
{
	os_random(ret, len);
}

static const char digits[] = "0123456789abcdef";

void random_hex(char *ret, size_t len)
{
	random_bytes(ret, len);
	for (size_t i = 0; i < len; i++)
		ret[i] = digits[(unsigned char)ret[i] & 15];
	ret[len] = '\0';
}

int random_equal(const void *a, const void *b, size_t len)
{
	const volatile unsigned char *x = a, *y = b;
	unsigned char differ = 0;

	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(x[i] ^ y[i]);
	return differ == 0;
}

void hex_encode(char *ret, const void *bytes, size_t len)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < len; i++) {
		ret[2 * i] = digits[b[i] >> 4];
		ret[2 * i + 1] = digits[b[i] & 15];
	}
	ret[2 * len] = '\0';
}
