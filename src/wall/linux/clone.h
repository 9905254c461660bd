/* wall/linux/clone.h - clone3(2) with a separate stack; the C library has no wrapper for that. */
#pragma once

#include <errno.h>
#include <sys/syscall.h>

#include "wall/linux/kernel.h"

/* Runs fn(arg) in the new process, whose exit status is what fn returns. The child's pid, or
 * -errno. */
static inline long clone_on_stack(struct clone3_args *args, int (*fn)(void *), void *arg)
{
#ifdef __x86_64__
	long ret;
	register int (*r12)(void *) __asm__("r12") = fn;
	register void *r13 __asm__("r13") = arg;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r13, %%rdi\n\t"
			 "call *%%r12\n\t"
			 "mov %%eax, %%edi\n\t"
			 "mov $60, %%eax\n\t"
			 "syscall\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone3), "D"(args), "S"(sizeof(*args)), "r"(r12), "r"(r13)
			 : "rcx", "r11", "memory");
	return ret;
#else
	(void)args, (void)fn, (void)arg;
	return -ENOSYS;
#endif
}
