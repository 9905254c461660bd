/* wall/linux/filter/calls.h - which system calls each guest may make, and which refusals are
 * reported. A call that is not listed fails with EPERM. A process that makes calls of another
 * architecture is killed. */
#pragma once

#include <stdint.h>

enum {
	GUEST_PYTHON = 1 << 0,
	GUEST_R = 1 << 1,
	GUEST_NODE = 1 << 2,
	GUEST_SH = 1 << 3,
	GUEST_POD = 1 << 4,
	GUEST_ALL = 31,
	GUEST_NATIVE = GUEST_ALL & ~GUEST_POD,
};

struct call {
	const char *name;
	uint32_t guests;
};

/* Allowed with any arguments. */
extern const struct call calls_allowed[];
/* Refused with a notification, so that the result can say what was tried. */
extern const char *const calls_explained[];
/* Needed by a template to fork and seal sessions; forbidden in a sealed session. */
extern const char *const calls_setup[];
/* ioctl requests and prctl options that are allowed. */
extern const uint64_t calls_ioctls[], calls_prctls[];
/* Allowed fcntl commands and socket options; lists end with CALLS_END. */
#define CALLS_END UINT32_MAX
struct call_sockopt {
	uint32_t level, name;
};
extern const uint64_t calls_fcntls[], calls_locks[];
extern const struct call_sockopt calls_sockopts[];
