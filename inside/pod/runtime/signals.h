/* inside/pod/runtime/signals.h - arrivals are noted in the guest's memory; blocking calls never
 * miss one. */
#pragma once

#include <signal.h>
#include <stdint.h>

/* The layouts of inside/pod/image/libc/src/door.h. */
struct signal_arrival {
	int32_t code, pid, uid, status;
};

struct signal_area {
	volatile uint64_t pending;
	struct signal_arrival info[64];
};

enum signal_how { SIGNAL_DEFAULT, SIGNAL_IGNORE, SIGNAL_CATCH, SIGNAL_ASK };

/* Where to note arrivals; NULL: nowhere (there is no program). */
void signals_attach(struct signal_area *area);
/* Sets or asks the disposition; negative errno, or for SIGNAL_ASK the enum above. */
int signals_action(int sig, enum signal_how how, uint64_t flags);
/* Takes one arrival out of those of the mask: its number, or 0 where there is none. */
int signals_take(uint64_t mask, struct signal_arrival *ret);
/* Between the two nothing arrives; holding twice is holding once. */
void signals_hold(void);
void signals_release(void);
/* Holds, before exec leaves the program; -EINTR: it does not, a handler has to run first. */
int signals_leave(void);
/* exec: what was caught goes back to its default, what was ignored stays so. */
void signals_exec(void);
/* fork's child: nothing has arrived for it. */
void signals_forked(void);
/* SIGSEGV and its like, but sent by kill. */
void signals_sent_fault(int sig, const siginfo_t *info);
/* Dies of a signal, whatever was done with it before. */
__attribute__((noreturn)) void signals_die(int sig);

/* A system call that may block: -EINTR at once where a caught signal has arrived before it, also
 * in the instant between the look and the call. */
int64_t signals_call(long n, long a, long b, long c, long d, long e, long f);
