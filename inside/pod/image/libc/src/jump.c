/* inside/pod/image/libc/src/jump.c - what clang's lowering of setjmp and longjmp calls; built
 * without it. */
#include <stdint.h>

struct jump {
	void *frame;    /* the call of the function that called setjmp */
	uint32_t label; /* which setjmp in that function */
	struct {
		void *env;
		int value;
	} thrown;
};

__asm__(".globl __c_longjmp\n.tagtype __c_longjmp i32\n__c_longjmp:\n");

void __wasm_setjmp(void *env, uint32_t label, void *frame)
{
	struct jump *jump = env;

	if (!label || !frame)
		__builtin_trap();
	jump->frame = frame;
	jump->label = label;
}

uint32_t __wasm_setjmp_test(void *env, void *frame)
{
	struct jump *jump = env;

	if (!jump->label || !frame)
		__builtin_trap();
	return jump->frame == frame ? jump->label : 0;
}

void __wasm_longjmp(void *env, int value)
{
	struct jump *jump = env;

	jump->thrown.env = env;
	jump->thrown.value = value ? value : 1;
	__builtin_wasm_throw(1, &jump->thrown);
}
