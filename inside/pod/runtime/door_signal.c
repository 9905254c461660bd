/* inside/pod/runtime/door_signal.c - signal masks, waiting for signals, and their actions. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/door.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "inside/pod/runtime/guest_layout.h"
#include "inside/pod/runtime/jobs.h"
#include "inside/pod/runtime/signals.h"

/* Signals that the guest cannot block. If a fault of its own code were blocked, the kernel would
 * kill it without a message. One further signal belongs to the runtime. */
#define FAULTS                                                                                     \
	(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGILL - 1) |                     \
	 1ull << (SIGFPE - 1) | JOBS_SIGNAL_BIT)

DOOR_FN(rt_sigprocmask)
{
	void *in, *out;
	uint64_t set;

	if (!guest_opt(p, a[1], 8, &in) || !guest_opt(p, a[2], 8, &out))
		return -EFAULT;
	if (in) {
		memcpy(&set, in, sizeof set);
		if (guest_int(a[0]) != SIG_UNBLOCK)
			set &= ~FAULTS;
	}
	return DOOR_RET(syscall(SYS_rt_sigprocmask, guest_int(a[0]), in ? &set : NULL, out, 8));
}

DOOR_FN(rt_sigpending)
{
	void *out = guest_at(p, a[0], 8);

	return out ? DOOR_RET(syscall(SYS_rt_sigpending, out, 8)) : -EFAULT;
}

DOOR_FN(rt_sigsuspend)
{
	uint64_t *in = guest_at(p, a[0], sizeof *in), set;

	if (!in)
		return -EFAULT;
	memcpy(&set, in, sizeof set);
	set &= ~FAULTS;
	return signals_call(SYS_rt_sigsuspend, (long)&set, 8, 0, 0, 0, 0);
}

DOOR_FN(rt_sigtimedwait)
{
	uint64_t *in = guest_at(p, a[0], sizeof *in), set;
	struct timespec ts;
	siginfo_t info;
	int32_t *out;
	void *at;
	int64_t r;
	int timed = guest_timespec(p, a[2], &ts);

	if (!in || timed < 0 || !guest_opt(p, a[1], 128, &at))
		return -EFAULT;
	memcpy(&set, in, sizeof set);
	set &= ~JOBS_SIGNAL_BIT;
	r = signals_call(SYS_rt_sigtimedwait, (long)&set, (long)&info, timed ? (long)&ts : 0, 8, 0,
			 0);
	out = at;
	if (r > 0 && out) {
		memset(out, 0, 128);
		out[0] = info.si_signo;
		out[1] = info.si_errno;
		out[2] = info.si_code;
		out[3] = info.si_pid;
		out[4] = (int32_t)info.si_uid;
		out[5] = info.si_status;
	}
	return r;
}

DOOR_FN(pause)
{
	(void)p;
	(void)a;
	return signals_call(SYS_pause, 0, 0, 0, 0, 0, 0);
}

DOOR_FN(sigaltstack)
{
	uint32_t *out;
	void *at;

	if (!guest_opt(p, a[0], 12, &at) || !guest_opt(p, a[1], 12, &at))
		return -EFAULT;
	out = at;
	if (out) {
		out[0] = out[2] = 0;
		out[1] = SS_DISABLE;
	}
	return 0;
}

DOOR_FN(own_signals)
{
	struct signal_area *area = guest_at(p, a[0], sizeof *area);

	if (!area || a[0] % 8)
		return -EFAULT;
	signals_attach(area);
	return 0;
}

DOOR_FN(own_sigaction)
{
	(void)p;
	if (a[1] > SIGNAL_ASK)
		return -EINVAL;
	return signals_action(guest_int(a[0]), (enum signal_how)a[1], a[2]);
}

DOOR_FN(own_take)
{
	struct signal_arrival *out = guest_at(p, a[1], sizeof *out);

	return out ? signals_take(a[0], out) : -EFAULT;
}
