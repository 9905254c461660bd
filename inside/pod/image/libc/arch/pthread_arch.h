/* inside/pod/image/libc/arch/pthread_arch.h - the thread pointer: a variable, for there is one
 * thread. */
extern hidden uintptr_t __pod_thread;
static inline uintptr_t __get_tp()
{
	return __pod_thread;
}
#define MC_PC __space[0]
