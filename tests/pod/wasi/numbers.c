/* tests/pod/wasi/numbers.c - operations on numbers that compilers emit and whose translation uses a
 * C library or gcc's builtins: bit counts, rounding, conversions, copies. */
#include "preview1.h"

typedef int i32;
typedef long long i64;

/* The compiler may not know them, or it would compute the answers itself. */
static volatile u32 w = 0x00f0f001;
static volatile u64 d = 0x0123456789abcdefull;
static volatile float f = -2.5f, g = 1.25f;
static volatile double x = -7.75, y = 3.5, huge = 1e300;
static volatile i64 least = (i64)(1ull << 63);
static char from[300], to[300];

static void bits(void)
{
	check("popcount of 32 bits", __builtin_popcount(w) == 9);
	check("popcount of 64 bits", __builtin_popcountll(d) == 32);
	check("leading zeros", __builtin_clz(w) == 8 && __builtin_clzll(d) == 7);
	check("trailing zeros", __builtin_ctz(w) == 0 && __builtin_ctzll(d << 9) == 9);
	check("rotations", __builtin_rotateleft32(w, 8) == 0xf0f00100 &&
				   __builtin_rotateright64(d, 4) == 0xf0123456789abcdeull);
	check("sign extension", (i64)(signed char)d == -17 && (i64)(short)d == -12817 &&
					(i64)(i32)d == -1985229329ll);
	check("division", (i64)d / -1000 == -81985529216486ll && d % 1000 == 895 &&
				  least / 2 == -4611686018427387904ll);
}

static void rounding(void)
{
	check("ceil and floor", __builtin_ceil(x) == -7 && __builtin_floor(x) == -8 &&
					__builtin_ceilf(f) == -2 && __builtin_floorf(f) == -3);
	check("trunc and rint", __builtin_trunc(x) == -7 && __builtin_rint(y) == 4 &&
					__builtin_truncf(f) == -2 && __builtin_rintf(f) == -2);
	check("abs and copysign", __builtin_fabs(x) == 7.75 && __builtin_fabsf(f) == 2.5f &&
					  __builtin_copysign(y, x) == -3.5 &&
					  __builtin_copysignf(g, f) == -1.25f);
	check("square roots", __builtin_sqrt(y * y) == 3.5 && __builtin_sqrtf(g * g) == 1.25f);
	check("min and max",
	      __builtin_wasm_min_f64(x, y) == x && __builtin_wasm_max_f64(x, y) == y &&
		      __builtin_wasm_min_f32(f, g) == f && __builtin_wasm_max_f32(f, g) == g);
}

static void conversions(void)
{
	check("to integers", (i32)x == -7 && (i64)x == -7 && (u32)y == 3 && (u64)y == 3 &&
				     (i32)f == -2 && (i64)f == -2 && (u32)g == 1 && (u64)g == 1);
	check("saturating", __builtin_wasm_trunc_saturate_s_i32_f64(huge) == 0x7fffffff &&
				    __builtin_wasm_trunc_saturate_u_i64_f64(huge) == ~0ull &&
				    __builtin_wasm_trunc_saturate_u_i64_f32(f) == 0);
	check("from integers", (double)d == 81985529216486895.0 && (double)(i64)least == -0x1p63 &&
				       (float)w == 15790081.0f && (double)(u64)least == 0x1p63);
	check("of each other", (float)huge > 1e38f && (double)g == 1.25);
}

static void memory(void)
{
	for (u32 i = 0; i < sizeof from; i++)
		from[i] = (char)i;
	__builtin_memcpy(to, from, w & 0xff ? sizeof to : 0);
	__builtin_memmove(to + 1, to, sizeof to - (w & 1));
	__builtin_memset(to + 10, 7, w & 0xf);
	check("copies and fills",
	      to[0] == 0 && to[1] == 0 && to[2] == 1 && to[10] == 7 && to[299] == 42);
}

void _start(void)
{
	bits();
	rounding();
	conversions();
	memory();
	proc_exit(failures != 0);
}
