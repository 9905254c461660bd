/* inside/pod/runtime/door_time.c - clocks, sleep and interval timers. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/door.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "inside/pod/runtime/guest_layout.h"
#include "inside/pod/runtime/signals.h"

static bool is_clock(int clock)
{
	/* Not dynamic clocks: a negative id names another process or a device. */
	return clock >= CLOCK_REALTIME && clock <= CLOCK_TAI;
}

DOOR_FN(clock_gettime)
{
	struct timespec *out = guest_at(p, a[1], sizeof *out);

	if (!is_clock(guest_int(a[0])))
		return -EINVAL;
	return out ? DOOR_RET(clock_gettime(guest_int(a[0]), out)) : -EFAULT;
}

DOOR_FN(clock_getres)
{
	void *out;

	if (!is_clock(guest_int(a[0])))
		return -EINVAL;
	if (!guest_opt(p, a[1], sizeof(struct timespec), &out))
		return -EFAULT;
	return DOOR_RET(clock_getres(guest_int(a[0]), out));
}

DOOR_FN(gettimeofday)
{
	struct timeval *out = guest_at(p, a[0], sizeof *out);

	return out ? DOOR_RET(gettimeofday(out, NULL)) : -EFAULT;
}

DOOR_FN(time)
{
	(void)p;
	(void)a;
	return time(NULL);
}

static int64_t sleep_for(struct w2c_sys *p, int clock, int flags, uint64_t in, uint64_t out)
{
	struct timespec ts;
	void *left;

	if (guest_timespec(p, in, &ts) != 1 || !guest_opt(p, out, sizeof ts, &left))
		return -EFAULT;
	return signals_call(SYS_clock_nanosleep, clock, flags, (long)&ts, (long)left, 0, 0);
}

DOOR_FN(nanosleep)
{
	return sleep_for(p, CLOCK_MONOTONIC, 0, a[0], a[1]);
}

DOOR_FN(clock_nanosleep)
{
	if (!is_clock(guest_int(a[0])) || (guest_int(a[1]) & ~TIMER_ABSTIME))
		return -EINVAL;
	return sleep_for(p, guest_int(a[0]), guest_int(a[1]), a[2], a[3]);
}

DOOR_FN(alarm)
{
	(void)p;
	return alarm((unsigned)a[0]);
}

/* The guest's struct is the kernel's: all its fields are 64 bits wide. */
DOOR_FN(getitimer)
{
	struct itimerval *out = guest_at(p, a[1], sizeof *out);

	return out ? DOOR_RET(getitimer(guest_int(a[0]), out)) : -EFAULT;
}

DOOR_FN(setitimer)
{
	struct itimerval *in = guest_at(p, a[1], sizeof *in);
	void *out;

	if (!in || !guest_opt(p, a[2], sizeof *in, &out))
		return -EFAULT;
	return DOOR_RET(setitimer(guest_int(a[0]), in, out));
}
