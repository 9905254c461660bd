/* wall/linux/probe/space.c - see space.h. Attacks on namespaces, mounts and ids. */
#include "wall/linux/probe/space.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wall/linux/kernel.h"
#include "wall/linux/probe/attacks.h"
#include "wall/linux/probe/list.h"

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	int e = write(fd, text, strlen(text)) < 0 ? errno : 0;
	close(fd);
	return e;
}

static int enter_space(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char map[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
		    CLONE_NEWUTS | CLONE_NEWCGROUP) != 0)
		return errno;
	int e = write_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (!e)
		e = write_text("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	if (!e)
		e = write_text("/proc/self/gid_map", map);
	if (!e && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		e = errno;
	if (!e && mount("probe", "/tmp", "tmpfs", 0, "size=1m") != 0)
		e = errno;
	return e;
}

int space_run(probe_fn fn, const struct bait *b)
{
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) /* its first child is in the new pid namespace */
		probe_exit(enter_space() ? NOT_HERE : probe_in_child(fn, b));
	return probe_decode(probe_wait(pid));
}

int probe_userns_unshare(const struct bait *b)
{
	(void)b;
	return probe_verdict(unshare(CLONE_NEWUSER));
}

int probe_userns_clone(const struct bait *b)
{
	(void)b;
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return probe_verdict(pid);
}

int probe_userns_clone3(const struct bait *b)
{
	struct clone3_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	(void)b;
	if (pid == 0)
		_exit(0);
	return probe_verdict(pid);
}

int probe_netns_unshare(const struct bait *b)
{
	(void)b;
	return probe_verdict(unshare(CLONE_NEWNET));
}

int probe_timens_unshare(const struct bait *b)
{
	(void)b;
	return probe_verdict(unshare(0x80 /* CLONE_NEWTIME */));
}

/* The supervisor is in the host's pid, mount and network namespaces. */
int probe_setns_parent(const struct bait *b)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/uts", b->is_control ? getpid() : getppid());
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return probe_verdict(setns(fd, 0));
	int pidfd = (int)syscall(SYS_pidfd_open, b->is_control ? getpid() : getppid(), 0);
	return pidfd < 0 ? errno : probe_verdict(setns(pidfd, CLONE_NEWUTS));
}

int probe_mount_tmpfs(const struct bait *b)
{
	(void)b;
	return probe_verdict(mount("probe", "/tmp", "tmpfs", 0, NULL));
}

int probe_mount_bind(const struct bait *b)
{
	(void)b;
	return probe_verdict(mount("/proc/self", "/tmp", NULL, MS_BIND, NULL));
}

int probe_mount_remount(const struct bait *b)
{
	struct statvfs s;
	unsigned long keep = 0;

	(void)b;
	if (statvfs("/", &s) == 0)
		keep = s.f_flag & (ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_NOATIME | ST_RELATIME);
	return probe_verdict(mount(NULL, "/", NULL,
				   MS_REMOUNT | MS_BIND | (keep & ST_NOSUID ? MS_NOSUID : 0) |
					   (keep & ST_NODEV ? MS_NODEV : 0) |
					   (keep & ST_NOEXEC ? MS_NOEXEC : 0) |
					   (keep & ST_RELATIME ? MS_RELATIME : 0),
				   NULL));
}

int probe_mount_proc(const struct bait *b)
{
	(void)b;
	return probe_verdict(mount("proc", "/tmp", "proc", 0, NULL));
}

int probe_mount_cgroup(const struct bait *b)
{
	(void)b;
	return probe_verdict(mount("none", "/tmp", "cgroup2", 0, NULL));
}

int probe_mount_setattr(const struct bait *b)
{
	struct mount_attr_args attr = { .attr_clr = ATTR_NOEXEC };

	(void)b;
	return probe_verdict(syscall(SYS_mount_setattr, AT_FDCWD, "/tmp", 0, &attr, sizeof(attr)));
}

int probe_umount(const struct bait *b)
{
	(void)b;
	return probe_verdict(umount2("/tmp", MNT_DETACH));
}

int probe_fsopen(const struct bait *b)
{
	(void)b;
	return probe_verdict(syscall(430 /* fsopen */, "tmpfs", 0));
}

int probe_open_tree(const struct bait *b)
{
	(void)b;
	return probe_verdict(syscall(428 /* open_tree */, AT_FDCWD, "/tmp",
				     1 /* OPEN_TREE_CLONE */ | O_CLOEXEC));
}

int probe_pivot_root(const struct bait *b)
{
	(void)b;
	if (chdir("/tmp") != 0)
		return errno;
	return probe_verdict(syscall(SYS_pivot_root, ".", "."));
}

int probe_chroot(const struct bait *b)
{
	(void)b;
	return probe_verdict(chroot("/tmp"));
}

int probe_hostname(const struct bait *b)
{
	(void)b;
	return probe_verdict(sethostname("probe", 5));
}

int probe_become_root(const struct bait *b)
{
	(void)b;
	return probe_verdict(syscall(SYS_setresuid, 0, 0, 0));
}

static bool has_ids(uid_t uid, gid_t gid)
{
	uid_t u[3];
	gid_t g[3];

	/* Where these calls are refused too, nothing can have changed what they say. */
	if (getresuid(&u[0], &u[1], &u[2]) != 0)
		u[0] = u[1] = u[2] = geteuid();
	if (getresgid(&g[0], &g[1], &g[2]) != 0)
		g[0] = g[1] = g[2] = getegid();
	const long user = syscall(SYS_setfsuid, -1), group = syscall(SYS_setfsgid, -1);

	return u[0] == uid && u[1] == uid && u[2] == uid && g[0] == gid && g[1] == gid &&
	       g[2] == gid && (user < 0 || (uid_t)user == uid) &&
	       (group < 0 || (gid_t)group == gid);
}

/* Each call of the family, each argument; some return no error. Groups first: root may not change
 * them afterwards. */
static int change_ids(const struct bait *b)
{
	static const long calls[] = { SYS_setgid,    SYS_setregid, SYS_setresgid, SYS_setfsgid,
				      SYS_setresuid, SYS_setreuid, SYS_setuid,    SYS_setfsuid };
	const uid_t uid = getuid();
	const gid_t gid = getgid();
	const long others[] = { 0, uid + 1L, gid + 1L, 65534, -2 };

	(void)b;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		for (size_t k = 0; k < sizeof(others) / sizeof(*others); k++)
			for (int mask = 1; mask < 8; mask++)
				(void)syscall(calls[i], mask & 1 ? others[k] : -1L,
					      mask & 2 ? others[k] : -1L,
					      mask & 4 ? others[k] : -1L);
	gid_t group = gid + 1;
	if (syscall(SYS_setgroups, 1, &group) == 0)
		return 0;
	return has_ids(uid, gid) ? EPERM : 0;
}

int probe_change_ids(const struct bait *b)
{
	return probe_in_child(change_ids, b);
}

/* Capabilities that we have, or could get from a program with file capabilities. */
int probe_capabilities(const struct bait *b)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	(void)b;
	if (syscall(SYS_capget, &head, data) != 0)
		return errno;
	if (data[0].effective | data[0].permitted | data[1].effective | data[1].permitted)
		return 0;
	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			return 0;
	return EPERM;
}

int probe_uid_map(const struct bait *b)
{
	(void)b;
	return probe_verdict(open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC));
}
