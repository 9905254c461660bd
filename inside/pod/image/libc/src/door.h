/* inside/pod/image/libc/src/door.h - the module's one import, and the calls only our own libc makes
 * of it. */
#ifndef POD_DOOR_H
#define POD_DOOR_H

#include <stdint.h>

__attribute__((import_module("sys"), import_name("call"))) long long
__pod_door(long long n, long long a, long long b, long long c, long long d, long long e,
	   long long f);

/* Numbers above the kernel's own; inside/pod/runtime/door.h has the same list. */
enum {
	POD_ARGS_SIZE = 100000, /* () -> bytes of the argument block */
	POD_ARGS_COPY,          /* (block, bytes): argc, argv[], 0, envp[], 0, strings */
	POD_SIGNALS,            /* (struct pod_signals *): where arrivals are noted */
	POD_PROGRAM,            /* (buf, bytes): the image's name of this program */
	POD_CHECKPOINT,         /* (0): is one wanted, (1): take it, (2): start without */
	POD_RELEASE,            /* (address, bytes): pages to zero and give back */
	POD_SIGACTION,          /* (signal, 0 default | 1 ignore | 2 catch | 3 ask, flags) */
	POD_COMMAND,            /* (buf, bytes, status): a session's next command */
	POD_TAKE,               /* (mask, struct pod_arrival *): one that waits, or 0 */
};

struct pod_arrival {
	int32_t code, pid, uid, status;
};

/* The host writes here at any time: bits are only ever cleared by POD_TAKE, which cannot be
 * interrupted. */
struct pod_signals {
	volatile uint64_t pending; /* bit s-1: signal s arrived and waits for its handler */
	struct pod_arrival info[64];
};

extern struct pod_signals __pod_signals;

void __pod_resume_signals(void);

/* Lets a program that makes no system calls for long run its signal handlers. */
void __pod_poll(void);

#endif
