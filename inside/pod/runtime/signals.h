/* inside/pod/runtime/signals.h - delivers signals to the guest by noting them in its memory. A
 * blocking call never misses one. */
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

/* Where to note arrivals; NULL: nowhere, because no program runs. */
void signals_attach(struct signal_area *area);
/* Sets or returns the disposition; a negative errno, or for SIGNAL_ASK the enum above. */
int signals_action(int sig, enum signal_how how, uint64_t flags);
/* Takes one arrival that is in the mask: its number; 0: none. */
int signals_take(uint64_t mask, struct signal_arrival *ret);
/* Between the two no signal arrives. Calls do not nest. */
void signals_hold(void);
void signals_release(void);
/* Holds signals before exec leaves the program. -EINTR: do not leave, because a handler must run
 * first. */
int signals_leave(void);
/* For exec: caught signals get their default action, ignored ones stay ignored. */
void signals_exec(void);
/* In fork's child: clears all arrivals. */
void signals_forked(void);
/* SIGSEGV and similar, if sent by kill. */
void signals_sent_fault(int sig, const siginfo_t *info);
/* Ends the process by a signal, whatever its disposition. */
__attribute__((noreturn)) void signals_die(int sig);

/* A system call that may block: -EINTR at once if a caught signal arrived before it, even between
 * the check and the call. */
int64_t signals_call(long n, long a, long b, long c, long d, long e, long f);
