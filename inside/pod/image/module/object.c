/* inside/pod/image/module/object.c - what an added command has around its translated module: a head
 * for the loader, and every function it calls as one of the host's. Compiled with the module. */
#include "module.h"
#include "translated.h"

#include "imports.h"

static w2c_module instance;
static const struct module_host *host;

static void enter(struct w2c_sys *p, wasm_rt_memory_t **ret_memory, const struct module_host *with)
{
	host = with;
	*ret_memory = w2c_module_memory(&instance);
#if HAS_IMPORTS
	wasm2c_module_instantiate(&instance, (void *)p);
#else
	(void)p;
	wasm2c_module_instantiate(&instance);
#endif
	host->seal();
	w2c_module_0x5Fstart(&instance);
}

const struct module_head module_head = { MODULE_MAGIC, MODULE_ABI, sizeof module_head, enter };

bool wasm_rt_is_initialized(void)
{
	return true;
}

void wasm_rt_trap(wasm_rt_trap_t trap)
{
	host->trap(trap);
	__builtin_trap();
}

void wasm_rt_allocate_memory(wasm_rt_memory_t *memory, uint64_t pages, uint64_t max_pages,
			     bool is64, uint32_t page_size)
{
	host->allocate_memory(memory, pages, max_pages, is64, page_size);
}

uint64_t wasm_rt_grow_memory(wasm_rt_memory_t *memory, uint64_t delta)
{
	return host->grow_memory(memory, delta);
}

void wasm_rt_free_memory(wasm_rt_memory_t *memory)
{
	host->free_memory(memory);
}

void wasm_rt_allocate_funcref_table(wasm_rt_funcref_table_t *table, uint32_t n, uint32_t max)
{
	host->allocate_table(table, n, max);
}

void wasm_rt_free_funcref_table(wasm_rt_funcref_table_t *table)
{
	host->free_table(table);
}

void *memcpy(void *to, const void *from, size_t n)
{
	return host->memcpy(to, from, n);
}

void *memmove(void *to, const void *from, size_t n)
{
	return host->memmove(to, from, n);
}

void *memset(void *to, int value, size_t n)
{
	return host->memset(to, value, n);
}

int memcmp(const void *a, const void *b, size_t n)
{
	return host->memcmp(a, b, n);
}

#define MATH(name, i)                                                                              \
	double name(double x)                                                                      \
	{                                                                                          \
		return host->math[i](x);                                                           \
	}                                                                                          \
	float name##f(float x)                                                                     \
	{                                                                                          \
		return host->mathf[i](x);                                                          \
	}
MATH(ceil, 0)
MATH(floor, 1)
MATH(trunc, 2)
MATH(nearbyint, 3)
MATH(sqrt, 4)

/* What is an instruction or two needs nobody. */
double fabs(double x)
{
	return __builtin_fabs(x);
}

float fabsf(float x)
{
	return __builtin_fabsf(x);
}

double copysign(double x, double y)
{
	return __builtin_copysign(x, y);
}

float copysignf(float x, float y)
{
	return __builtin_copysignf(x, y);
}

/* Generated: one function for each import of the module. */
#define OBJECT_IMPORTS
#undef HAS_IMPORTS
#include "imports.h"
