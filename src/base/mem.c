/* base/mem.c - see mem.h. */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

bool mem_fault(void)
{
	return mem_fault_hook && mem_fault_hook();
}

void *mem_alloc(size_t size)
{
	return mem_fault() ? NULL : calloc(1, size ? size : 1);
}

void *mem_array(size_t count, size_t size)
{
	size_t total;

	return size_mul(count, size, &total) ? mem_alloc(total) : NULL;
}

void *mem_grow(void *p, size_t count, size_t size)
{
	size_t total;

	if (!size_mul(count, size, &total) || mem_fault())
		return NULL;
	return realloc(p, total ? total : 1);
}

void *mem_dup(const void *p, size_t size)
{
	if (mem_fault())
		return NULL;
	void *copy = malloc(size ? size : 1);
	if (copy && size)
		memcpy(copy, p, size);
	return copy;
}

bool size_add(size_t a, size_t b, size_t *ret)
{
	size_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*ret = sum;
	return true;
}

bool size_mul(size_t a, size_t b, size_t *ret)
{
	size_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*ret = product;
	return true;
}
