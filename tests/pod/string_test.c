/* tests/pod/string_test.c - compares the pod libc's search and comparison functions with this
 * machine's, at the ends of memory. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The file itself, under other names, as it is compiled for the pod. */
#undef _GNU_SOURCE
#define weak_alias(old, new)
#define memcmp pod_memcmp
#define memchr pod_memchr
#define __memrchr pod_memrchr
#define strlen pod_strlen
#define __strchrnul pod_strchrnul
#define strcmp pod_strcmp
#include "../../inside/pod/image/libc/src/string.c"
#undef memcmp
#undef memchr
#undef strlen
#undef strcmp

static int count, failed;

static void check(const char *what, int ok)
{
	failed += !ok;
	printf("%s %d - %s\n", ok ? "ok" : "not ok", ++count, what);
}

static int sign(int n)
{
	return (n > 0) - (n < 0);
}

enum { PAGE = 4096, ROUNDS = 300000 };

/* Two pages that nothing follows: whoever reads on meets the guard. */
static unsigned char *pages(void)
{
	unsigned char *at =
		mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at + 2 * PAGE, PAGE, PROT_NONE))
		exit(99);
	return at;
}

/* Few different bytes, so that they meet; 0x80 and 0xff among them, which carry. */
static void fill(unsigned char *at, size_t n)
{
	static const unsigned char some[] = { 1, 'a', 'b', 0x7f, 0x80, 0x81, 0xff, 0 };

	for (size_t i = 0; i < n; i++)
		at[i] = some[(unsigned)random() % (random() % 8 ? 3 : 8)];
}

int main(void)
{
	unsigned char *a = pages(), *b = pages();
	int ok[6] = { 1, 1, 1, 1, 1, 1 };

	srandom(1);
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = (size_t)random() % 70, m = (size_t)random() % 70;
		/* Half of them end where memory does. */
		unsigned char *l = a + 2 * PAGE - n - (random() % 2 ? 0 : (size_t)random() % 4000);
		unsigned char *r = b + 2 * PAGE - m - (random() % 2 ? 0 : (size_t)random() % 4000);
		size_t both = n < m ? n : m;
		int c = random() % 4 ? "a\x80\xff\1"[random() % 4] : 0;

		fill(l, n);
		fill(r, m);
		if (random() % 2)
			memcpy(r, l, both);
		ok[0] &= sign(pod_memcmp(l, r, both)) == sign(memcmp(l, r, both));
		ok[1] &= pod_memchr(l, c, n) == memchr(l, c, n);
		ok[2] &= pod_memrchr(l, c, n) == memrchr(l, c, n);
		if (!n || !m)
			continue;
		l[n - 1] = r[m - 1] = 0;
		ok[3] &= pod_strlen((char *)l) == strlen((char *)l);
		ok[4] &= pod_strchrnul((char *)l, c) == strchrnul((char *)l, c);
		ok[5] &= sign(pod_strcmp((char *)l, (char *)r)) ==
			 sign(strcmp((char *)l, (char *)r));
	}
	check("memcmp", ok[0]);
	check("memchr", ok[1]);
	check("memrchr", ok[2]);
	check("strlen", ok[3]);
	check("strchrnul", ok[4]);
	check("strcmp", ok[5]);
	printf("1..%d\n", count);
	return failed != 0;
}
