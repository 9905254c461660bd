/* wall/linux/linux_box_terminal.c - makes terminals for the guests of a place, in its own devpts
 * (inside/init/terminals.c). The host makes them: the code has no ptmx, so it cannot use up the
 * machine's terminals, and the host's own devpts has none of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"
#include "wall/linux/linux_box.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* The slave by its master, because the host cannot see its path. */
static int open_pair(int ptmx, struct box_terminal *t)
{
	char path[64];
	int unlocked = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", ptmx);
	t->host_fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (t->host_fd < 0 || ioctl(t->host_fd, TIOCSPTLCK, &unlocked) != 0)
		return -errno;
	t->guest_fd = ioctl(t->host_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return t->guest_fd < 0 ? -errno : 0;
}

int linux_box_terminal(const struct box *place, struct box_terminal *ret,
		       struct cordon_error **reterr)
{
	const struct linux_box *b = linux_box(place);
	struct box_terminal t = { -1, -1 };

	if (b->ptmx_fd < 0)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "the sandbox has no terminals: the kernel refused a devpts");
	int r = open_pair(b->ptmx_fd, &t);
	if (r < 0) {
		close_fdp(&t.host_fd);
		return r == -ENOSPC ? err_set(reterr, CORDON_LIMIT, "there are too many terminals")
				    : err_errno(reterr, -r, "make a terminal");
	}
	*ret = t;
	return 0;
}
