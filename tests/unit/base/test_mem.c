/* unit/base/test_mem.c - overflow-checked allocation. */
#include "base/mem.h"
#include "harness/test.h"

#include <stdint.h>

TEST(memory_is_zeroed_and_never_null_for_nothing)
{
	unsigned char *p = mem_alloc(64), *none = mem_alloc(0), *array = mem_array(0, 8);
	for (int i = 0; i < 64; i++)
		ASSERT_EQ(p[i], 0);
	ASSERT(none && array);
	free(p);
	free(none);
	free(array);
}

TEST(counts_that_overflow_are_refused)
{
	volatile size_t half = SIZE_MAX / 2;
	char *p = mem_alloc(8);

	ASSERT(!mem_array(half, 3));
	ASSERT(!mem_grow(p, half, 3));
	strcpy(p, "kept");
	ASSERT_STREQ(p, "kept");
	free(p);
}

TEST(growing_keeps_the_bytes)
{
	char *p = mem_dup("abc", 4);
	p = mem_grow(p, 1000, 3);
	ASSERT_STREQ(p, "abc");
	free(p);
}

TEST(sums_and_products_say_when_they_do_not_fit)
{
	size_t r = 7;

	ASSERT(!size_add(SIZE_MAX, 1, &r) && r == 7);
	ASSERT(!size_mul(SIZE_MAX / 2, 3, &r) && r == 7);
	ASSERT(size_add(SIZE_MAX - 1, 1, &r) && r == SIZE_MAX);
	ASSERT(size_mul(6, 7, &r) && r == 42);
}
