/* inside/pod/image/libc/src/string.c - what programs search and compare by, eight bytes at a time.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>

#include "features.h"

/* musl's own go by the machine's word, which is half of what the engine's is, or by the byte. */
typedef uint64_t __attribute__((__may_alias__, __aligned__(1))) word;

#define ONES 0x0101010101010101ull
#define HIGHS 0x8080808080808080ull
/* The lowest bit set is that of the first byte that is zero; above it may be more. */
#define ZEROES(x) (((x)-ONES) & ~(x)&HIGHS)
/* Of the bytes of a word, as bits: where the first is that has one set. */
#define FIRST(x) (__builtin_ctzll(x) & 56)
#define BYTE(x, k) ((int)((x) >> (k)&255))

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *l = a, *r = b;

	for (; n >= 8; n -= 8, l += 8, r += 8) {
		uint64_t x = *(const word *)l, y = *(const word *)r;

		if (x != y) {
			int k = FIRST(x ^ y);

			return BYTE(x, k) - BYTE(y, k);
		}
	}
	for (; n; n--, l++, r++)
		if (*l != *r)
			return *l - *r;
	return 0;
}

void *memchr(const void *from, int c, size_t n)
{
	const unsigned char *s = from;
	uint64_t k = ONES * (unsigned char)c;

	for (; n >= 8; n -= 8, s += 8) {
		uint64_t x = *(const word *)s ^ k, zeroes = ZEROES(x);

		if (zeroes)
			return (void *)(s + FIRST(zeroes) / 8);
	}
	for (; n; n--, s++)
		if (*s == (unsigned char)c)
			return (void *)s;
	return 0;
}

void *__memrchr(const void *from, int c, size_t n)
{
	const unsigned char *s = from;
	uint64_t k = ONES * (unsigned char)c;

	for (; n >= 8; n -= 8) {
		uint64_t x = *(const word *)(s + n - 8) ^ k;

		if (ZEROES(x))
			break;
	}
	while (n--)
		if (s[n] == (unsigned char)c)
			return (void *)(s + n);
	return 0;
}
weak_alias(__memrchr, memrchr);

/* A word that is aligned lies in memory if one byte of it does. What comes before the string in the
 * first one is made to look like nothing of interest. */
#define ALIGNED(s) ((const word *)((uintptr_t)(s) & ~(uintptr_t)7))
#define BEFORE(s) ((1ull << 8 * ((uintptr_t)(s)&7)) - 1)

size_t strlen(const char *s)
{
	const word *at = ALIGNED(s);
	uint64_t zeroes, x = *at | BEFORE(s);

	while (!(zeroes = ZEROES(x)))
		x = *++at;
	return (const char *)at + FIRST(zeroes) / 8 - s;
}

char *__strchrnul(const char *s, int c)
{
	const word *at = ALIGNED(s);
	uint64_t k = ONES * (unsigned char)c, x = *at | BEFORE(s), y = (*at ^ k) | BEFORE(s), found;

	while (!(found = ZEROES(x) | ZEROES(y))) {
		x = *++at;
		y = x ^ k;
	}
	return (char *)at + FIRST(found) / 8;
}
weak_alias(__strchrnul, strchrnul);

/* Memory ends at a multiple of this: a word that does not cross one may be read. */
#define CROSSES(s) (((uintptr_t)(s)&4095) > 4088)

int strcmp(const char *l, const char *r)
{
	for (;;) {
		if (CROSSES(l) || CROSSES(r)) {
			if (*l != *r || !*l)
				return *(unsigned char *)l - *(unsigned char *)r;
			l++;
			r++;
			continue;
		}
		uint64_t x = *(const word *)l, y = *(const word *)r, ends = (x ^ y) | ZEROES(x);

		if (ends)
			return BYTE(x, FIRST(ends)) - BYTE(y, FIRST(ends));
		l += 8;
		r += 8;
	}
}
