/* inside/init/terminals.c - see terminals.h. */
#include "inside/init/terminals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "inside/init/reaper.h"
#include "wall/linux/kernel.h"

enum { PATH_BYTES = 64 };

static int bind(const char *from, const char *to, uint64_t attributes)
{
	struct mount_attr_args attr = { .attr_set = attributes };

	if (mount(from, to, NULL, MS_BIND, NULL) != 0 ||
	    syscall(SYS_mount_setattr, AT_FDCWD, to, 0, &attr, sizeof(attr)) != 0)
		return -errno;
	return 0;
}

/* The node /dev/tty leads to nothing but the controlling terminal of the process that opens it. */
static int make_points(const char *dev, const char *pts)
{
	char tty[PATH_BYTES];

	(void)snprintf(tty, sizeof(tty), "%s/tty", dev);
	if (mkdir(pts, 0755) != 0 || mknod(tty, S_IFREG | 0444, 0) != 0)
		return -errno;
	return bind("/dev/tty", tty, ATTR_NOSUID | ATTR_NOEXEC);
}

/* An empty read-only file lies over ptmx, which the host has by descriptor. */
static int hide_ptmx(const char *dev, const char *ptmx)
{
	char empty[PATH_BYTES];

	(void)snprintf(empty, sizeof(empty), "%s/../run/.landlock", dev);
	return bind(empty, ptmx, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC);
}

/* Terminals belong to the guest's user, whoever makes them. Their number is limited here, because
 * the whole machine has a few thousand. */
#define DATA "uid=1000,gid=1000,mode=0600,ptmxmode=0666,max=" PLACE_TERMINALS
_Static_assert(INSIDE_ID == 1000, "DATA");

int terminals_mount(struct job *j, const char *dev, int control)
{
	char pts[PATH_BYTES], ptmx[PATH_BYTES + 8];

	if (!(j->plan->flags & PLANF_TERMINALS))
		return 0;
	(void)snprintf(pts, sizeof(pts), "%s/pts", dev);
	(void)snprintf(ptmx, sizeof(ptmx), "%s/ptmx", pts);
	if (!j->is_session && make_points(dev, pts) < 0)
		return 0;
	if (((j->flags & PLANF_TEMPLATE) && !j->is_session) ||
	    mount("devpts", pts, "devpts", MS_NOSUID | MS_NOEXEC, DATA) != 0)
		return 0;
	int fd = kernel_open(ptmx, O_PATH | O_CLOEXEC, 0), r = hide_ptmx(dev, ptmx);
	/* The code could open the ptmx of this devpts, so the sandbox must not start. */
	if (r < 0)
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 8, -r);
	r = fd < 0 ? 0 : reaper_send(control, CONTROL_TERMINALS, &fd, 1);
	if (fd >= 0)
		close(fd);
	return r < 0 ? plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 9, -r) : 0;
}

/* The first terminal that the leader of a session opens becomes its controlling terminal. Unlike
 * TIOCSCTTY, that needs no ioctl, which the filter of a template would have to allow. */
int terminals_take(void)
{
	int fd = kernel_open("/proc/self/fd/0", O_RDWR | O_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}
