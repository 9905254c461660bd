/* inside/pod/image/libc/src/process.c - clone as fork, and the threads that there are not. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "door.h"
#include "pthread_impl.h"
#include "syscall.h"

/* posix_spawn's child shares memory until it execs; a copy is a correct substitute, because
 * it reports its errors over a pipe. */
hidden int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	int pid = __pod_syscall(SYS_fork, 0, 0, 0, 0, 0, 0);

	if (pid == 0)
		_exit(fn(arg));
	return pid;
}

hidden void __unmapself(void *base, size_t size)
{
	__builtin_trap();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return EAGAIN;
}

_Noreturn void pthread_exit(void *result)
{
	_exit(0);
}

void __tl_lock(void)
{
}

void __tl_unlock(void)
{
}

void __tl_sync(pthread_t thread)
{
}

hidden void __do_cleanup_push(struct __ptcb *cb)
{
}

hidden void __do_cleanup_pop(struct __ptcb *cb)
{
}

int pthread_join(pthread_t thread, void **result)
{
	return ESRCH;
}

int pthread_detach(pthread_t thread)
{
	return ESRCH;
}

/* "In every thread." */
hidden void __synccall(void (*fn)(void *), void *arg)
{
	fn(arg);
}
