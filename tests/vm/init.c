/* vm/init.c - the first program of a virtual machine: loads the modules beside it, mounts the file
 * systems, runs the tests and turns the machine off. Static; its archive contains nothing else. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 5000 };

static bool load(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "/modules/%s", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	long r = fd < 0 ? -1 : syscall(SYS_finit_module, fd, "", 0);
	if (fd >= 0)
		close(fd);
	return r == 0;
}

/* In whatever order they need each other: what could not be loaded is tried again. */
static void load_modules(void)
{
	for (int round = 0; round < 8; round++) {
		DIR *d = opendir("/modules");

		for (struct dirent *e; d && (e = readdir(d));)
			if (e->d_name[0] != '.')
				(void)load(e->d_name);
		if (d)
			closedir(d);
	}
}

static int mount_disk(const char *disk, const char *place)
{
	/* The driver finds its disks while we look. */
	for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
		if (mount(disk, place, "ext4", 0, NULL) == 0)
			return 0;
		usleep(10000);
	}
	fprintf(stderr, "cannot mount %s: %s\n", disk, strerror(errno));
	return -1;
}

static int build(void)
{
	static const struct {
		const char *place, *type, *data;
	} mounts[] = { { "/root/proc", "proc", NULL },
		       { "/root/sys", "sysfs", NULL },
		       { "/root/dev", "devtmpfs", NULL },
		       { "/root/dev/shm", "tmpfs", NULL },
		       { "/root/dev/pts", "devpts", "mode=620,ptmxmode=666" },
		       { "/root/tmp", "tmpfs", "mode=1777" },
		       { "/root/run", "tmpfs", "mode=755" } };

	load_modules();
	mkdir("/root", 0755);
	if (mount_disk("/dev/vda", "/root") != 0 || mount_disk("/dev/vdb", "/root/vm") != 0)
		return -1;
	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		(void)mkdir(mounts[i].place, 0755);
		if (mount(mounts[i].type, mounts[i].place, mounts[i].type, 0, mounts[i].data) != 0)
			fprintf(stderr, "cannot mount %s: %s\n", mounts[i].place, strerror(errno));
	}
	/* The root is moved, not pivoted: a mount namespace can then be made below it. */
	if (chdir("/root") != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 ||
	    chdir("/") != 0)
		return -1;
	return 0;
}

int main(void)
{
	static char *const argv[] = { "/usr/bin/python3", "/vm/src/tests/vm/inside", NULL };
	static char *const env[] = { "PATH=/usr/bin:/bin:/usr/sbin:/sbin",
				     "HOME=/root",
				     "LANG=C.UTF-8",
				     "CORDON=/vm/build/cordon",
				     "BUILD=/vm/build",
				     "CORDON_SLOWNESS=20",
				     NULL };
	int status;

	mkdir("/dev", 0755);
	(void)mount("dev", "/dev", "devtmpfs", 0, NULL);
	if (build() == 0) {
		pid_t pid = fork();
		if (pid == 0) {
			setsid();
			execve(argv[0], argv, env);
			perror(argv[0]);
			_exit(127);
		}
		for (pid_t dead; (dead = wait(&status)) > 0 || errno == EINTR;)
			if (dead == pid)
				break;
	}
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
