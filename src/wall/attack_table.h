/* wall/attack_table.h - what an attack of `cordon doctor --prove` is: for the wall that lists its
 * own, for the program that carries them out inside, and for the host that judges. Plain data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the positive control is run outside the wall. */
enum probe_control {
	CONTROL_PLAIN, /* as it is, by anyone */
	CONTROL_ROOT,  /* as it is, by root of the machine; harmless as written */
	CONTROL_SPACE, /* in a throwaway user, mount, pid, net, ipc, uts and cgroup namespace */
};

enum {
	PROBE_TTY = 1 << 0,      /* standard input is a terminal */
	PROBE_LISTED = 1 << 1,   /* the policy names its commands: nothing else may run */
	PROBE_SURVIVOR = 1 << 2, /* worked when a process with the marker outlives the sandbox */
	PROBE_ONCE = 1 << 3,     /* costs memory or time: no second runs with layers off */
	PROBE_SPACED = 1 << 5,   /* not promised without namespaces */
	PROBE_TOLD = 1 << 6,     /* stopped by pid 1: needs a filter with a listener */
	PROBE_PASSED = 1 << 4,   /* worked when descriptors sent over the wire arrive in the host */
	PROBE_CHARGED = 1 << 9,  /* worked when the sandbox's memory does not grow by it */
	PROBE_IDLE = 1 << 7,     /* in a session: goes on when its execution is over */
	PROBE_SIBLING = 1 << 8,  /* in a session: against another one of the same template */
};

struct attack {
	const char *name, *words;
	bool is_python; /* of the Python file; else of the wall's own program */
	int control;    /* enum probe_control */
	uint32_t flags; /* PROBE_* */
	const char *holds;
};

/* All attacks on a wall, and what carries them out. */
struct wall_attacks {
	const struct attack *table;
	size_t count;
	const void *program; /* an executable */
	size_t program_len;
	const void *python; /* a source file */
	size_t python_len;
};

/* What PROBE_CHARGED must be seen to take, and holds a good deal more than. */
enum { PROBE_CHARGE_BYTES = 6 << 20 };

/* How the program ends. */
enum { PROBE_WORKED = 0, PROBE_REFUSED = 1, PROBE_NOT_HERE = 77 };
