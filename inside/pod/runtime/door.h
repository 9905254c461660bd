/* inside/pod/runtime/door.h - the only interface of WebAssembly code to the system: a table of
 * system calls, each with its checks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "inside/pod/runtime/process.h"

/* What the pod's own libc asks of us; the same list as inside/pod/image/libc/src/door.h. */
enum door_own {
	DOOR_ARGS_SIZE = 100000,
	DOOR_ARGS_COPY,
	DOOR_SIGNALS,
	DOOR_PROGRAM,
	DOOR_CHECKPOINT,
	DOOR_RELEASE,
	DOOR_SIGACTION,
	DOOR_COMMAND,
	DOOR_TAKE,
	DOOR_OWN_END,
};

typedef int64_t door_fn(struct w2c_sys *p, const uint64_t a[6]);

struct door_entry {
	int number;
	const char *name;
	door_fn *fn;
	const char *reason; /* why the pod needs it */
};

extern const struct door_entry door_table[];
extern const size_t door_count;

/* The only import of every module. */
uint64_t w2c_sys_call(struct w2c_sys *p, uint64_t n, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		      uint64_t e, uint64_t f);
/* The entry of a call number, or NULL. */
const struct door_entry *door_find(uint64_t n);
/* Fills the index; call once. */
void door_init(void);

#define DOOR_FN(name) int64_t door_##name(struct w2c_sys *p, const uint64_t a[6])
/* Turns a libc-style result into a kernel-style one. */
#define DOOR_RET(call)                                                                             \
	({                                                                                         \
		int64_t r_ = (int64_t)(call);                                                      \
		r_ < 0 ? (int64_t)-errno : r_;                                                     \
	})
