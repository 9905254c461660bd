/* tests/pod/wasi/crash.c - ends in the way that its first argument names. */
#include "preview1.h"

static volatile u32 sink, zero;
static u32 (*volatile wrong)(u64, u64);
static char strings[4096];
static u32 at[64];

static u32 deep(u32 depth)
{
	volatile u8 frame[256];

	frame[depth % 256] = (u8)depth;
	return depth == 0xffffffff ? 0 : deep(depth + 1) + frame[depth % 256];
}

/* Without a frame in the module's own stack: the native one ends first. */
static u32 endless(u32 depth)
{
	return sink == 1 ? 0 : endless(depth + sink) + sink;
}

static u32 plain(u32 x)
{
	return x + sink;
}

static void grow(void)
{
	u32 pages = 0;

	while (__builtin_wasm_memory_grow(0, 16) != (unsigned long)-1)
		pages += 16;
	say_number(pages / 16);
	say(" MiB and no more\n");
	/* All of it may be used. */
	for (u32 page = 0; page < __builtin_wasm_memory_size(0); page++)
		*(volatile u8 *)(page * 65536) = *(volatile u8 *)(page * 65536);
}

void _start(void)
{
	u32 count, bytes;

	args_sizes_get(P(&count), P(&bytes));
	if (count < 2 || count > 64 || bytes > sizeof strings || args_get(P(at), P(strings)))
		proc_exit(9);
	switch (((char *)at[1])[0]) {
	case 'l': /* loop */
		for (;;)
			sink++;
	case 'r': /* recursion */
		sink = deep(0);
		break;
	case 'n': /* native recursion */
		sink = endless(1);
		break;
	case 'g': /* grow */
		grow();
		break;
	case 'o': /* out of bounds */
		sink = *(volatile u32 *)0xfffffff0;
		break;
	case 'd': /* division */
		sink = sink / zero;
		break;
	case 'u':
		__builtin_trap();
	case 'i': /* indirect call of the wrong type */
		wrong = (u32(*)(u64, u64))(u32)plain;
		sink = wrong(1, 2);
		break;
	case 'e': /* exit with what follows */
		proc_exit((u32)(((char *)at[1])[1] - '0'));
	default:
		break;
	}
	say("still here\n");
}
