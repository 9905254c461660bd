/* wall/linux/prestart_entry.c - the first instructions of the program, before the C library starts:
 * `cordon run` starts the supervisor of its sandbox here (wall/linux/prestart.h). It makes
 * namespaces while the C library starts and options and policy are read. Under a hypervisor, the
 * C library's CPUID queries alone take longer than all of this.
 *
 * Gain: `bench/run prestart` runs `cordon run -g sh -e :` with and without it in turn. Ten runs of
 * 400 to 1500 pairs, on two busy cores of a virtual machine: the median gain was between -0.1 and
 * 1.9 ms, above zero in nine of them, 0.6 ms in the middle; a launch took 13 to 73 ms there, 7 to
 * 30 ms in its fastest tenth. With unified control groups nothing is started here: see is_v2().
 *
 * Nothing is relocated yet, and there are no thread-local variables and no library: only plain
 * system calls. If one fails, there is no prestarted supervisor. The child shares our memory until
 * it execs and has its own stack; we do not wait for it. Linked into the static program only. */
#include <fcntl.h>
#include <linux/memfd.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "wall/linux/clone.h"
#include "wall/linux/format.h"
#include "wall/linux/machine.h"
#include "wall/linux/prestart.h"
#include "wall/linux/supervisor.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif

extern const unsigned char cordon_init_bytes[] __attribute__((visibility("hidden")));
extern const unsigned long cordon_init_bytes_len __attribute__((visibility("hidden")));

/* Descriptor numbers that are unused here and in the child. */
enum { PARK = 64, STACK_BYTES = 16384 };

/* The child's data, which it uses after start() has returned. */
static struct head {
	int control, plan, status, program; /* its ends */
	bool is_root;
	char stack[STACK_BYTES] __attribute__((aligned(16)));
} head;

static inline long call(long nr, long a, long b, long c, long d, long e)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long address(const volatile void *p)
{
	return (long)(uintptr_t)p;
}

/* Moves a descriptor away from the low numbers that the program or the child uses. */
static int park(long fd)
{
	if (fd < 0)
		return -1;
	long moved = call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, PARK, 0, 0);
	call(SYS_close, fd, 0, 0, 0, 0);
	return (int)moved;
}

static int child(void *arg)
{
	const struct head *h = arg;
	const int from[] = { h->control, h->plan, h->status, h->program };
	const char name[] = "cordon-init", flags[] = { '0' + PLANF_USERNS, '\0' };
	const char *const argv[] = { name, flags, NULL };
	const char *const none[] = { NULL };
	const char empty[] = "";
	bool good = true;

	for (int i = 0; i < 4; i++)
		good = good && call(SYS_dup2, from[i], INIT_FD_CONTROL + i, 0, 0, 0) >= 0;
	/* The guest's descriptors come with the plan. */
	good = good && call(SYS_close_range, 0, INIT_FD_CONTROL - 1, 0, 0, 0) == 0 &&
	       call(SYS_close_range, INIT_FD_SELF + 1, ~0U, 4 /* CLOEXEC */, 0, 0) == 0;
	if (h->is_root) {
		long gid = MACHINE_BOX_UID, uid = gid + call(SYS_getpid, 0, 0, 0, 0, 0);

		good = good && call(SYS_setgroups, 0, 0, 0, 0, 0) == 0 &&
		       call(SYS_setresgid, gid, gid, gid, 0, 0) == 0 &&
		       call(SYS_setresuid, uid, uid, uid, 0, 0) == 0;
	}
	if (good)
		call(SYS_execveat, h->program, address(empty), address(argv), address(none),
		     AT_EMPTY_PATH);
	return 127;
}

/* The program in a file that is not open for writing. */
static int open_program(void)
{
	const char name[] = "cordon-init";
	char path[] = "/proc/self/fd/00";
	const long flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	long fd = call(SYS_memfd_create, address(name), flags | MFD_EXEC, 0, 0, 0);

	if (fd < 0) /* before Linux 6.3 every memfd may be executed */
		fd = call(SYS_memfd_create, address(name), flags, 0, 0, 0);
	int writes = park(fd);
	if (writes < 0)
		return -1;
	long n = call(SYS_write, writes, address(cordon_init_bytes), (long)cordon_init_bytes_len, 0,
		      0);
	path[14] = (char)('0' + writes / 10);
	path[15] = (char)('0' + writes % 10);
	bool good = n == (long)cordon_init_bytes_len && writes < 100 &&
		    call(SYS_fcntl, writes, F_ADD_SEALS, SUPERVISOR_SEALS, 0, 0) == 0;
	int reads =
		good ? park(call(SYS_openat, AT_FDCWD, address(path), O_RDONLY | O_CLOEXEC, 0, 0))
		     : -1;
	call(SYS_close, writes, 0, 0, 0, 0);
	return reads;
}

static int open_status(void)
{
	const char name[] = "cordon-status";
	int fd = park(call(SYS_memfd_create, address(name), MFD_CLOEXEC, 0, 0, 0));

	if (fd >= 0 && call(SYS_ftruncate, fd, sizeof(struct status), 0, 0, 0) != 0)
		return -1;
	return fd;
}

static int open_pair(int *ret_inner)
{
	int pair[2] = { -1, -1 };

	if (call(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, address(pair), 0) != 0)
		return -1;
	*ret_inner = park(pair[1]);
	return park(pair[0]);
}

static void close_own(int fd)
{
	if (fd >= 0)
		call(SYS_close, fd, 0, 0, 0, 0);
}

/* v2 groups are made before the supervisor, which is cloned into one. */
static bool is_v2(void)
{
	const char path[] = "/sys/fs/cgroup/cgroup.controllers";

	return call(SYS_access, address(path), 0, 0, 0, 0) == 0;
}

static void start(void)
{
	struct head *h = &head;
	int pidfd = -1, control = open_pair(&h->control), plan = open_pair(&h->plan);
	long pid = -1, euid = call(SYS_geteuid, 0, 0, 0, 0, 0);

	h->status = open_status();
	h->program = open_program();
	h->is_root = euid == 0;
	if (control >= 0 && plan >= 0 && h->control >= 0 && h->plan >= 0 && h->status >= 0 &&
	    h->program >= 0) {
		struct clone3_args args = { .flags = CLONE_VM | CLONE_PIDFD,
					    .pidfd = (uintptr_t)&pidfd,
					    .stack = (uintptr_t)h->stack,
					    .stack_size = STACK_BYTES };
		pid = clone_on_stack(&args, child, h);
	}
	close_own(h->control);
	close_own(h->plan);
	close_own(h->program);
	pidfd = park(pidfd);
	if (pid > 0 && pidfd >= 0) {
		prestart_started =
			(struct prestart){ .pid = (int32_t)pid,
					   .pidfd = pidfd,
					   .control = control,
					   .plan = plan,
					   .status = h->status,
					   .uid = h->is_root ? MACHINE_BOX_UID : (uint32_t)euid };
		return;
	}
	/* If the pidfd could not be stored, closing these ends the supervisor. */
	close_own(control);
	close_own(plan);
	close_own(h->status);
	close_own(pidfd);
	if (pid > 0)
		call(SYS_wait4, pid, 0, __WALL, 0, 0);
}

/* stack: as the kernel set it up, argc followed by argv. Called from the assembly below. */
__attribute__((used)) static void prestart_entry_main(const long *stack)
{
	const char *verb = stack[0] > 1 ? (const char *)(uintptr_t)stack[2] : "";

	if (verb[0] == 'r' && verb[1] == 'u' && verb[2] == 'n' && verb[3] == '\0' && !is_v2())
		start();
}

__asm__(".text\n"
	".globl prestart_entry\n"
	".hidden prestart_entry\n"
	".type prestart_entry, @function\n"
	"prestart_entry:\n\t"
	"mov %rsp, %rdi\n\t"
	"push %rdx\n\t" /* the loader's word for _start */
	"sub $8, %rsp\n\t"
	"call prestart_entry_main\n\t"
	"add $8, %rsp\n\t"
	"pop %rdx\n\t"
	"jmp _start\n");
