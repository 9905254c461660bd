/* wall/linux/prestart.h - a supervisor that is started before the policy is known. `cordon run`
 * starts one before the C library starts (wall/linux/prestart_entry.c), and the first sandbox that
 * fits takes it over. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct prestart {
	int32_t pid; /* of the supervisor; 0: none */
	int32_t pidfd, control, plan, status;
	uint32_t uid; /* that it runs under; if root starts it, the first of the sandboxes' range */
};

/* Of this program. Written before main(), never by the library. */
extern struct prestart prestart_started __attribute__((visibility("hidden")));

/* Whether there is one with that uid. It was started with only PLANF_USERNS. */
bool prestart_has(uid_t uid, struct prestart *ret);
/* The caller takes over the supervisor and its descriptors. */
void prestart_take(void);
/* Ends it if nothing took it over, and waits for that. */
void prestart_drop(void);
