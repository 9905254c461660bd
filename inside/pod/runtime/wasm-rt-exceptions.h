/* inside/pod/runtime/wasm-rt-exceptions.h - exceptions of translated modules: a chain of jump
 * buffers. */
#pragma once

#include "inside/pod/runtime/wasm-rt.h"

typedef const void *wasm_rt_tag_t; /* the address of the module's tag object */

#define WASM_RT_EXCEPTION_MAX 256
typedef struct {
	wasm_rt_tag_t tag; /* NULL: the null reference */
	uint32_t size;
	uint8_t data[WASM_RT_EXCEPTION_MAX];
} wasm_rt_exnref_t;
static const wasm_rt_exnref_t wasm_rt_exnref_null_value;

#define WASM_RT_UNWIND_TARGET jmp_buf
#define wasm_rt_try(target) _setjmp(target) /* without the signal mask: no system call */

static inline jmp_buf *wasm_rt_get_unwind_target(void)
{
	return wasm_rt_unwind_top;
}

static inline void wasm_rt_set_unwind_target(jmp_buf *target)
{
	wasm_rt_unwind_top = target;
}

void wasm_rt_load_exception(wasm_rt_tag_t tag, uint32_t size, const void *values);
__attribute__((noreturn, cold)) void wasm_rt_throw(void);
wasm_rt_tag_t wasm_rt_exception_tag(void);
uint32_t wasm_rt_exception_size(void);
void *wasm_rt_exception(void);
