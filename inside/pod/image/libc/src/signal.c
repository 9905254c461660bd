/* inside/pod/image/libc/src/signal.c - system calls and the signals that arrive around them. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "door.h"
#include "ksigaction.h"
#include "syscall.h"

/* The host's native handler only notes an arrival here. Handlers of the program run when a
 * door call returns, which is where a native program would see an interrupted call too. */
struct pod_signals __pod_signals;
static struct k_sigaction actions[_NSIG];

static void run_handler(int sig, const struct k_sigaction *action, const struct pod_arrival *from)
{
	unsigned long long mask = 0, old = 0;

	memcpy(&mask, action->mask, sizeof mask);
	if (!(action->flags & SA_NODEFER))
		mask |= 1ULL << (sig - 1);
	if (action->flags & SA_RESETHAND) {
		actions[sig].handler = 0;
		__pod_door(POD_SIGACTION, sig, 0, 0, 0, 0, 0);
	}
	__pod_door(SYS_rt_sigprocmask, SIG_BLOCK, (uintptr_t)&mask, (uintptr_t)&old, 8, 0, 0);
	if (action->flags & SA_SIGINFO) {
		siginfo_t info = {
			.si_signo = sig,
			.si_code = from->code,
		};

		info.si_pid = from->pid;
		info.si_uid = from->uid;
		info.si_status = from->status;
		((void (*)(int, siginfo_t *, void *))action->handler)(sig, &info, 0);
	} else {
		action->handler(sig);
	}
	__pod_door(SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)&old, 0, 8, 0, 0);
}

/* One of these signals that has arrived, which is no longer pending then; 0: none. */
static int take(unsigned long long mask, struct pod_arrival *ret)
{
	return __pod_door(POD_TAKE, mask, (uintptr_t)ret, 0, 0, 0, 0);
}

/* True where every handler that ran asked for interrupted calls to be made again. */
static int run_pending(void)
{
	struct pod_arrival from;
	int restart = 1, sig;

	while (__pod_signals.pending && (sig = take(~0ULL, &from)) > 0) {
		struct k_sigaction action = actions[sig];

		if ((uintptr_t)action.handler <= 1)
			continue;
		if (!(action.flags & SA_RESTART))
			restart = 0;
		run_handler(sig, &action, &from);
	}
	return restart;
}

/* In a resumed copy the host knows of no handler; what the parent ignored stays ignored. */
void __pod_resume_signals(void)
{
	__pod_signals.pending = 0;
	for (int sig = 1; sig < _NSIG; sig++) {
		uintptr_t how = (uintptr_t)actions[sig].handler;

		if (__pod_door(POD_SIGACTION, sig, 3, 0, 0, 0, 0) == 1)
			actions[sig].handler = SIG_IGN;
		else if (how)
			__pod_door(POD_SIGACTION, sig, how > 1 ? 2 : 1, actions[sig].flags, 0, 0,
				   0);
	}
}

void __pod_poll(void)
{
	if (__builtin_expect(__pod_signals.pending != 0, 0))
		run_pending();
}

static int set_action(int sig, const struct k_sigaction *set, struct k_sigaction *old)
{
	struct k_sigaction before;
	struct pod_arrival from;
	int r;

	if (sig < 1 || sig >= _NSIG)
		return -EINVAL;
	before = actions[sig];
	/* Ignored since before this program started. */
	if (old && !before.handler && __pod_door(POD_SIGACTION, sig, 3, 0, 0, 0, 0) == 1)
		before.handler = SIG_IGN;
	if (set) {
		uintptr_t how = (uintptr_t)set->handler;

		/* The entry is there before the first arrival can be. */
		actions[sig] = *set;
		r = __pod_door(POD_SIGACTION, sig, how > 1 ? 2 : how, set->flags, 0, 0, 0);
		if (r < 0) {
			actions[sig] = before;
			return r;
		}
		/* What came before the change is the old handler's. */
		if ((uintptr_t)before.handler > 1 && __pod_signals.pending & 1ULL << (sig - 1) &&
		    take(1ULL << (sig - 1), &from) > 0)
			run_handler(sig, &before, &from);
	} else {
		r = __pod_door(POD_SIGACTION, sig, 3, 0, 0, 0, 0);
		if (r < 0)
			return r;
		/* Ignored since before this program started. */
		if (r == 1 && !before.handler)
			before.handler = SIG_IGN;
	}
	if (old)
		*old = before;
	return 0;
}

/* These report an interruption even where the handler asked for restarts, as on Linux. */
static int never_restarts(long long n)
{
	switch (n) {
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_pause:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return 1;
	default:
		return 0;
	}
}

long long __pod_syscall(long long n, long long a, long long b, long long c, long long d,
			long long e, long long f)
{
	if (n == SYS_rt_sigaction)
		return set_action(a, (void *)(uintptr_t)b, (void *)(uintptr_t)c);
	/* An arrival from before a change of the mask belongs to the old mask. */
	if (n == SYS_rt_sigprocmask)
		__pod_poll();
	for (;;) {
		long long r = __pod_door(n, a, b, c, d, e, f);

		if (__builtin_expect(__pod_signals.pending == 0, 1))
			return r;
		/* exec is interrupted only so that nothing is lost with the program. */
		if (run_pending() | (n == SYS_execve) && r == -EINTR && !never_restarts(n))
			continue;
		return r;
	}
}

long __syscall_cp_c(syscall_arg_t n, syscall_arg_t a, syscall_arg_t b, syscall_arg_t c,
		    syscall_arg_t d, syscall_arg_t e, syscall_arg_t f)
{
	return (long)__pod_syscall(n, a, b, c, d, e, f);
}

/* setjmp.h makes macros of sigsetjmp and siglongjmp: the compiler lowers the jump itself,
 * and can do so only where the call is spelled setjmp. Here is the half about the mask. */
void __pod_save_mask(struct __jmp_buf_tag *buf, int save)
{
	buf->__fl = save;
	if (save)
		__pod_syscall(SYS_rt_sigprocmask, SIG_SETMASK, 0, (uintptr_t)buf->__ss, 8, 0, 0);
}

void __pod_restore_mask(struct __jmp_buf_tag *buf)
{
	if (buf->__fl)
		__pod_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)buf->__ss, 0, 8, 0, 0);
}

/* Offsets are wider than the long that system calls return elsewhere. */
off_t __lseek(int fd, off_t offset, int whence)
{
	long long r = __pod_syscall(SYS_lseek, fd, offset, whence, 0, 0, 0);

	if (r < 0) {
		errno = -r;
		return -1;
	}
	return r;
}
weak_alias(__lseek, lseek);

#undef syscall
long syscall(long n, ...)
{
	va_list ap;
	unsigned long v[6];

	va_start(ap, n);
	for (int i = 0; i < 6; i++)
		v[i] = va_arg(ap, unsigned long);
	va_end(ap);
	return __syscall_ret(__pod_syscall(n, v[0], v[1], v[2], v[3], v[4], v[5]));
}
