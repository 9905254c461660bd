/* inside/pod/runtime/wasm-rt.h - what the C that wasm2c 1.0.39 writes expects of its runtime. */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__linux__) || !defined(__x86_64__)
#error "the pod's runtime knows only Linux on x86-64"
#endif

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define wasm_rt_memcpy __builtin_memcpy

/* The switches the generated code asks for: guard pages instead of compares, the native stack's
 * own guard instead of a depth counter, no segment registers. */
#define WABT_BIG_ENDIAN 0
#define WASM_RT_MEMCHECK_GUARD_PAGES 1
#define WASM_RT_STACK_DEPTH_COUNT 0
#define WASM_RT_SANITY_CHECKS 0
#define WASM_RT_USE_SEGUE 0

typedef enum {
	WASM_RT_TRAP_NONE,
	WASM_RT_TRAP_OOB,
	WASM_RT_TRAP_INT_OVERFLOW,
	WASM_RT_TRAP_DIV_BY_ZERO,
	WASM_RT_TRAP_INVALID_CONVERSION,
	WASM_RT_TRAP_UNREACHABLE,
	WASM_RT_TRAP_CALL_INDIRECT,
	WASM_RT_TRAP_UNCAUGHT_EXCEPTION,
	WASM_RT_TRAP_UNALIGNED,
	WASM_RT_TRAP_EXHAUSTION,
	WASM_RT_TRAP_NULL_REF,
} wasm_rt_trap_t;

typedef enum {
	WASM_RT_I32,
	WASM_RT_I64,
	WASM_RT_F32,
	WASM_RT_F64,
	WASM_RT_V128,
	WASM_RT_FUNCREF,
	WASM_RT_EXTERNREF,
	WASM_RT_EXNREF,
} wasm_rt_type_t;

typedef const char *wasm_rt_func_type_t; /* 32-byte digest of the signature */
typedef void (*wasm_rt_function_ptr_t)(void);
typedef struct wasm_rt_tailcallee_t {
	void (*fn)(void **instance, void *stack, struct wasm_rt_tailcallee_t *next);
} wasm_rt_tailcallee_t;

typedef struct { /* the order is fixed by the generated compound literals */
	wasm_rt_func_type_t func_type;
	wasm_rt_function_ptr_t func;
	wasm_rt_tailcallee_t func_tailcallee;
	void *module_instance;
} wasm_rt_funcref_t;

typedef void *wasm_rt_externref_t;
static const wasm_rt_funcref_t wasm_rt_funcref_null_value;
static const wasm_rt_externref_t wasm_rt_externref_null_value; /* NOLINT: the translator's name */

typedef struct {
	uint8_t *data;
	uint64_t pages, max_pages; /* of 64 KiB */
	uint64_t size;             /* bytes */
} wasm_rt_memory_t;

typedef struct {
	wasm_rt_funcref_t *data;
	uint32_t max_size, size;
} wasm_rt_funcref_table_t;

typedef struct {
	wasm_rt_externref_t *data;
	uint32_t max_size, size;
} wasm_rt_externref_table_t;

bool wasm_rt_is_initialized(void);
__attribute__((noreturn, cold)) void wasm_rt_trap(wasm_rt_trap_t trap);
void wasm_rt_allocate_memory(wasm_rt_memory_t *memory, uint64_t pages, uint64_t max_pages,
			     bool is64, uint32_t page_size);
uint64_t wasm_rt_grow_memory(wasm_rt_memory_t *memory, uint64_t delta); /* old pages or 2^32-1 */
void wasm_rt_free_memory(wasm_rt_memory_t *memory);
void wasm_rt_allocate_funcref_table(wasm_rt_funcref_table_t *table, uint32_t n, uint32_t max);
void wasm_rt_free_funcref_table(wasm_rt_funcref_table_t *table);

/* The innermost try block; NULL where a throw would leave the module. */
extern jmp_buf *wasm_rt_unwind_top;
