/* base/mem.h - allocation with overflow checks; test builds can make the n-th one fail. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* All return zeroed memory; NULL: out of memory, or count * size overflows. */
void *mem_alloc(size_t size);
void *mem_array(size_t count, size_t size);

/* Resizes to count * size. New bytes are not zeroed. On failure p is unchanged, and NULL is
 * returned. */
void *mem_grow(void *p, size_t count, size_t size);

void *mem_dup(const void *p, size_t size);

/* Overflow-checked arithmetic on sizes: true if the result fits and was stored. */
bool size_add(size_t a, size_t b, size_t *ret);
bool size_mul(size_t a, size_t b, size_t *ret);

/* Fault injection: if the program defines mem_fault_hook() (the test harness does) and it returns
 * true, the allocation fails. Hidden and weak: absent from the product, and a library from outside
 * cannot provide it. */
__attribute__((weak, visibility("hidden"))) bool mem_fault_hook(void);
/* For allocations that bypass this file: true if this one must fail. */
bool mem_fault(void);
