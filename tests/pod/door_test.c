/* tests/pod/door_test.c - the door with hostile pointers, lengths, descriptors and flags. */
#include "door_fixture.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define END FIXTURE_BYTES
#define TOP 0xffffffffull

struct probe {
	const char *what;
	uint64_t call[7];
	int64_t want; /* exact, or ANY_ERROR, or NOT_ERROR */
};
#define ANY_ERROR INT64_MIN
#define NOT_ERROR INT64_MAX

/* Addresses of strings that run_probes() puts there. */
enum {
	FILE_AT = 4096,
	ESCAPE_AT = 4352,
	UP_AT = 4608,
	DOTS_AT = 4864,
	SCRIPT_AT = 5120,
	TRUE_AT = 5376,
	DENIED_AT = 5632,
	FORGED_AT = 5888,
	EMPTY_AT = 6144,
	NEW_AT = 6400,
	PROC_AT = 6656,
	DEVICE_AT = 6720,
	STDIN_AT = 6784,
	BUF = 8192,
	ARGV_AT = 7000 / 4 * 4,
	LAST = END - 4
};

static const struct probe probes[] = {
	{ "read: null buffer", { SYS_read, 0, 0, 10 }, -EFAULT },
	{ "read: buffer past the end", { SYS_read, 0, END - 4, 8 }, -EFAULT },
	{ "read: length wraps", { SYS_read, 0, BUF, TOP }, -EFAULT },
	{ "read: pointer above 32 bits", { SYS_read, 0, BUF + (1ull << 32), 8 }, -EFAULT },
	{ "read: pointer 2^64-1", { SYS_read, 0, ~0ull, 1 }, -EFAULT },
	{ "read: our descriptor", { SYS_read, 64, BUF, 8 }, -EBADF },
	{ "read: negative descriptor", { SYS_read, TOP, BUF, 8 }, -EBADF },
	{ "write: past the end", { SYS_write, 1, LAST, 5 }, -EFAULT },
	{ "write: our descriptor", { SYS_write, 65, BUF, 1 }, -EBADF },
	{ "pread: negative offset", { SYS_pread64, 0, BUF, 1, ~0ull }, -EINVAL },
	{ "readv: too many vectors", { SYS_readv, 0, BUF, TOP }, -EINVAL },
	{ "readv: vector outside", { SYS_readv, 0, LAST, 2 }, -EFAULT },
	{ "writev: vector array null", { SYS_writev, 1, 0, 2 }, -EFAULT },
	{ "close: our descriptor", { SYS_close, 64 }, -EBADF },
	{ "close_range: upside down", { SYS_close_range, 9, 3, 0 }, -EINVAL },
	{ "close_range: unknown flag", { SYS_close_range, 3, 9, 2 }, -EINVAL },
	{ "dup2: onto ours", { SYS_dup2, 0, 64 }, -EBADF },
	{ "dup2: from ours", { SYS_dup2, 64, 5 }, -EBADF },
	{ "dup3: flags", { SYS_dup3, 0, 5, 1 }, -EINVAL },
	{ "fcntl: dup above the limit", { SYS_fcntl, 0, F_DUPFD, 64 }, -EINVAL },
	{ "fcntl: unknown command", { SYS_fcntl, 0, F_SETOWN, 1 }, -EINVAL },
	{ "fcntl: F_NOTIFY", { SYS_fcntl, 0, F_NOTIFY, 1 }, -EINVAL },
	{ "fcntl: lock outside", { SYS_fcntl, 0, F_SETLK, LAST }, -EFAULT },
	{ "ioctl: TIOCSTI", { SYS_ioctl, 0, 0x5412, BUF }, -ENOTTY },
	{ "ioctl: unknown", { SYS_ioctl, 0, TOP, BUF }, -ENOTTY },
	{ "ioctl: struct outside", { SYS_ioctl, 0, 0x5401, LAST }, -EFAULT },
	{ "pipe: outside", { SYS_pipe, LAST }, -EFAULT },
	{ "pipe2: flags", { SYS_pipe2, BUF, O_DIRECT }, -EINVAL },
	{ "poll: huge count", { SYS_poll, BUF, TOP, 0 }, -EINVAL },
	{ "poll: outside", { SYS_poll, LAST, 8, 0 }, -EFAULT },
	{ "ppoll: bad time", { SYS_ppoll, BUF, 0, LAST, 0 }, -EFAULT },
	{ "select: huge set", { SYS_select, 70000, BUF, 0, 0, 0 }, -EINVAL },
	{ "select: negative", { SYS_select, TOP, BUF, 0, 0, 0 }, -EINVAL },
	{ "select: set outside", { SYS_select, 64, LAST, 0, 0, 0 }, -EFAULT },
	{ "pselect6: mask outside", { SYS_pselect6, 0, 0, 0, 0, 0, LAST }, -EFAULT },
	{ "getdents64: not a directory", { SYS_getdents64, 0, BUF, 64 }, ANY_ERROR },
	{ "sendfile: offset outside", { SYS_sendfile, 1, 0, LAST, 4 }, -EFAULT },
	{ "socket", { SYS_socket, 2, 1, 0 }, -EACCES },
	{ "socket: datagram", { SYS_socket, 2, 2, 0 }, -EACCES },
	{ "socket: local", { SYS_socket, 1, 1, 0 }, -EAFNOSUPPORT },
	{ "socket: netlink", { SYS_socket, 16, 3, 0 }, -EAFNOSUPPORT },
	{ "connect: no address", { SYS_connect, 0, BUF, 16 }, -EAFNOSUPPORT },
	{ "connect: too long", { SYS_connect, 0, BUF, 200 }, -EINVAL },
	{ "connect: outside", { SYS_connect, 0, 0xfffffff0, 16 }, -EFAULT },
	{ "socketpair: inet", { SYS_socketpair, 2, 1, 0, BUF }, -EAFNOSUPPORT },
	{ "socketpair: raw", { SYS_socketpair, 1, 3, 0, BUF }, -EINVAL },
	{ "sendto: an address", { SYS_sendto, 0, BUF, 1, 0, BUF, 16 }, -EACCES },
	{ "sendto: out-of-band", { SYS_sendto, 0, BUF, 1, 1, 0, 0 }, -EINVAL },
	{ "setsockopt: SO_PASSCRED", { SYS_setsockopt, 0, 1, 16, BUF, 4 }, -ENOPROTOOPT },
	{ "open: null path", { SYS_open, 0, 0, 0 }, -EFAULT },
	{ "open: path outside", { SYS_open, END, 0, 0 }, -EFAULT },
	{ "open: unknown flags", { SYS_open, FILE_AT, 020000000000, 0 }, -EINVAL },
	{ "open: symlink out of the root", { SYS_open, ESCAPE_AT, 0, 0 }, -ENOENT },
	{ "open: dots out of the root", { SYS_open, DOTS_AT, 0, 0 }, -ENOENT },
	{ "open: dotted symlink", { SYS_open, UP_AT, 0, 0 }, -ENOENT },
	{ "openat: our descriptor as directory", { SYS_openat, 64, FILE_AT + 1, 0, 0 }, -EBADF },
	{ "open: /proc/self/mem", { SYS_open, PROC_AT, 2, 0 }, ANY_ERROR },
	{ "open: a file", { SYS_open, FILE_AT, 0, 0 }, NOT_ERROR },
	{ "stat: a file", { SYS_stat, FILE_AT, BUF }, 0 },
	{ "stat: buffer outside", { SYS_stat, FILE_AT, LAST }, -EFAULT },
	{ "newfstatat: flags", { SYS_newfstatat, 0xffffff9c, FILE_AT, BUF, 1 << 20 }, -EINVAL },
	{ "statx: buffer outside",
	  { SYS_statx, 0xffffff9c, FILE_AT, 0, 0xfff, END - 100 },
	  -EFAULT },
	{ "readlink: length zero", { SYS_readlink, ESCAPE_AT, BUF, 0 }, -EINVAL },
	{ "readlink: outside", { SYS_readlink, ESCAPE_AT, LAST, 100 }, -EFAULT },
	{ "chdir: out of the root", { SYS_chdir, DOTS_AT }, -ENOENT },
	{ "fchdir: our descriptor", { SYS_fchdir, 64 }, -EBADF },
	{ "getcwd: too small", { SYS_getcwd, BUF, 1 }, -ERANGE },
	{ "getcwd: outside", { SYS_getcwd, END + 1, 100 }, -EFAULT },
	{ "statfs: outside", { SYS_statfs, FILE_AT, END - 8 }, -EFAULT },
	{ "rename: onto outside", { SYS_rename, FILE_AT, 0 }, -EFAULT },
	{ "renameat2: RENAME_WHITEOUT",
	  { SYS_renameat2, 0xffffff9c, FILE_AT, 0xffffff9c, NEW_AT, 4 },
	  -EINVAL },
	{ "linkat: AT_EMPTY_PATH",
	  { SYS_linkat, 0, EMPTY_AT, 0xffffff9c, NEW_AT, 0x1000 },
	  -EINVAL },
	{ "unlinkat: flags", { SYS_unlinkat, 0xffffff9c, FILE_AT, 1 }, -EINVAL },
	{ "mknod: block device", { SYS_mknod, NEW_AT, 0060666, 0x801 }, -EPERM },
	{ "mknod: character device", { SYS_mknod, NEW_AT, 0020666, 0x103 }, -EPERM },
	{ "mknod: socket", { SYS_mknod, NEW_AT, 0140666, 0 }, -EPERM },
	{ "utimensat: times outside",
	  { SYS_utimensat, 0xffffff9c, FILE_AT, END - 16, 0 },
	  -EFAULT },
	{ "device: fchmod", { SYS_fchmod, 0, 037 }, -EPERM },
	{ "device: fchown", { SYS_fchown, 0, 26, 26 }, -EPERM },
	{ "device: futimens", { SYS_utimensat, 0, 0, BUF, 0 }, -EPERM },
	{ "device: chmod by name", { SYS_chmod, DEVICE_AT, 037 }, -EPERM },
	{ "device: chown by name", { SYS_chown, DEVICE_AT, 26, 26 }, -EPERM },
	{ "device: chmod by descriptor's name", { SYS_chmod, STDIN_AT, 037 }, -EPERM },
	{ "execve: null", { SYS_execve, 0, 0, 0 }, -EFAULT },
	{ "execve: forged command", { SYS_execve, FORGED_AT, 0, 0 }, -ENOEXEC },
	{ "execve: not executable", { SYS_execve, FILE_AT, 0, 0 }, -EACCES },
	{ "execve: a directory", { SYS_execve, EMPTY_AT + 8, 0, 0 }, -EACCES },
	{ "execve: not allowed", { SYS_execve, DENIED_AT, 0, 0 }, -EACCES },
	{ "execve: argv outside", { SYS_execve, TRUE_AT, LAST + 4, 0 }, -EFAULT },
	{ "execve: argv word outside", { SYS_execve, TRUE_AT, ARGV_AT, 0 }, -EFAULT },
	{ "wait4: status outside", { SYS_wait4, TOP, LAST + 1, 0, 0 }, -EFAULT },
	{ "wait4: __WALL", { SYS_wait4, TOP, 0, 0x40000000, 0 }, -EINVAL },
	{ "waitid: by descriptor", { SYS_waitid, 3, 0, 0, 4 }, -EINVAL },
	{ "kill: init", { SYS_kill, 1, 0 }, -EPERM },
	{ "kill: everyone", { SYS_kill, TOP, 0 }, -EPERM },
	{ "kill: INT_MIN", { SYS_kill, 0x80000000, 0 }, ANY_ERROR },
	{ "kill: the agent", { SYS_kill, 2147483000, 0 }, -EPERM },
	{ "tgkill: another process", { SYS_tgkill, 5, 6, 0 }, -ESRCH },
	{ "setuid: root", { SYS_setuid, 4242 }, -EPERM },
	{ "setresuid", { SYS_setresuid, TOP, TOP, 4242 }, -EPERM },
	{ "prlimit: another process", { SYS_prlimit64, 1, 7, 0, BUF }, -EPERM },
	{ "prlimit: more descriptors", { SYS_setrlimit, 7, BUF }, -EPERM },
	{ "setpriority: another", { SYS_setpriority, 0, 1, 0 }, -EPERM },
	{ "prctl: PR_SET_DUMPABLE", { SYS_prctl, PR_SET_DUMPABLE, 1 }, -EINVAL },
	{ "prctl: PR_SET_MM", { SYS_prctl, 35, 1 }, -EINVAL },
	{ "sysinfo: outside", { SYS_sysinfo, END - 8 }, -EFAULT },
	{ "uname: outside", { SYS_uname, END - 300 }, -EFAULT },
	{ "getrandom: outside", { SYS_getrandom, LAST, 8, 0 }, -EFAULT },
	{ "sched_getaffinity: another", { SYS_sched_getaffinity, 1, 128, BUF }, -EPERM },
	{ "clock_gettime: a process's clock", { SYS_clock_gettime, (uint32_t)~7, BUF }, -EINVAL },
	{ "clock_nanosleep: flags", { SYS_clock_nanosleep, 0, 2, BUF, 0 }, -EINVAL },
	{ "nanosleep: outside", { SYS_nanosleep, LAST, 0 }, -EFAULT },
	{ "setitimer: outside", { SYS_setitimer, 0, LAST, 0 }, -EFAULT },
	{ "rt_sigprocmask: outside", { SYS_rt_sigprocmask, 0, LAST, 0, 8 }, -EFAULT },
	{ "signals: unaligned area", { DOOR_SIGNALS, BUF + 1 }, -EFAULT },
	{ "signals: area outside", { DOOR_SIGNALS, END - 64 }, -EFAULT },
	{ "sigaction: SIGKILL", { DOOR_SIGACTION, 9, 2, 0 }, -EINVAL },
	{ "sigaction: signal 0", { DOOR_SIGACTION, 0, 2, 0 }, -EINVAL },
	{ "sigaction: signal 65", { DOOR_SIGACTION, 65, 2, 0 }, -EINVAL },
	{ "sigaction: how", { DOOR_SIGACTION, 10, 7, 0 }, -EINVAL },
	{ "sigaction: the runtime's own", { DOOR_SIGACTION, 34, 2, 0 }, -EINVAL },
	{ "take: null", { DOOR_TAKE, ~0ull, 0 }, -EFAULT },
	{ "take: outside", { DOOR_TAKE, ~0ull, END - 8 }, -EFAULT },
	{ "take: above 32 bits", { DOOR_TAKE, ~0ull, BUF + (1ull << 32) }, -EFAULT },
	{ "take: nothing has arrived", { DOOR_TAKE, ~0ull, BUF }, 0 },
	{ "mmap: outside", { SYS_mmap, END, 4096, 3, 0x22, TOP, 0 }, -EINVAL },
	{ "mmap: across the end", { SYS_mmap, END - 4096, 8192, 3, 0x22, TOP, 0 }, -EINVAL },
	{ "mmap: unaligned", { SYS_mmap, 65536 + 1, 4096, 3, 0x22, TOP, 0 }, -EINVAL },
	{ "mmap: executable", { SYS_mmap, 65536, 4096, 7, 0x22, TOP, 0 }, -EACCES },
	{ "mmap: other flags", { SYS_mmap, 65536, 4096, 3, 0x122, TOP, 0 }, -EOPNOTSUPP },
	{ "mmap: our descriptor", { SYS_mmap, 65536, 4096, 1, 1, 64, 0 }, -EBADF },
	{ "release: wraps", { DOOR_RELEASE, 65536, ~0ull & ~4095ull }, -EINVAL },
	{ "release: all and more", { DOOR_RELEASE, 4096, END }, -EINVAL },
	{ "arguments: outside", { DOOR_ARGS_COPY, LAST, 4 }, -EFAULT },
	{ "program: outside", { DOOR_PROGRAM, LAST + 2, 100 }, -EFAULT },
	{ "command: no session", { DOOR_COMMAND, BUF, 70000, 0 }, -ENOTTY },
	{ "checkpoint: unknown", { DOOR_CHECKPOINT, 9 }, -EINVAL },
	{ "ptrace", { SYS_ptrace, 0, 0, 0 }, -ENOSYS },
	{ "mount", { SYS_mount, FILE_AT, FILE_AT, 0, 0, 0 }, -ENOSYS },
	{ "clone", { SYS_clone, 0, 0, 0 }, -ENOSYS },
	{ "unshare", { SYS_unshare, 0x10000000 }, -ENOSYS },
	{ "bpf", { SYS_bpf, 0, 0, 0 }, -ENOSYS },
	{ "io_uring_setup", { SYS_io_uring_setup, 1, BUF }, -ENOSYS },
	{ "process_vm_writev", { SYS_process_vm_writev, 1, 0, 0, 0, 0 }, -ENOSYS },
	{ "number above the table", { 4095, 0, 0, 0 }, -ENOSYS },
	{ "number 2^63", { 1ull << 63, 0, 0, 0 }, -ENOSYS },
	{ "number between ours", { DOOR_OWN_END, 0, 0, 0 }, -ENOSYS },
};

static void put_strings(void)
{
	uint32_t bad = TOP - 2;

	fixture_string(FILE_AT, "/tmp/file");
	fixture_string(ESCAPE_AT, "/tmp/escape");
	fixture_string(UP_AT, "/tmp/up");
	fixture_string(DOTS_AT, "/../../../../../../../etc/passwd");
	fixture_string(SCRIPT_AT, "/tmp/script");
	fixture_string(TRUE_AT, "/usr/bin/true");
	fixture_string(DENIED_AT, "/usr/bin/denied");
	fixture_string(FORGED_AT, "/tmp/forged");
	fixture_string(EMPTY_AT, "");
	fixture_string(EMPTY_AT + 8, "/tmp");
	fixture_string(NEW_AT, "/tmp/new");
	fixture_string(PROC_AT, "/proc/self/mem");
	fixture_string(DEVICE_AT, "/dev/null");
	fixture_string(STDIN_AT, "/dev/stdin");
	memcpy(fixture_memory.data + ARGV_AT, &bad, 4);
	memset(fixture_memory.data + BUF, 0xff, 16); /* also "unlimited" for setrlimit */
	fixture.agent = 2147483000;
	fixture.allowed = calloc(2, 1);
	fixture.allowed[1] = true;
}

/* A process each: a fault in the door would be seen as a signal. */
static bool holds(const struct probe *t, int64_t *ret_got)
{
	int fds[2], status;
	pid_t pid;

	*ret_got = -99999;
	if (pipe(fds))
		return false;
	pid = fork();
	if (!pid) {
		const uint64_t *c = t->call;
		int64_t r;

		alarm(5);
		fixture_private_stdio();
		if (!strncmp(t->what, "device: ", 8))
			dup2(open("/dev/null", O_RDWR), 0);
		if (_setjmp(fixture.exec))
			_exit(77);
		r = fixture_call(c[0], c[1], c[2], c[3], c[4], c[5], c[6]);
		_exit(write(fds[1], &r, sizeof r) != sizeof r);
	}
	close(fds[1]);
	if (read(fds[0], ret_got, sizeof *ret_got) < 0)
		*ret_got = -99998;
	close(fds[0]);
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return false;
	if (t->want == ANY_ERROR)
		return *ret_got < 0 && *ret_got > -4096;
	return t->want == NOT_ERROR ? *ret_got >= 0 : *ret_got == t->want;
}

static bool is_swept(const struct door_entry *entry)
{
	static const int skip[] = { SYS_exit, SYS_exit_group, SYS_pause, SYS_rt_sigsuspend,
				    SYS_fork, SYS_vfork,      SYS_alarm, SYS_setitimer,
				    SYS_kill, SYS_tkill,      SYS_tgkill };

	for (size_t k = 0; k < sizeof skip / sizeof *skip; k++)
		if (entry->number == skip[k])
			return false;
	return !strstr(entry->name, "poll") && !strstr(entry->name, "select");
}

/* Every argument in turn a hostile value. */
static void sweep_one(const struct door_entry *entry)
{
	static const uint64_t values[] = { 0,    1,          64,      4095,       BUF,
					   LAST, END,        END + 1, 0x7fffffff, 0x80000000,
					   TOP,  1ull << 32, ~0ull,   1ull << 63 };
	bool sleeps = strstr(entry->name, "nanosleep");

	/* A limit of no CPU time, which zeroed memory asks for, would end this process. */
	if (strstr(entry->name, "rlimit"))
		memset(fixture_memory.data, 0xff, END);
	for (size_t i = 0; i < 6 * sizeof values / sizeof *values; i++) {
		uint64_t c[6] = { 0, BUF, 8, 0, 0, 0 }, value = values[i / 6];

		/* A wait that is asked for is no fault. */
		if (sleeps && value < LAST && value != BUF)
			continue;
		if (sleeps)
			memset(fixture_memory.data + BUF, 0, 16);
		c[i % 6] = value;
		fixture_call((uint64_t)entry->number, c[0], c[1], c[2], c[3], c[4], c[5]);
	}
}

/* Every call of the table: an answer, never a fault. */
static int sweep(int number, int *failed)
{
	for (size_t i = 0; i < door_count; i++) {
		int status;
		pid_t pid;

		if (!is_swept(&door_table[i]))
			continue;
		fixture_new_root(); /* the call before may have left it closed */
		pid = fork();
		if (!pid) {
			alarm(20);
			fixture_private_stdio();
			if (!_setjmp(fixture.exec))
				sweep_one(&door_table[i]);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		number++;
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			printf("not ");
			(*failed)++;
		}
		printf("ok %d - sweep %s\n", number, door_table[i].name);
	}
	return number;
}

/* Another process of the guest lengthens and shortens a word in memory that both have, while this
 * one hands it in: what is checked must be what is used. */
#define SHARED_AT (END / 2)
#define SHARED_BYTES 8192u

static void flip_for_ever(void)
{
	volatile char *end = (volatile char *)fixture_memory.data + SHARED_AT + 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		*end = *end ? 0 : 'f';
}

static void hand_in(int calls)
{
	const uint32_t argv[2] = { SHARED_AT, 0 };
	volatile int i = 0;

	memcpy(fixture_memory.data + ARGV_AT, argv, sizeof argv);
	_setjmp(fixture.exec); /* an exec that went well comes back here */
	while (i++ < calls) {
		fixture_call(SYS_access, SHARED_AT, 0, 0, 0, 0, 0);
		fixture_call(SYS_open, SHARED_AT, O_RDONLY, 0, 0, 0, 0);
		fixture_call(SYS_execve, TRUE_AT, ARGV_AT, 0, 0, 0, 0);
	}
}

static bool holds_while_changing(void)
{
	int status;
	pid_t pid, other;
	char *word = fixture_call(SYS_mmap, SHARED_AT, SHARED_BYTES, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, 0, 0) == SHARED_AT
			     ? (char *)fixture_memory.data + SHARED_AT
			     : NULL;

	if (!word)
		return false;
	fixture_new_root();
	memset(word, 'f', 4090);
	other = fork();
	if (!other)
		flip_for_ever();
	pid = fork();
	if (!pid) {
		fixture_private_stdio();
		hand_in(20000);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void rename_for_ever(const char *one, const char *other)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (rename(one, other) || rename(other, one))
			_exit(1);
}

/* What happens to other files is nothing that a lookup of the guest's may fail for. */
static bool holds_while_renaming(void)
{
	char one[64], two[72];
	int wrong = 0;
	pid_t other;

	fixture_new_root();
	snprintf(one, sizeof one, "/tmp/door-rename-%d", (int)getpid());
	snprintf(two, sizeof two, "%s-2", one);
	close(open(one, O_CREAT | O_WRONLY, 0600));
	fixture_string(NEW_AT, "/usr/../usr/../usr/../usr/../usr/../usr/../usr/../usr/..");
	other = fork();
	if (!other)
		rename_for_ever(one, two);
	for (int i = 0; i < 20000; i++)
		wrong += fixture_call(SYS_stat, NEW_AT, BUF, 0, 0, 0, 0) != 0;
	if (waitpid(other, NULL, WNOHANG))
		wrong++; /* it was to go on */
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	unlink(one);
	unlink(two);
	return !wrong;
}

static void tell(int number, bool ok, const char *what, int *failed)
{
	*failed += !ok;
	printf("%sok %d - %s\n", ok ? "" : "not ", number, what);
}

int main(void)
{
	int number = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	fixture_open();
	put_strings();
	for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
		int64_t got;
		bool ok = holds(&probes[i], &got);

		failed += !ok;
		printf("%s %d - %s", ok ? "ok" : "not ok", ++number, probes[i].what);
		if (ok)
			printf("\n");
		else
			printf(" (got %lld, want %lld)\n", (long long)got,
			       (long long)probes[i].want);
	}
	number = sweep(number, &failed);
	tell(++number, holds_while_changing(), "memory that another process changes", &failed);
	tell(++number, holds_while_renaming(), "lookups of .. while others rename", &failed);
	printf("1..%d\n", number);
	return failed != 0;
}
