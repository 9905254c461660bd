/* wall/prestart.h - a supervisor that was started before it was known what for: `cordon run` starts
 * one before the C library starts (cli/head.c), and the first sandbox that fits takes it over. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct prestart {
	int32_t pid; /* of the supervisor; 0: there is none */
	int32_t pidfd, control, plan, status;
	uint32_t uid; /* that it runs under, of root's sandboxes the first of theirs */
};

/* The one that this program has; written before main() begins, and never by the library. */
extern struct prestart prestart_started __attribute__((visibility("hidden")));

/* Whether there is one with that uid. It was told PLANF_USERNS and nothing else. */
bool prestart_has(uid_t uid, struct prestart *ret);
/* It is the caller's from now on, with its descriptors. */
void prestart_take(void);
/* Ends it, where nobody took it over, and waits for that. */
void prestart_drop(void);
