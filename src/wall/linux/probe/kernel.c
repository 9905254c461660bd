/* wall/linux/probe/kernel.c - attacks through rarely used parts of the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include "wall/linux/probe/attacks.h"

/* If the call failed for another reason than these, it got past every check. */
static int verdict_past_gate(long r)
{
	if (r >= 0)
		return 0;
	return errno == EPERM || errno == EACCES || errno == ENOSYS ? errno : 0;
}

int probe_io_uring(const struct bait *b)
{
	struct io_uring_params p = { 0 };

	(void)b;
	return probe_verdict(syscall(SYS_io_uring_setup, 1, &p));
}

int probe_userfaultfd(const struct bait *b)
{
	(void)b;
	return probe_verdict(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */));
}

int probe_keyctl(const struct bait *b)
{
	(void)b;
	return probe_verdict(syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -2 /* process */, 1));
}

int probe_add_key(const struct bait *b)
{
	(void)b;
	return probe_verdict(syscall(SYS_add_key, "user", "cordon-probe", "x", 1, -2));
}

int probe_request_key(const struct bait *b)
{
	(void)b;
	return verdict_past_gate(syscall(SYS_request_key, "user", "cordon-probe-none", NULL, 0));
}

int probe_bpf(const struct bait *b)
{
	union bpf_attr attr = { 0 };

	(void)b;
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = attr.value_size = 4;
	attr.max_entries = 1;
	return probe_verdict(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

int probe_perf(const struct bait *b)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_TASK_CLOCK,
					.exclude_kernel = 1,
					.exclude_hv = 1 };

	(void)b;
	return probe_verdict(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

int probe_personality(const struct bait *b)
{
	(void)b;
	return probe_verdict(personality(ADDR_NO_RANDOMIZE));
}

int probe_modify_ldt(const struct bait *b)
{
	char table[16];

	(void)b;
#ifdef SYS_modify_ldt
	return probe_verdict(syscall(SYS_modify_ldt, 0, table, sizeof(table)));
#else
	(void)table;
	return NOT_HERE;
#endif
}

static int raise_iopl(const struct bait *b)
{
	(void)b;
#ifdef SYS_iopl
	return probe_verdict(syscall(SYS_iopl, 3));
#else
	return NOT_HERE;
#endif
}

int probe_iopl(const struct bait *b)
{
	int r = probe_in_child(raise_iopl, b);

	return r == ENOSYS && b->is_control ? NOT_HERE : r;
}

struct handle {
	unsigned bytes;
	int type;
	unsigned char data[128];
};

int probe_name_to_handle(const struct bait *b)
{
	struct handle h = { .bytes = sizeof(h.data) };
	int mount_id;

	(void)b;
	return probe_verdict(syscall(SYS_name_to_handle_at, AT_FDCWD, "/usr", &h, &mount_id, 0));
}

/* The root of an ext4 or xfs file system has a handle that can be guessed: inode 2, or its own. */
int probe_open_by_handle(const struct bait *b)
{
	struct handle h = { .bytes = sizeof(h.data) };
	int mount_id;

	(void)b;
	if (syscall(SYS_name_to_handle_at, AT_FDCWD, "/usr", &h, &mount_id, 0) != 0) {
		h = (struct handle){ .bytes = 8, .type = 1, .data = { 2 } };
	}
	int at = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return probe_verdict(syscall(SYS_open_by_handle_at, at, &h, O_RDONLY | O_CLOEXEC));
}

int probe_seccomp_notify(const struct bait *b)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { .len = 1, .filter = &allow };

	(void)b;
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return probe_verdict(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				     SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog));
}

int probe_prctl_mm(const struct bait *b)
{
	unsigned size = 0;

	(void)b;
	return probe_verdict(prctl(35 /* PR_SET_MM */, 15 /* MAP_SIZE */, &size, 0, 0));
}

int probe_fanotify(const struct bait *b)
{
	(void)b;
	return probe_verdict(syscall(SYS_fanotify_init, 0x200 /* REPORT_FID */, O_RDONLY));
}

int probe_listmount(const struct bait *b)
{
	struct {
		uint32_t size, spare;
		uint64_t id, param;
	} req = { .size = 24, .id = UINT64_MAX /* LSMT_ROOT */ };
	uint64_t ids[4];
	long r = syscall(458 /* listmount */, &req, ids, 4, 0);

	return r < 0 && errno == ENOSYS && b->is_control ? NOT_HERE : probe_verdict(r);
}

int probe_syslog(const struct bait *b)
{
	char line[256];

	(void)b;
	return probe_verdict(syscall(SYS_syslog, 3 /* READ_ALL */, line, sizeof(line)));
}

/* Moves the clock forward by zero. */
int probe_adjtime(const struct bait *b)
{
	struct timex t = { .modes = ADJ_SETOFFSET };

	(void)b;
	return probe_verdict(syscall(SYS_adjtimex, &t));
}

/* With wrong magic numbers, a call that gets past the checks returns EINVAL. */
int probe_reboot(const struct bait *b)
{
	(void)b;
	return verdict_past_gate(syscall(SYS_reboot, 1, 2, 3, NULL));
}

int probe_module(const struct bait *b)
{
	(void)b;
	long r = syscall(SYS_init_module, "", 0UL, "");

	return r < 0 && errno == ENOSYS && b->is_control ? NOT_HERE : verdict_past_gate(r);
}

int probe_accounting(const struct bait *b)
{
	long r = syscall(SYS_acct, "/nonexistent/cordon-probe");

	return r < 0 && errno == ENOSYS && b->is_control ? NOT_HERE : verdict_past_gate(r);
}

int probe_realtime(const struct bait *b)
{
	struct sched_param p = { .sched_priority = 1 };

	(void)b;
	return probe_verdict(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &p));
}

int probe_nice_up(const struct bait *b)
{
	(void)b;
	int now = getpriority(PRIO_PROCESS, 0);

	return probe_verdict(setpriority(PRIO_PROCESS, 0, now - 1));
}

int probe_affinity(const struct bait *b)
{
	unsigned long all[16];

	(void)b;
	memset(all, 0xff, sizeof(all));
	return probe_verdict(syscall(SYS_sched_setaffinity, 0, sizeof(all), all));
}

static int call_int80(const struct bait *b)
{
	(void)b;
#ifdef __x86_64__
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20 /* getpid */) : "r8", "r9", "r10", "r11");
	return r > 0 ? 0 : ENOSYS;
#else
	return NOT_HERE;
#endif
}

int probe_int80(const struct bait *b)
{
	int r = probe_in_child(call_int80, b);

	/* A kernel without 32-bit emulation raises a fault. */
	return r == EFAULT && b->is_control ? NOT_HERE : r;
}

static int call_x32(const struct bait *b)
{
	(void)b;
#ifdef __x86_64__
	return probe_verdict(syscall(0x40000000 | SYS_getpid));
#else
	return NOT_HERE;
#endif
}

int probe_x32(const struct bait *b)
{
	int r = probe_in_child(call_x32, b);

	return r == ENOSYS && b->is_control ? NOT_HERE : r;
}

int probe_shm_host(const struct bait *b)
{
	void *p = shmat((int)b->shm, NULL, SHM_RDONLY);

	return p == (void *)-1 ? errno : 0;
}

int probe_aio(const struct bait *b)
{
	unsigned long context = 0;

	(void)b;
	return probe_verdict(syscall(SYS_io_setup, 1, &context));
}

int probe_sysv_queue(const struct bait *b)
{
	long id = syscall(SYS_msgget, 0 /* IPC_PRIVATE */, 0600 | 01000 /* IPC_CREAT */);
	int r = probe_verdict(id);

	(void)b;
	if (id >= 0)
		(void)syscall(SYS_msgctl, id, 0 /* IPC_RMID */, NULL);
	return r;
}

int probe_sysv_semaphore(const struct bait *b)
{
	long id = syscall(SYS_semget, 0, 1, 0600 | 01000);
	int r = probe_verdict(id);

	(void)b;
	if (id >= 0)
		(void)syscall(SYS_semctl, id, 0, 0, 0);
	return r;
}

int probe_message_queue(const struct bait *b)
{
	struct {
		long flags, max, size, current, spare[4];
	} attr = { .max = 1, .size = 8 };

	(void)b;
	long fd = syscall(SYS_mq_open, "cordon-probe", O_CREAT | O_RDWR, 0600, &attr);
	if (fd < 0)
		return errno;
	(void)syscall(SYS_mq_unlink, "cordon-probe");
	return 0;
}

/* The control makes the terminal its controlling terminal first, as a login shell would. */
int probe_terminal_input(const struct bait *b)
{
	if (b->is_control && (setsid() < 0 || ioctl(0, 0x540e /* TIOCSCTTY */, 0) != 0))
		return NOT_HERE;
	int r = ioctl(0, 0x5412 /* TIOCSTI */, "x");

	return r < 0 && errno == EIO && b->is_control ? NOT_HERE : probe_verdict(r);
}

int probe_terminal_take(const struct bait *b)
{
	(void)b;
	(void)setsid();
	return probe_verdict(ioctl(0, 0x540e /* TIOCSCTTY */, 0));
}

/* To the one that it has, so that the control changes nothing. */
int probe_terminal_discipline(const struct bait *b)
{
	int tty = 0;

	(void)b;
	return probe_verdict(ioctl(0, 0x5423 /* TIOCSETD */, &tty));
}

/* Only a virtual console implements this call. */
int probe_terminal_linux(const struct bait *b)
{
	char what[2] = { 3 /* paste */, 0 };
	int r = ioctl(0, 0x541c /* TIOCLINUX */, what);

	return r < 0 && errno != EPERM && errno != EACCES && b->is_control ? NOT_HERE
									   : probe_verdict(r);
}

int probe_core_limit(const struct bait *b)
{
	struct rlimit r = { 1 << 20, 1 << 20 };

	(void)b;
	return probe_verdict(setrlimit(RLIMIT_CORE, &r));
}
