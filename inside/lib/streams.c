/* inside/lib/streams.c - see streams.h. */
#include "inside/lib/streams.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* One process, one session. */
static struct {
	int out, err;
	struct stat input;
} kept;

void streams_keep(void)
{
	struct rlimit r = { 256, 256 };

	(void)getrlimit(RLIMIT_NOFILE, &r);
	/* High numbers, which code rarely uses, and closed in programs that it starts. */
	int top = r.rlim_cur < 256 ? (int)r.rlim_cur : 256;
	kept.out = dup3(1, top - 2, O_CLOEXEC);
	kept.err = dup3(2, top - 1, O_CLOEXEC);
	if (fstat(0, &kept.input) != 0)
		kept.input = (struct stat){ 0 };
}

void streams_take_input(int fd)
{
	if (fd != 0) { /* it is 0 if the code closed the old one */
		(void)dup2(fd, 0);
		(void)close(fd);
	}
	(void)fcntl(0, F_SETFD, 0);
	if (fstat(0, &kept.input) != 0)
		kept.input = (struct stat){ 0 };
}

bool streams_mend_output(void)
{
	return dup2(kept.out, 1) == 1 && dup2(kept.err, 2) == 2;
}

bool streams_mend_input(void)
{
	struct stat now;

	if (fstat(0, &now) == 0 && now.st_dev == kept.input.st_dev &&
	    now.st_ino == kept.input.st_ino)
		return false;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		streams_take_input(fd);
	return fd >= 0;
}
