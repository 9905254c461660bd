/* inside/init/notify.c - see notify.h. What is recorded here is evidence for the result. The
 * refusal does not depend on it: if this process is gone, the kernel returns ENOSYS. */
#include "inside/init/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "inside/init/locks.h"
#include "wall/linux/kernel.h"

/* Best effort: the path argument as it is in the guest's memory now; false: incomplete. */
static bool read_path(pid_t pid, uint64_t address, char *ret, size_t size)
{
	struct iovec local = { .iov_base = ret, .iov_len = size - 1 };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = size - 1 };
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	/* A read across the end of a mapping fails as a whole: read only to the end of the page. */
	if (n < 0) {
		size_t left = 4096 - (address & 4095);
		local.iov_len = remote.iov_len = left < size - 1 ? left : size - 1;
		n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	}
	bool is_whole = n > 0 && memchr(ret, '\0', (size_t)n);
	ret[n > 0 ? n : 0] = '\0';
	return is_whole;
}

/* Limits the targets listed per call; the rest is only counted. Otherwise a guest could fill the
 * page with the targets of one call and hide later refusals. For programs this applies to each
 * reason separately, because the reason says which layer refuses. */
static uint32_t targets_of(uint32_t nr)
{
	return nr == SYS_execve ? STATUS_DENIALS / 3 : 4;
}

static struct status_denial *find(struct status *s, uint32_t nr, uint64_t arg, const char *name)
{
	char target[STATUS_TARGET] = "";
	uint32_t same = 0, most = targets_of(nr);

	memcpy(target, name, strnlen(name, sizeof(target) - 1));
	for (uint32_t i = 0; i < s->denial_count; i++) {
		struct status_denial *d = &s->denials[i];

		if (d->syscall_nr != nr || (nr == SYS_execve && d->arg != arg))
			continue;
		if (d->arg == arg && strcmp(d->target, target) == 0)
			return d;
		if (++same == most) /* only counted */
			return d;
	}
	if (s->denial_count == STATUS_DENIALS) {
		s->denials_lost++;
		return NULL;
	}
	struct status_denial *d = &s->denials[s->denial_count];
	d->syscall_nr = nr;
	d->is_rest = same + 1 == most;
	if (!d->is_rest || nr == SYS_execve)
		d->arg = arg;
	if (!d->is_rest)
		memcpy(d->target, target, sizeof(target));
	s->denial_count++;
	return d;
}

static uint64_t socket_kind(uint64_t type)
{
	if ((type & 0xf) != SOCK_DGRAM)
		return 0;
	return STATUS_DATAGRAM | (type & SOCK_NONBLOCK ? STATUS_LOOKUP : 0);
}

static uint64_t telling_arg(const struct seccomp_data *d)
{
	switch (d->nr) {
	case SYS_socket: /* the kernel reads ints */
		return (d->args[0] & 0xffffffff) | socket_kind(d->args[1]);
	case SYS_clone:
	case SYS_unshare:
	case SYS_ptrace:
	case SYS_keyctl:
	case SYS_bpf:
	case SYS_prctl:
		return d->args[0];
	case SYS_setns:
	case SYS_memfd_create:
	case SYS_ioctl:
		return d->args[1];
	default:
		return 0;
	}
}

static bool has_path(int nr, int *ret_arg)
{
	switch (nr) {
	case SYS_mount:
		*ret_arg = 1;
		return true;
	case SYS_umount2:
	case SYS_chroot:
	case SYS_mknod:
	case SYS_execve:
		*ret_arg = 0;
		return true;
	case SYS_mknodat:
		*ret_arg = 1;
		return true;
	default:
		return false;
	}
}

static int refusal(int nr)
{
	return nr == SYS_socket ? EACCES : EPERM;
}

static void count(struct job *j, const struct seccomp_data *d, uint64_t arg, const char *target)
{
	struct status_denial *denial = find(j->status, (uint32_t)d->nr, arg, target);

	if (denial)
		denial->count++;
}

/* A search along PATH tries one name in every directory. It is reported by that name. */
static const char *const program_dirs[] = { "/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/",
					    "/usr/bin/",        "/sbin/",          "/bin/" };
enum { PROGRAM_DIRS = sizeof(program_dirs) / sizeof(*program_dirs) };

static const char *command_name(const char *path)
{
	for (size_t i = 0; i < PROGRAM_DIRS; i++)
		if (strncmp(path, program_dirs[i], strlen(program_dirs[i])) == 0)
			return path + strlen(program_dirs[i]);
	return path;
}

/* Whether the search will find it in another directory. */
static bool is_found_elsewhere(const char *name)
{
	char path[PATH_MAX + 32];
	struct stat st;

	for (size_t i = 0; name[0] != '/' && i < PROGRAM_DIRS; i++) {
		(void)snprintf(path, sizeof(path), "%s%s", program_dirs[i], name);
		if (stat(path, &st) == 0)
			return true;
	}
	return false;
}

static bool is_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Whether a rule of the plan allows executing what is at this path, which has no links. */
static bool has_exec_rule(const struct job *j, const char *path)
{
	const struct plan_rule *rules = plan_at(j, j->plan->rules);

	for (uint32_t i = 0; i < j->plan->rule_count; i++)
		if ((rules[i].access & LL_FS_EXECUTE) &&
		    is_beneath(path, plan_text(j, rules[i].path)))
			return true;
	return false;
}

/* The path of an open file, without links; false: it is too long. */
static bool real_path(int file, char *ret, size_t size)
{
	char link[32];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	ssize_t n = readlink(link, ret, size - 1);
	ret[n > 0 ? n : 0] = '\0';
	return n > 0 && (size_t)n < size - 1;
}

/* Opens what a path of that process leads to. */
static int open_for(pid_t pid, const char *path)
{
	char from[PATH_MAX + 32];

	if (path[0] == '/')
		return open(path, O_PATH | O_CLOEXEC);
	(void)snprintf(from, sizeof(from), "/proc/%d/cwd/%s", (int)pid, path);
	return open(from, O_PATH | O_CLOEXEC);
}

/* Reads the program of a file's #! line. Not from mounts of the host, which may hang. */
static bool read_interpreter(int file, const char *path, char *ret, size_t size)
{
	char link[32];
	struct statfs fs;
	struct stat st;

	if (fstat(file, &st) != 0 || !S_ISREG(st.st_mode) || fstatfs(file, &fs) != 0 ||
	    (fs.f_type != TMPFS_MAGIC && !is_beneath(path, "/usr")))
		return false;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	int fd = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);
	if (fd >= 0)
		close(fd);
	ret[n > 0 ? n : 0] = '\0';
	if (strncmp(ret, "#!", 2) != 0)
		return false;
	size_t skip = 2 + strspn(ret + 2, " \t");
	size_t len = strcspn(ret + skip, " \t\n");
	memmove(ret, ret + skip, len);
	ret[len] = '\0';
	return ret[0] == '/';
}

/* A script needs its interpreter, which a list of commands may not name. */
static void foretell_interpreter(struct job *j, const struct seccomp_data *d, int script,
				 const char *path)
{
	char program[256], real[PATH_MAX];

	if (has_exec_rule(j, "/usr/bin") ||
	    !read_interpreter(script, path, program, sizeof(program)))
		return;
	int file = open(program, O_PATH | O_CLOEXEC);
	if (file < 0)
		count(j, d, EXEC_ABSENT, command_name(program));
	else if (real_path(file, real, sizeof(real)) && !has_exec_rule(j, real))
		count(j, d, EXEC_REFUSED, program);
	if (file >= 0)
		close(file);
}

/* The call continues in any case: the mount view and Landlock decide, on the path that the kernel
 * reads itself. This only predicts for the result whether they will refuse. */
static void foretell_exec(struct job *j, const struct seccomp_notif *req, const char *path,
			  bool is_whole)
{
	const struct seccomp_data *d = &req->data;
	char real[PATH_MAX];

	if (!path[0]) /* the memory of a session forked from a template cannot be read */
		count(j, d, EXEC_UNSEEN, "");
	if (!path[0] || !is_whole)
		return;
	const char *name = command_name(path);
	int file = open_for((pid_t)req->pid, path);

	/* Where programs may be executed, one that is not there is not installed. */
	bool is_everything = has_exec_rule(j, name[0] == '/' ? name : "/usr/bin");
	if (file < 0 && path[0] == '/' && !is_everything && !is_found_elsewhere(name))
		count(j, d, EXEC_ABSENT, name);
	if (file >= 0 && !(j->plan->flags & PLANF_NO_LANDLOCK) &&
	    real_path(file, real, sizeof(real))) {
		if (has_exec_rule(j, real))
			foretell_interpreter(j, d, file, real);
		else
			count(j, d, EXEC_REFUSED, path[0] == '/' ? path : real);
	}
	if (file >= 0)
		close(file);
}

void notify_prepare(int listener)
{
	if (listener >= 0)
		(void)ioctl(listener, NOTIFY_SET_FLAGS, 1 /* SYNC_WAKE_UP */);
}

void notify_answer(struct job *j, int listener)
{
	struct seccomp_notif req = { 0 };
	struct seccomp_notif_resp resp = { 0 };
	char target[PATH_MAX] = "";
	bool is_whole = false;
	int arg;

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req) != 0)
		return;
	if (has_path(req.data.nr, &arg))
		is_whole = read_path((pid_t)req.pid, req.data.args[arg], target, sizeof(target));
	resp.id = req.id;
	if (req.data.nr == SYS_fcntl || req.data.nr == SYS_flock) {
		bool may = req.data.nr == SYS_fcntl
				   ? locks_may_add(j)
				   : locks_may_flock(j, (pid_t)req.pid, (int)req.data.args[0]);
		resp.error = may ? 0 : -ENOLCK;
		resp.flags = resp.error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	} else if (req.data.nr == SYS_execve) {
		foretell_exec(j, &req, target, is_whole);
		resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	} else {
		count(j, &req.data, telling_arg(&req.data), target);
		resp.error = -refusal(req.data.nr);
	}
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}
