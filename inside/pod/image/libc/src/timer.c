/* inside/pod/image/libc/src/timer.c - interval timers, whose layout is the kernel's own here. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "syscall.h"

int setitimer(int which, const struct itimerval *restrict set, struct itimerval *restrict old)
{
	return syscall(SYS_setitimer, which, set, old);
}

int getitimer(int which, struct itimerval *old)
{
	return syscall(SYS_getitimer, which, old);
}

/* Timers by id need a thread or a signal queue; callers fall back to setitimer or alarm. */
int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict ret)
{
	errno = ENOSYS;
	return -1;
}
