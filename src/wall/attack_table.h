/* wall/attack_table.h - the attacks of `cordon doctor --prove`: for the wall that lists them, for
 * the program that runs them inside, and for the host that judges the outcome. Plain data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the positive control is run outside the sandbox. */
enum probe_control {
	CONTROL_PLAIN, /* unchanged, by any user */
	CONTROL_ROOT,  /* unchanged, by root of the machine; harmless as written */
	CONTROL_SPACE, /* in temporary user, mount, pid, net, ipc, uts and cgroup namespaces */
};

enum {
	PROBE_TTY = 1 << 0,      /* stdin is a terminal */
	PROBE_LISTED = 1 << 1,   /* the policy lists its commands: nothing else may run */
	PROBE_SURVIVOR = 1 << 2, /* it worked if a process with the marker outlives the sandbox */
	PROBE_ONCE = 1 << 3,     /* costs memory or time: not repeated with layers off */
	PROBE_SPACED = 1 << 5,   /* not stopped without namespaces, as documented */
	PROBE_TOLD = 1 << 6,     /* stopped by pid 1: needs a filter with a listener */
	PROBE_PASSED = 1 << 4,  /* it worked if descriptors sent over the wire arrive in the host */
	PROBE_CHARGED = 1 << 9, /* it worked if the sandbox's memory count does not grow by it */
	PROBE_IDLE = 1 << 7,    /* in a session: continues after its execution is over */
	/* The policy's workspace_exec opens it: held in standard and strict, and it works if on. */
	PROBE_SWITCHED = 1 << 10,
	PROBE_EXPOSED = 1 << 11, /* the policy exposes a port, so the code may make TCP sockets */
	PROBE_BESIDE = 1 << 12,  /* tried again with such a policy: held there too */
	PROBE_OPENS = 1 << 13,   /* the same, but such a policy opens it: then it works */
	PROBE_BUILD = 1 << 14,   /* the build step of a package, while it is installed */
	PROBE_COLUMNS = 1 << 15, /* it worked if the host takes the binary columns that it sent */
	/* Only as a guest of its own: a program that code starts has that code's process as its
	 * parent, may signal it, and can be a file of the workspace. */
	PROBE_ALONE = 1 << 16,
	PROBE_SIBLING = 1 << 8, /* in a session: against another session of the same template */
};

struct attack {
	const char *name, *words;
	bool is_python; /* in the Python file; otherwise in the wall's own program */
	int control;    /* enum probe_control */
	uint32_t flags; /* PROBE_* */
	const char *holds;
};

/* All attacks on a wall, and the programs that run them. */
struct wall_attacks {
	const struct attack *table;
	size_t count;
	const void *program; /* an executable */
	size_t program_len;
	const void *python; /* a source file */
	size_t python_len;
};

/* PROBE_CHARGED attacks hold much more than this; at least this must be counted. */
enum { PROBE_CHARGE_BYTES = 6 << 20 };

/* Exit statuses of the program. */
enum { PROBE_WORKED = 0, PROBE_REFUSED = 1, PROBE_NOT_HERE = 77 };
