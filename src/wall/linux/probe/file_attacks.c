/* wall/linux/probe/file_attacks.c - attacks on files, devices and kernel interfaces that look like
 * files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "wall/linux/probe/attacks.h"

static int can_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* The first path that opens decides. ENOENT for all: there is nothing to attack here. */
static int can_open_any(const char *const *paths, int flags, const struct bait *b)
{
	int worst = ENOENT;

	for (; *paths; paths++) {
		int e = can_open(*paths, flags);
		if (e == 0)
			return 0;
		if (e != ENOENT)
			worst = e;
	}
	return worst == ENOENT && b->is_control ? NOT_HERE : worst;
}

int probe_host_file(const struct bait *b)
{
	return probe_find_secret(b->file, b->secret);
}

int probe_host_dotdot(const struct bait *b)
{
	char path[4200] = "";

	for (size_t i = 0; i < 40; i++)
		memcpy(path + 3 * i, "../", 4);
	strncat(path, b->file + 1, sizeof(path) - strlen(path) - 1);
	return chdir("/tmp") != 0 ? errno : probe_find_secret(path, b->secret);
}

int probe_host_symlink(const struct bait *b)
{
	char link[192];

	probe_name(link, sizeof(link), "cordon-probe-link");
	if (symlink(b->file, link) != 0)
		return errno;
	int r = probe_find_secret(link, b->secret);
	(void)unlink(link);
	return r;
}

static int through(const char *prefix, const struct bait *b)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/../../../..%s", prefix, b->file);
	return probe_find_secret(path, b->secret);
}

int probe_host_self_root(const struct bait *b)
{
	return through("/proc/self/root", b);
}

int probe_host_self_cwd(const struct bait *b)
{
	return through("/proc/self/cwd/../../../..", b);
}

static int open_shared(const struct bait *b, const char *name, int flags)
{
	char path[160];

	snprintf(path, sizeof(path), "%s%s", b->is_control ? b->shared_host : b->shared, name);
	return open(path, flags | O_CLOEXEC);
}

/* A process that opens it for writing would wait for us. */
int probe_mounted_lease(const struct bait *b)
{
	int fd = open_shared(b, "/locked", O_RDONLY);

	return fd < 0 ? errno : probe_verdict(fcntl(fd, F_SETLEASE, F_RDLCK));
}

int probe_mounted_flock(const struct bait *b)
{
	int fd = open_shared(b, "/locked", O_RDONLY);

	return fd < 0 ? errno : probe_verdict(flock(fd, LOCK_EX | LOCK_NB));
}

int probe_mounted_notify(const struct bait *b)
{
	int fd = open_shared(b, "", O_RDONLY | O_DIRECTORY);

	(void)signal(SIGIO, SIG_IGN);
	return fd < 0 ? errno : probe_verdict(fcntl(fd, F_NOTIFY, DN_CREATE));
}

int probe_shadow(const struct bait *b)
{
	(void)b;
	return can_open("/etc/shadow", O_RDONLY);
}

int probe_write_usr(const struct bait *b)
{
	static const char *const paths[] = { "/usr/bin/true",
					     "/usr/bin/bash",
					     "/usr/bin/python3",
					     "/usr/lib/x86_64-linux-gnu/libc.so.6",
					     "/usr/lib/aarch64-linux-gnu/libc.so.6",
					     NULL };
	int r = can_open_any(paths, O_WRONLY, b);

	return r == ETXTBSY ? 0 : r;
}

int probe_write_etc(const struct bait *b)
{
	(void)b;
	return can_open("/etc/passwd", O_WRONLY);
}

/* The control uses its own root: the tmpfs on /tmp. */
int probe_write_root(const struct bait *b)
{
	if (b->is_control && chroot("/tmp") != 0)
		return NOT_HERE;
	return can_open("/cordon-probe", O_CREAT | O_WRONLY);
}

/* ETXTBSY: writing is allowed, only not while the program runs. */
int probe_write_self(const struct bait *b)
{
	int r = can_open("/proc/self/exe", O_WRONLY);

	(void)b;
	return r == ETXTBSY ? 0 : r;
}

/* Sets what is already set. Landlock does not cover modes and times. */
int probe_host_chmod(const struct bait *b)
{
	return probe_verdict(chmod(b->file, 0644));
}

int probe_host_times(const struct bait *b)
{
	return probe_verdict(utimensat(AT_FDCWD, b->file, NULL, 0));
}

int probe_host_truncate(const struct bait *b)
{
	return probe_verdict(truncate(b->file, (off_t)strlen(b->secret)));
}

int probe_hard_link(const struct bait *b)
{
	static const char *const targets[] = { "/usr/bin/su",
					       "/usr/bin/bash",
					       "/usr/bin/passwd",
					       "/usr/bin/python3.11",
					       "/etc/passwd",
					       "/etc/ld.so.cache",
					       NULL };
	char own[192], to[192];
	int worst = ENOENT;

	probe_name(own, sizeof(own), "cordon-probe-own");
	probe_name(to, sizeof(to), "cordon-probe-hard");
	if (b->is_control) { /* a file of our own replaces the host's */
		worst = can_open(own, O_CREAT | O_WRONLY);
		if (worst == 0)
			worst = probe_verdict(link(own, to));
		(void)unlink(own);
	}
	for (const char *const *t = targets; !b->is_control && *t; t++) {
		if (link(*t, to) == 0) {
			worst = 0;
			break;
		}
		worst = errno == ENOENT ? worst : errno;
	}
	(void)unlink(to);
	return worst;
}

int probe_device_node(const struct bait *b)
{
	char path[192];

	(void)b;
	probe_name(path, sizeof(path), "cordon-probe-dev");
	if (mknod(path, S_IFCHR | 0600, makedev(1, 1)) != 0)
		return errno;
	(void)unlink(path);
	return 0;
}

int probe_file_capability(const struct bait *b)
{
	static const unsigned char all[20] = { 1, 0, 0, 2, 0, 0, 0, 1 };
	char path[192];

	(void)b;
	probe_name(path, sizeof(path), "cordon-probe-cap");
	int r = can_open(path, O_CREAT | O_WRONLY);
	if (r == 0)
		r = probe_verdict(setxattr(path, "security.capability", all, sizeof(all), 0));
	(void)unlink(path);
	return r;
}

/* A setuid program gives its owner's rights unless the mount or the process forbids it. */
int probe_setuid_honoured(const struct bait *b)
{
	struct statvfs s;

	(void)b;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return EPERM;
	if (statvfs("/usr", &s) != 0)
		return errno;
	return s.f_flag & ST_NOSUID ? EPERM : 0;
}

int probe_core_pattern(const struct bait *b)
{
	(void)b;
	return can_open("/proc/sys/kernel/core_pattern", O_WRONLY);
}

int probe_release_agent(const struct bait *b)
{
	static const char *const paths[] = { "/sys/fs/cgroup/memory/release_agent",
					     "/sys/fs/cgroup/pids/release_agent",
					     "/sys/fs/cgroup/cpu/release_agent",
					     "/sys/fs/cgroup/freezer/release_agent", NULL };

	return can_open_any(paths, O_WRONLY, b);
}

int probe_cgroup_tasks(const struct bait *b)
{
	static const char *const paths[] = { "/sys/fs/cgroup/memory/tasks",
					     "/sys/fs/cgroup/cgroup.procs",
					     "/sys/fs/cgroup/unified/cgroup.procs", NULL };

	return can_open_any(paths, O_WRONLY, b);
}

int probe_sysctl_read(const struct bait *b)
{
	(void)b;
	return can_open("/proc/sys/kernel/osrelease", O_RDONLY);
}

int probe_proc_leaks(const struct bait *b)
{
	static const char *const paths[] = {
		"/proc/kallsyms",   "/proc/modules",     "/proc/cmdline",
		"/proc/kcore",      "/proc/kmsg",        "/proc/keys",
		"/proc/iomem",      "/proc/interrupts",  "/proc/config.gz",
		"/proc/partitions", "/proc/vmstat",      "/proc/sysrq-trigger",
		"/proc/1/maps",     "/proc/filesystems", NULL
	};

	return can_open_any(paths, O_RDONLY, b);
}

/* Compares the kernel's number with the file. */
int probe_proc_memory(const struct bait *b)
{
	struct sysinfo host;
	char total[64];

	(void)b;
	if (sysinfo(&host) != 0)
		return errno;
	snprintf(total, sizeof(total), " %llu kB\n",
		 (unsigned long long)host.totalram * host.mem_unit / 1024);
	return probe_find_secret("/proc/meminfo", total);
}

int probe_sysfs(const struct bait *b)
{
	static const char *const paths[] = { "/sys/class/net", "/sys/kernel/notes", "/sys/devices",
					     "/sys/fs/cgroup", NULL };

	return can_open_any(paths, O_RDONLY, b);
}

int probe_oom_score(const struct bait *b)
{
	(void)b;
	return can_open("/proc/self/oom_score_adj", O_WRONLY);
}

int probe_dev_kmsg(const struct bait *b)
{
	static const char *const paths[] = { "/dev/kmsg", NULL };

	return can_open_any(paths, O_RDONLY, b);
}

/* A container's device cgroup may refuse root too; then there is no control. */
int probe_dev_mem(const struct bait *b)
{
	static const char *const paths[] = { "/dev/mem",     "/dev/port", "/dev/vda",   "/dev/sda",
					     "/dev/nvme0n1", "/dev/xvda", "/dev/loop0", "/dev/dm-0",
					     "/dev/mmcblk0", NULL };
	int r = can_open_any(paths, O_RDONLY, b);

	return r == EPERM && b->is_control ? NOT_HERE : r;
}

int probe_dev_ptmx(const struct bait *b)
{
	static const char *const paths[] = { "/dev/ptmx", "/dev/pts/ptmx", NULL };

	return can_open_any(paths, O_RDWR, b);
}

/* For the control there is at least its own. Inside, a guest that joins a place sees the devpts of
 * the place, which has no terminal yet. */
int probe_dev_pts(const struct bait *b)
{
	(void)b;
	for (int i = 0; i < 4096; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "/dev/pts/%d", i);
		int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0) {
			close(fd);
			return 0;
		}
	}
	return ENOENT;
}

int probe_dev_kvm(const struct bait *b)
{
	static const char *const paths[] = { "/dev/kvm",   "/dev/fuse",    "/dev/net/tun",
					     "/dev/vsock", "/dev/console", "/dev/tty",
					     NULL };

	return can_open_any(paths, O_RDWR, b);
}
