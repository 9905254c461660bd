/* inside/init/skeleton.c - see skeleton.h. */
#include "inside/init/skeleton.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "inside/init/root.h"
#include "wall/linux/kernel.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* Enough, except for a launch with many files of its own. */
#define ROOT_DATA "size=8388608,nr_inodes=4096,mode=755"

/* Step numbers for failures here; lower numbers are the plan's steps. */
enum { FIRST_STEP = 1 << 20 };

static const char *const dirs[] = { "usr",  "etc",       "dev", "proc",      "run", "run/cordon",
				    "home", "home/user", "tmp", "workspace", "mnt", "var" };

static const char *const links[][2] = {
	{ "usr/bin", "bin" },
	{ "usr/sbin", "sbin" },
	{ "usr/lib", "lib" },
	{ "usr/lib64", "lib64" },
	{ "/proc/self/fd", "dev/fd" },
	{ "/proc/self/fd/0", "dev/stdin" },
	{ "/proc/self/fd/1", "dev/stdout" },
	{ "/proc/self/fd/2", "dev/stderr" },
	{ "/tmp", "dev/shm" },
	{ "/tmp", "var/tmp" },
};

static const char *const files[][2] = {
	{ "etc/passwd", "root:x:0:0:root:/:/bin/false\n"
			"user:x:1000:1000:Cordon guest:/home/user:/bin/bash\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n" },
	{ "etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n" },
	{ "etc/hostname", "sandbox\n" },
	{ "etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
	{ "etc/os-release", "NAME=\"Cordon sandbox\"\nID=cordon\nPRETTY_NAME=\"Cordon "
			    "sandbox\"\nVERSION_ID=\"" CORDON_VERSION "\"\n" },
	{ "run/.landlock", "" },
};

/* Harmless devices. */
static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
				       "/dev/urandom" };

static int make_file(const char *path, const char *text)
{
	int fd = kernel_open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
	size_t len = strlen(text);

	if (fd < 0)
		return -errno;
	ssize_t n = len > 0 ? write(fd, text, len) : 0;
	int r = n < 0 ? -errno : (size_t)n < len ? -ENOSPC : 0;
	close(fd);
	return r;
}

static int bind_device(const char *path)
{
	struct mount_attr_args attr = { .attr_set = ATTR_NOSUID | ATTR_NOEXEC };
	const char *place = path + 1;

	if (mknod(place, S_IFREG | 0444, 0) != 0 || mount(path, place, NULL, MS_BIND, NULL) != 0 ||
	    syscall(SYS_mount_setattr, AT_FDCWD, place, 0, &attr, sizeof(attr)) != 0)
		return -errno;
	return 0;
}

static int fill(struct job *j)
{
	uint32_t step = FIRST_STEP;
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT(dirs); i++, step++)
		r = mkdir(dirs[i], 0755) != 0 ? -errno : 0;
	for (size_t i = 0; r == 0 && i < COUNT(links); i++, step++)
		r = symlink(links[i][0], links[i][1]) != 0 ? -errno : 0;
	for (size_t i = 0; r == 0 && i < COUNT(files); i++, step++)
		r = make_file(files[i][0], files[i][1]);
	for (size_t i = 0; r == 0 && i < COUNT(devices); i++, step++)
		r = bind_device(devices[i]);
	return r < 0 ? plan_fail(j, STAGE_MOUNTS, step - 1, -r) : 0;
}

int skeleton_build(struct job *j)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 1, errno);
	int under = kernel_open(ROOT_SCRATCH, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (under < 0 || dup3(under, ROOT_SCRATCH_FD, O_CLOEXEC) < 0)
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 4, errno);
	close(under);
	if (mount("root", ROOT_SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV, ROOT_DATA) != 0)
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 2, errno);
	if (chdir(ROOT_SCRATCH) != 0)
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 3, errno);
	return fill(j);
}
