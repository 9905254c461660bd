/* inside/pod/image/libc/arch/atomic_arch.h - atomics of a process that has exactly one thread:
 * plain memory. */
#define a_cas a_cas
static inline int a_cas(volatile int *p, int expected, int value)
{
	int old = *p;

	if (old == expected)
		*p = value;
	return old;
}

#define a_cas_p a_cas_p
static inline void *a_cas_p(volatile void *p, void *expected, void *value)
{
	void *old = *(void *volatile *)p;

	if (old == expected)
		*(void *volatile *)p = value;
	return old;
}

#define a_barrier a_barrier
static inline void a_barrier()
{
	__asm__ __volatile__("" ::: "memory");
}

#define a_crash a_crash
static inline void a_crash()
{
	__builtin_trap();
}

#define a_ctz_32 a_ctz_32
static inline int a_ctz_32(uint32_t x)
{
	return __builtin_ctz(x);
}

#define a_ctz_64 a_ctz_64
static inline int a_ctz_64(uint64_t x)
{
	return __builtin_ctzll(x);
}

#define a_clz_32 a_clz_32
static inline int a_clz_32(uint32_t x)
{
	return __builtin_clz(x);
}

#define a_clz_64 a_clz_64
static inline int a_clz_64(uint64_t x)
{
	return __builtin_clzll(x);
}
