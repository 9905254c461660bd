/* inside/pod/runtime/signals.c - see signals.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/signals.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "inside/pod/runtime/jobs.h"

/* Global, because a signal handler has no argument. */
static const volatile uint64_t nothing;
static struct signal_area *noted;
static const volatile uint64_t *pending = &nothing;
static uint8_t disposition[65]; /* enum signal_how, as set by the guest */
static sigset_t held;           /* the guest's mask while signals are held */
static bool is_held;

/* rdi: the call number, rsi: address of the pending word; the rest is on the stack as C passed it.
 * The handler compares the interrupted address with these labels: before the syscall instruction
 * the call has not happened, and returns EINTR instead. */
__asm__(".text\n"
	".globl pod_call_begin, pod_call_end, pod_call_cancel\n"
	".hidden pod_call_begin, pod_call_end, pod_call_cancel\n"
	".type pod_call, @function\n"
	"pod_call:\n"
	"	movq %rdi, %rax\n"
	"	movq %rsi, %r11\n"
	"	movq %rdx, %rdi\n"
	"	movq %rcx, %rsi\n"
	"	movq %r8, %rdx\n"
	"	movq %r9, %r10\n"
	"	movq 8(%rsp), %r8\n"
	"	movq 16(%rsp), %r9\n"
	"pod_call_begin:\n"
	"	cmpq $0, (%r11)\n"
	"	jne pod_call_cancel\n"
	"	syscall\n"
	"pod_call_end:\n"
	"	ret\n"
	"pod_call_cancel:\n"
	"	movq $-4, %rax\n" /* -EINTR */
	"	ret\n"
	".size pod_call, .-pod_call\n");

extern const char pod_call_begin[], pod_call_end[], pod_call_cancel[];
long pod_call(long n, const volatile uint64_t *word, long a, long b, long c, long d, long e,
	      long f) __asm__("pod_call");

int64_t signals_call(long n, long a, long b, long c, long d, long e, long f)
{
	return pod_call(n, pending, a, b, c, d, e, f);
}

static void note(int sig, const siginfo_t *info)
{
	if (!noted)
		return;
	noted->info[sig - 1].code = info->si_code;
	noted->info[sig - 1].pid = info->si_pid;
	noted->info[sig - 1].uid = (int32_t)info->si_uid;
	noted->info[sig - 1].status = info->si_status;
	__atomic_fetch_or(&noted->pending, 1ull << (sig - 1), __ATOMIC_SEQ_CST);
}

/* Clears the bit before copying: an arrival in between sets it again and is copied then. Clearing
 * it in the guest, with a load and a store, would lose arrivals between the two. */
int signals_take(uint64_t mask, struct signal_arrival *ret)
{
	uint64_t waiting = noted ? __atomic_load_n(&noted->pending, __ATOMIC_SEQ_CST) & mask : 0;
	uint64_t bit = waiting & -waiting;
	int sig;

	if (!waiting)
		return 0;
	sig = __builtin_ctzll(waiting) + 1;
	do {
		__atomic_fetch_and(&noted->pending, ~bit, __ATOMIC_SEQ_CST);
		memcpy(ret, &noted->info[sig - 1], sizeof *ret);
	} while (__atomic_load_n(&noted->pending, __ATOMIC_SEQ_CST) & bit);
	return sig;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	greg_t at = uc->uc_mcontext.gregs[REG_RIP];

	if (sig == SIGINT && !jobs_note_interrupt(info))
		return;
	note(sig, info);
	if (at >= (greg_t)(uintptr_t)pod_call_begin && at < (greg_t)(uintptr_t)pod_call_end)
		uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)pod_call_cancel;
}

void signals_attach(struct signal_area *area)
{
	noted = area;
	pending = area ? &area->pending : &nothing;
}

/* Faults are handled by the engine. A disposition only affects one that was sent by kill. */
static int is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE;
}

static int ask(int sig)
{
	struct sigaction now;

	if (is_fault(sig))
		return disposition[sig];
	if (sigaction(sig, NULL, &now))
		return -errno;
	if (now.sa_flags & SA_SIGINFO)
		return SIGNAL_CATCH;
	return now.sa_handler == SIG_IGN ? SIGNAL_IGNORE : SIGNAL_DEFAULT;
}

/* 32 and 33 belong to glibc, whose wrapper refuses them. The guest's libc uses none of the
 * three. */
static bool is_own(int sig)
{
	return sig == 32 || sig == 33 || sig == JOBS_SIGNAL;
}

int signals_action(int sig, enum signal_how how, uint64_t flags)
{
	struct sigaction sa = { .sa_flags = (int)(flags & (SA_NOCLDSTOP | SA_NOCLDWAIT)) };

	if (sig < 1 || sig > 64 || how > SIGNAL_ASK)
		return -EINVAL;
	if (how == SIGNAL_ASK)
		return is_own(sig) ? SIGNAL_DEFAULT : ask(sig);
	if (sig == SIGKILL || sig == SIGSTOP || is_own(sig))
		return -EINVAL;
	disposition[sig] = (uint8_t)how;
	if (is_fault(sig))
		return 0;
	if (how == SIGNAL_CATCH) {
		sa.sa_sigaction = on_signal;
		/* On the alternate stack, because the guest's own may be exhausted. */
		sa.sa_flags |= SA_SIGINFO | SA_ONSTACK;
	} else {
		sa.sa_handler = how == SIGNAL_IGNORE ? SIG_IGN : SIG_DFL;
	}
	sigfillset(&sa.sa_mask);
	return sigaction(sig, &sa, NULL) ? -errno : 0;
}

void signals_hold(void)
{
	sigset_t all;

	if (is_held)
		return;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &held);
	is_held = true;
}

void signals_release(void)
{
	is_held = false;
	sigprocmask(SIG_SETMASK, &held, NULL);
}

int signals_leave(void)
{
	signals_hold();
	if (!*pending)
		return 0;
	signals_release();
	return -EINTR;
}

void signals_exec(void)
{
	for (int sig = 1; sig <= 64; sig++)
		if (disposition[sig] == SIGNAL_CATCH)
			signals_action(sig, SIGNAL_DEFAULT, 0);
	signals_attach(NULL);
}

void signals_forked(void)
{
	if (noted)
		noted->pending = 0;
}

void signals_sent_fault(int sig, const siginfo_t *info)
{
	if (disposition[sig] == SIGNAL_CATCH)
		note(sig, info);
	else if (disposition[sig] == SIGNAL_DEFAULT)
		signals_die(sig);
}

void signals_die(int sig)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t all;

	sigaction(sig, &sa, NULL);
	sigfillset(&all);
	sigdelset(&all, sig);
	sigprocmask(SIG_SETMASK, &all, NULL);
	kill(getpid(), sig);
	_exit(128 + sig);
}
