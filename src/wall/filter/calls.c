/* wall/filter/calls.c - the lists; see calls.h. Calls whose arguments matter (clone, socket, ioctl,
 * prctl, memfd_create, mknod, prlimit64, personality, sendto) are in generate.c. */
#include "wall/filter/calls.h"

#include <stddef.h>

const struct call calls_allowed[] = {
	/* Memory. */
	{ "brk", GUEST_ALL }, { "mmap", GUEST_ALL }, { "munmap", GUEST_ALL },
	{ "mremap", GUEST_ALL }, { "mprotect", GUEST_ALL }, { "madvise", GUEST_ALL },
	{ "msync", GUEST_ALL }, { "mincore", GUEST_ALL }, { "membarrier", GUEST_ALL },
	{ "pkey_alloc", GUEST_NODE }, { "pkey_free", GUEST_NODE }, { "pkey_mprotect", GUEST_NODE },
	/* Files by path. */
	{ "open", GUEST_ALL }, { "openat", GUEST_ALL }, { "openat2", GUEST_ALL },
	{ "creat", GUEST_ALL }, { "stat", GUEST_ALL }, { "lstat", GUEST_ALL },
	{ "newfstatat", GUEST_ALL }, { "statx", GUEST_ALL }, { "statfs", GUEST_ALL },
	{ "access", GUEST_ALL }, { "faccessat", GUEST_ALL }, { "faccessat2", GUEST_ALL },
	{ "mkdir", GUEST_ALL }, { "mkdirat", GUEST_ALL }, { "rmdir", GUEST_ALL },
	{ "unlink", GUEST_ALL }, { "unlinkat", GUEST_ALL }, { "rename", GUEST_ALL },
	{ "renameat", GUEST_ALL }, { "renameat2", GUEST_ALL }, { "link", GUEST_ALL },
	{ "linkat", GUEST_ALL }, { "symlink", GUEST_ALL }, { "symlinkat", GUEST_ALL },
	{ "readlink", GUEST_ALL }, { "readlinkat", GUEST_ALL }, { "chmod", GUEST_ALL },
	{ "fchmodat", GUEST_ALL }, { "chown", GUEST_ALL }, { "lchown", GUEST_ALL },
	{ "fchownat", GUEST_ALL }, { "truncate", GUEST_ALL }, { "utime", GUEST_ALL },
	{ "utimes", GUEST_ALL }, { "utimensat", GUEST_ALL }, { "futimesat", GUEST_ALL },
	{ "chdir", GUEST_ALL }, { "fchdir", GUEST_ALL }, { "getcwd", GUEST_ALL },
	{ "umask", GUEST_ALL }, { "getxattr", GUEST_ALL }, { "lgetxattr", GUEST_ALL },
	{ "fgetxattr", GUEST_ALL }, { "listxattr", GUEST_ALL }, { "llistxattr", GUEST_ALL },
	{ "flistxattr", GUEST_ALL }, { "setxattr", GUEST_ALL }, { "lsetxattr", GUEST_ALL },
	{ "fsetxattr", GUEST_ALL }, { "removexattr", GUEST_ALL }, { "lremovexattr", GUEST_ALL },
	{ "fremovexattr", GUEST_ALL },
	/* Files by descriptor. */
	{ "read", GUEST_ALL }, { "write", GUEST_ALL }, { "readv", GUEST_ALL },
	{ "writev", GUEST_ALL }, { "pread64", GUEST_ALL }, { "pwrite64", GUEST_ALL },
	{ "preadv", GUEST_ALL }, { "pwritev", GUEST_ALL }, { "preadv2", GUEST_ALL },
	{ "pwritev2", GUEST_ALL }, { "lseek", GUEST_ALL }, { "close", GUEST_ALL },
	{ "close_range", GUEST_ALL }, { "fstat", GUEST_ALL }, { "fstatfs", GUEST_ALL },
	{ "fsync", GUEST_ALL }, { "fdatasync", GUEST_ALL }, { "sync_file_range", GUEST_ALL },
	{ "ftruncate", GUEST_ALL }, { "fallocate", GUEST_ALL }, { "fadvise64", GUEST_ALL },
	{ "readahead", GUEST_ALL }, { "fchmod", GUEST_ALL }, { "fchown", GUEST_ALL },
	{ "flock", GUEST_ALL }, { "fcntl", GUEST_ALL }, { "dup", GUEST_ALL },
	{ "dup2", GUEST_ALL }, { "dup3", GUEST_ALL }, { "pipe", GUEST_ALL },
	{ "pipe2", GUEST_ALL }, { "getdents", GUEST_ALL }, { "getdents64", GUEST_ALL },
	{ "copy_file_range", GUEST_ALL }, { "sendfile", GUEST_ALL }, { "splice", GUEST_ALL },
	{ "tee", GUEST_ALL }, { "sync", GUEST_ALL }, { "syncfs", GUEST_ALL },
	/* Waiting. */
	{ "poll", GUEST_ALL }, { "ppoll", GUEST_ALL }, { "select", GUEST_ALL },
	{ "pselect6", GUEST_ALL }, { "epoll_create", GUEST_ALL }, { "epoll_create1", GUEST_ALL },
	{ "epoll_ctl", GUEST_ALL }, { "epoll_wait", GUEST_ALL }, { "epoll_pwait", GUEST_ALL },
	{ "epoll_pwait2", GUEST_ALL }, { "eventfd", GUEST_ALL }, { "eventfd2", GUEST_ALL },
	{ "signalfd", GUEST_ALL }, { "signalfd4", GUEST_ALL }, { "timerfd_create", GUEST_ALL },
	{ "timerfd_settime", GUEST_ALL }, { "timerfd_gettime", GUEST_ALL },
	{ "inotify_init", GUEST_ALL }, { "inotify_init1", GUEST_ALL },
	{ "inotify_add_watch", GUEST_ALL }, { "inotify_rm_watch", GUEST_ALL },
	/* The inherited socket and socketpairs. */
	{ "recvfrom", GUEST_ALL }, { "sendmsg", GUEST_ALL }, { "recvmsg", GUEST_ALL },
	{ "sendmmsg", GUEST_ALL }, { "recvmmsg", GUEST_ALL }, { "shutdown", GUEST_ALL },
	{ "getsockopt", GUEST_ALL }, { "setsockopt", GUEST_ALL }, { "getsockname", GUEST_ALL },
	{ "getpeername", GUEST_ALL },
	/* Processes and threads. */
	{ "fork", GUEST_ALL }, { "vfork", GUEST_ALL }, { "execve", GUEST_ALL },
	{ "exit", GUEST_ALL }, { "exit_group", GUEST_ALL }, { "wait4", GUEST_ALL },
	{ "waitid", GUEST_ALL }, { "kill", GUEST_ALL }, { "tkill", GUEST_ALL },
	{ "tgkill", GUEST_ALL }, { "pidfd_open", GUEST_ALL }, { "pidfd_send_signal", GUEST_ALL },
	{ "set_tid_address", GUEST_ALL }, { "set_robust_list", GUEST_ALL },
	{ "get_robust_list", GUEST_ALL }, { "rseq", GUEST_ALL }, { "futex", GUEST_ALL },
	{ "futex_waitv", GUEST_ALL }, { "arch_prctl", GUEST_ALL }, { "getpid", GUEST_ALL },
	{ "getppid", GUEST_ALL }, { "gettid", GUEST_ALL }, { "getuid", GUEST_ALL },
	{ "geteuid", GUEST_ALL }, { "getgid", GUEST_ALL }, { "getegid", GUEST_ALL },
	{ "getresuid", GUEST_ALL }, { "getresgid", GUEST_ALL }, { "getgroups", GUEST_ALL },
	{ "getpgid", GUEST_ALL }, { "getpgrp", GUEST_ALL }, { "getsid", GUEST_ALL },
	{ "setsid", GUEST_ALL }, { "setpgid", GUEST_ALL }, { "capget", GUEST_ALL },
	{ "getrlimit", GUEST_ALL }, { "setrlimit", GUEST_ALL }, { "getrusage", GUEST_ALL },
	{ "getpriority", GUEST_ALL }, { "setpriority", GUEST_ALL }, { "sched_yield", GUEST_ALL },
	{ "sched_getaffinity", GUEST_ALL }, { "sched_getscheduler", GUEST_ALL },
	{ "sched_getparam", GUEST_ALL }, { "sched_get_priority_max", GUEST_ALL },
	{ "sched_get_priority_min", GUEST_ALL }, { "sched_rr_get_interval", GUEST_ALL },
	{ "sched_getattr", GUEST_ALL }, { "getcpu", GUEST_ALL }, { "times", GUEST_ALL },
	{ "pause", GUEST_ALL }, { "uname", GUEST_ALL }, { "sysinfo", GUEST_ALL },
	/* Signals. */
	{ "rt_sigaction", GUEST_ALL }, { "rt_sigprocmask", GUEST_ALL },
	{ "rt_sigreturn", GUEST_ALL }, { "rt_sigsuspend", GUEST_ALL },
	{ "rt_sigpending", GUEST_ALL }, { "rt_sigtimedwait", GUEST_ALL },
	{ "rt_sigqueueinfo", GUEST_ALL }, { "rt_tgsigqueueinfo", GUEST_ALL },
	{ "sigaltstack", GUEST_ALL }, { "restart_syscall", GUEST_ALL },
	/* Time and chance. */
	{ "time", GUEST_ALL }, { "gettimeofday", GUEST_ALL }, { "clock_gettime", GUEST_ALL },
	{ "clock_getres", GUEST_ALL }, { "nanosleep", GUEST_ALL }, { "clock_nanosleep", GUEST_ALL },
	{ "alarm", GUEST_ALL }, { "getitimer", GUEST_ALL }, { "setitimer", GUEST_ALL },
	{ "timer_create", GUEST_ALL }, { "timer_settime", GUEST_ALL },
	{ "timer_gettime", GUEST_ALL }, { "timer_getoverrun", GUEST_ALL },
	{ "timer_delete", GUEST_ALL }, { "getrandom", GUEST_ALL },
	{ NULL, 0 },
};

const char *const calls_explained[] = {
	"ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise",
	"mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick",
	"open_tree", "move_mount", "mount_setattr", "unshare", "setns", "keyctl", "add_key",
	"request_key", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup",
	"io_uring_enter", "io_uring_register", "open_by_handle_at", "name_to_handle_at",
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
	"swapon", "swapoff", "syslog", "acct", "quotactl", "fanotify_init", "memfd_secret",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "iopl", "ioperm",
	"modify_ldt", "bind", "listen", "accept", "accept4", "connect", "sched_setaffinity",
	"sched_setscheduler", "sched_setattr", "execveat", NULL,
};

const char *const calls_setup[] = {
	"clone3", "mount", "umount2", "unshare", "setns", "sethostname", "setdomainname", "capset",
	"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
	"execveat", "mount_setattr", "sched_setaffinity", NULL,
};

const uint64_t calls_ioctls[] = {
	0x5401 /* TCGETS */, 0x5402, 0x5403, 0x5404 /* TCSETS* */, 0x5413 /* TIOCGWINSZ */,
	0x540f /* TIOCGPGRP */, 0x5410 /* TIOCSPGRP */, 0x541b /* FIONREAD */,
	0x5421 /* FIONBIO */, 0x5450 /* FIONCLEX */, 0x5451 /* FIOCLEX */,
	0x5452 /* FIOASYNC */, 0x5429 /* TIOCGSID */, 0,
};

const uint64_t calls_prctls[] = {
	1 /* SET_PDEATHSIG */, 2, 3 /* GET_DUMPABLE */, 4 /* SET_DUMPABLE */, 15 /* SET_NAME */,
	16 /* GET_NAME */, 21 /* GET_SECCOMP */, 23 /* CAPBSET_READ */, 27 /* GET_SECUREBITS */,
	29 /* SET_TIMERSLACK */, 30, 38 /* SET_NO_NEW_PRIVS */, 39, 41 /* SET_THP_DISABLE */, 42,
	65 /* SET_MDWE */, 66, 0x53564d41 /* SET_VMA: names for debugging */, 0,
};
