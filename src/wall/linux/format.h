/* wall/linux/format.h - what the host sends to cordon-init and gets back: a flat plan in a sealed
 * memfd, and a status page that both map. Both programs include it. Plain data, fixed sizes, no
 * pointers. */
#pragma once

#include <stdint.h>

enum { PLAN_MAGIC = 0x4e4c5043, PLAN_VERSION = 1, STATUS_MAGIC = 0x54415453 };

/* Descriptors cordon-init starts with. */
enum {
	INIT_FD_WIRE = 3,
	INIT_FD_CONTROL =
		4, /* seqpacket to the host: descriptors out, orders in; we end when it closes */
	INIT_FD_PLAN = 5, /* first the socket that the plan comes on, with the descriptors below,
			     from CGROUP on */
	INIT_FD_STATUS = 6,
	INIT_FD_SELF = 7,    /* this program, for the reapers of a template's sessions */
	INIT_FD_CGROUP = 8,  /* PLAN_CGROUPS slots: `tasks` files (v1), the directory (v2) */
	INIT_FD_PARENT = 11, /* PLAN_CGROUPS slots: the directories that hold our cgroups */
	INIT_FD_RELAY = 14,  /* where the gateway's listening sockets go */
	INIT_FD_MOUNT = 15,  /* PLAN_MOUNTS slots: mounts that the host has made */
	INIT_FD_END = 23,
};
/* The guest's uid and gid in its own namespace. */
enum { INSIDE_ID = 1000 };
enum { PLAN_CGROUPS = 3, PLAN_MOUNTS = 8, PLAN_RLIMITS = 12, PLAN_NAMESPACES = 7 };

/* SECCOMP_IOCTL_NOTIF_SET_FLAGS, which older headers do not have. */
#define NOTIFY_SET_FLAGS 0x40082104U

/* The files of /proc that describe the sandbox (procfiles.h), and where they lie in its root. */
#define PROC_FILES "cpuinfo", "meminfo", "uptime", "loadavg", "stat", "version", "locks"
#define PROC_FILES_DIR "run/cordon/proc"

/* One step of building the root. Strings are offsets into the plan. Paths are relative to the new
 * root (destinations) or absolute on the host (sources). */
enum plan_op_kind {
	OP_MKDIR = 1, /* dst, mode */
	OP_SYMLINK,   /* src: target text, dst */
	OP_FILE,      /* dst, mode, src: bytes, size */
	OP_BIND,      /* src, dst (made when missing), flags: OP_* below */
	OP_TMPFS,     /* dst, src: mount data */
	OP_PROC,      /* dst */
	OP_WORKSPACE, /* src: mount data; makes the session's tmpfs and binds its three trees */
};
enum {
	OPF_RO = 1 << 0,
	OPF_OPTIONAL = 1 << 1, /* a missing source is no failure */
	OPF_RECURSIVE = 1 << 2,
	OPF_MADE = 1 << 3,   /* OP_BIND: the source is the mount at descriptor `mode` */
	OPF_UNLESS = 1 << 4, /* OP_FILE, OP_SYMLINK: not if something else is there already */
	OPF_NOEXEC = 1 << 5, /* OP_BIND */
};
struct plan_op {
	uint32_t kind, flags, mode, dst, src, size;
};

/* A Landlock rule: these rights beneath this path of the new root. */
struct plan_rule {
	uint64_t access;
	uint32_t path;
	uint32_t optional;
};

struct plan_rlimit {
	uint32_t resource, pad;
	uint64_t soft, hard;
};

enum {
	PLANF_USERNS = 1 << 0,      /* all namespaces; without it a private directory */
	PLANF_LOOPBACK = 1 << 1,    /* bring lo up: the guest may make TCP sockets */
	PLANF_TEMPLATE = 1 << 2,    /* the guest forks sessions: it keeps what set-up needs */
	PLANF_NO_LANDLOCK = 1 << 3, /* only `doctor --prove` switches layers off */
	PLANF_NO_SECCOMP = 1 << 4,
	PLANF_ONE_CORE = 1 << 5, /* bind to one CPU: cpu_percent 100 without a cpu cgroup */
	PLANF_NO_NETNS = 1 << 6,
	PLANF_OWN_NETNS = 1 << 7,    /* a template's sessions: one each instead of a shared one */
	PLANF_WATCH_MEMORY = 1 << 8, /* no cgroup limits memory: the supervisor does */

	PLANF_LIVE_RO = 1 << 11,    /* the host's own files are mounted for reading */
	PLANF_EXEC = 1 << 13,       /* files of the workspace may be executed */
	PLANF_PROC_FILES = 1 << 10, /* there are PROC_FILES to be bound over the kernel's */

	PLANF_BORN_IN_GROUP = 1 << 9, /* v2: pid 1 is cloned into the group at INIT_FD_CGROUP */
	PLANF_RELAY = 1 << 15,        /* the gateway listens on the loopback */
	PLANF_STAYS = 1 << 12,        /* pid 1 does not end with its guest, and others may join */
	PLANF_TERMINALS = 1 << 16,    /* a devpts of its own, and /dev/tty */
	PLANF_ON_TERMINAL = 1 << 17,  /* the guest's stdin is its controlling terminal */

	/* What cordon-init is told on its command line: it starts while the plan is being made. */
	PLANF_EARLY = PLANF_USERNS | PLANF_LOOPBACK | PLANF_TEMPLATE | PLANF_NO_NETNS |
		      PLANF_BORN_IN_GROUP,
};

struct plan {
	uint32_t magic, version, size, flags;
	uint32_t op_count, ops;
	uint32_t rule_count, rules;
	uint64_t landlock_fs, landlock_net,
		landlock_scoped; /* handled rights, by this kernel's ABI */
	uint64_t memory_bytes;   /* of the whole sandbox, for PLANF_WATCH_MEMORY */
	uint32_t rlimit_count;
	struct plan_rlimit rlimits[PLAN_RLIMITS];
	uint32_t argc, argv; /* NUL-separated strings */
	uint32_t envc, env;
	uint32_t executable; /* path in the new root */
	uint32_t cwd;
	uint32_t cgroup_count; /* v1: `tasks` files to join; v2: 1, a directory to be cloned into */
	uint32_t cgroup_v2;
	uint32_t cgroup_names[PLAN_CGROUPS]; /* directory names below the parent descriptors */
	uint32_t root_data;                  /* mount data of a root larger than usual */
	uint32_t workspace_data;             /* sessions of a template: mount data of their tmpfs */
	uint32_t filter_len[3], filter[3];   /* BPF programs: see enum plan_filter */
	uint32_t private_dir; /* without PLANF_USERNS: on the host, the guest's alone */
	uint32_t relay_port_count, relay_ports; /* 16-bit numbers the gateway listens on */
	uint32_t own_file; /* sessions of a template: path of a file that each has of its own */
};

enum plan_filter {
	FILTER_WHOLE,    /* one-shot: allowlist and notifications in one program */
	FILTER_TEMPLATE, /* allowlist plus what forking sessions needs */
	FILTER_FINAL,    /* on top of it in each session: set-up is over */
};

/* The steps where set-up can fail; the parent turns them into words. */
#define STAGES(X)                                                                                  \
	X(NONE, "nothing was done yet")                                                            \
	X(PLAN, "read the plan")                                                                   \
	X(NAMESPACES, "make the namespaces")                                                       \
	X(CGROUP, "join the control group")                                                        \
	X(IDMAP, "map the user ids")                                                               \
	X(NESTED, "forbid nested user namespaces")                                                 \
	X(MOUNTS, "build the private root")                                                        \
	X(WORKSPACE, "make the workspace")                                                         \
	X(PIVOT, "enter the private root")                                                         \
	X(NETWORK, "set up the loopback interface")                                                \
	X(HOSTNAME, "set the host name")                                                           \
	X(RLIMITS, "set the resource limits")                                                      \
	X(CAPABILITIES, "drop the capabilities")                                                   \
	X(LANDLOCK, "apply the Landlock rules")                                                    \
	X(SECCOMP, "load the system call filter")                                                  \
	X(PROOF, "read the layers back")                                                           \
	X(FORK, "fork")                                                                            \
	X(JOIN, "start another guest")                                                             \
	X(DIRECTORY, "enter the working directory")                                                \
	X(EXEC, "start the interpreter")                                                           \
	X(RUNNING, "run")

enum stage {
#define X(id, words) STAGE_##id,
	STAGES(X)
#undef X
};

/* Moments of a launch, on the monotonic clock: bench/phases and bench/layers tell of them. */
enum mark {
	MARK_SUPERVISOR, /* cordon-init runs */
	MARK_SPACES,     /* pid 1 runs in its namespaces */
	MARK_NETWORK,    /* the guest's process has its network namespace */
	MARK_BASE,       /* what every root has is there */
	MARK_PLAN,       /* pid 1 has the plan */
	MARK_ROOT,       /* the root and the workspace stand */
	MARK_JOINED,     /* pid 1 and the guest's process share all namespaces */
	MARK_SEALED, /* the guest's process is behind Landlock and the filter, and has proven it */
	MARK_LEFT,   /* pid 1 has no way back to the host's root and is in the control groups */
	MARK_EXEC,   /* the guest's process becomes the interpreter */
	MARK_EXITED, /* it has ended and is reaped */
	MARK_EMPTY,  /* the supervisor has reaped pid 1: nothing runs in the sandbox */
	/* Of a session that a template forks, besides SPACES, ROOT and SEALED (bench/layers). */
	MARK_GROUPS,   /* pid 1 is in its control groups */
	MARK_MAPPED,   /* user ids, host name and cgroup namespace are its own */
	MARK_FORKED,   /* the guest runs, in a copy of the template's memory */
	MARK_FILTERED, /* limits, capabilities, Landlock and filter are set, not yet read back */
	MARK_COUNT,
};

enum { STATUS_VICTIMS = 16, STATUS_DENIALS = 40, STATUS_TARGET = 116 };

/* Why an exec fails: the view has no such file, or there is no right to execute it. Or: something
 * was to be executed, but it is not known what. */
enum { EXEC_ABSENT, EXEC_REFUSED, EXEC_UNSEEN };

/* In status_denial.arg of socket(2): a datagram socket; one that does not block, as the resolver of
 * the C library opens it to look a name up. */
#define STATUS_DATAGRAM (1ULL << 32)
#define STATUS_LOOKUP (1ULL << 33)

/* A system call that was refused and explained. */
struct status_denial {
	uint32_t syscall_nr, count;
	uint64_t arg; /* what the rule looked at: address family, clone flags, ...; EXEC_* */
	char target[STATUS_TARGET]; /* a path where there is one */
	uint32_t is_rest;           /* of this call's, with other arguments than those told */
};

enum { STATE_BUILDING, STATE_RUNNING, STATE_EXITED, STATE_FAILED };

/* Written by cordon-init only (never by guest code), read by the host. */
struct status {
	uint32_t magic;
	uint32_t state;
	uint32_t stage; /* the failing one when state is STATE_FAILED */
	int32_t os_errno;
	uint32_t detail; /* index of the op, rule or limit that failed */
	int32_t wait_status;
	int32_t init_pid, guest_pid;  /* of pid 1 as the supervisor sees it; inside */
	uint64_t cpu_us, max_rss_kib; /* of what was reaped */
	uint64_t memory_peak_kib;     /* seen by PLANF_WATCH_MEMORY */
	uint32_t memory_kills;        /* made by it */
	uint32_t processes_peak;      /* seen by it, pid 1 among them; not of templates */
	/* The last of them: pid 1 of the sandbox or of a template's session, as the supervisor sees
	 * it.
	 */
	int32_t memory_victims[STATUS_VICTIMS];
	/* Proof, read back after sealing. */
	uint64_t namespaces[PLAN_NAMESPACES]; /* inode numbers: user pid mnt net ipc uts cgroup */
	uint64_t cap_eff, cap_prm, cap_bnd;
	uint32_t no_new_privs, seccomp_mode, seccomp_filters, dumpable;
	uint32_t landlock_proven;
	uint32_t is_nonotify; /* the filter has no listener: refused calls are not reported */
	uint32_t rlimit_count;
	struct plan_rlimit rlimits[PLAN_RLIMITS];
	uint64_t marks[MARK_COUNT];          /* nanoseconds; 0: not reached */
	uint32_t denial_count, denials_lost; /* lost: for which there was no room */
	struct status_denial denials[STATUS_DENIALS];
};

/* Messages on the control socket. Host to init: one byte; CONTROL_JOIN also has the numbers that
 * its descriptors would have in cordon-init. Init to host: one byte, with descriptors. A guest that
 * joined has a control socket of its own, which pid 1 closes when the guest has ended. */
enum {
	CONTROL_GO = 'G',        /* to init, first: all limits are set, the guest may run */
	CONTROL_INTERRUPT = 'I', /* to init: SIGINT for the guest */
	CONTROL_SAMPLE = 'S', /* to init: refresh cpu_us and max_rss_kib, answer CONTROL_SAMPLED */
	CONTROL_SAMPLED = 's',
	CONTROL_WORKSPACE = 'W', /* to host: workspace root, then pidfd of pid 1 (sessions) */
	/* To a place's init, with streams, wire, control, plan and status: start a guest. With a
	 * control socket alone: it is the first guest's. */
	CONTROL_JOIN = 'J',
	/* To init, with a socket at INIT_FD_CONTROL: answers there with a TCP socket of the guest's
	 * network namespace, not connected, and closes it. */
	CONTROL_SOCKET = 'N',
	CONTROL_STARTED = 'P',   /* to host, on a guest's socket: pidfd of the guest */
	CONTROL_END = 'E',       /* to init, on a guest's socket: end it and what it started */
	CONTROL_SIGNAL = 'K',    /* the same: the signal whose number follows, for its group */
	CONTROL_TERMINALS = 'T', /* to host, before the workspace: ptmx of its devpts, O_PATH */
};
/* Guests of a place at a time; each may have a terminal. */
enum { PLACE_GUESTS = 64 };
#define PLACE_TERMINALS "64"
