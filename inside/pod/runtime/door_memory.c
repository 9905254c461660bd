/* inside/pod/runtime/door_memory.c - mappings, only inside the guest's own memory. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/door.h"

#include <sys/mman.h>
#include <unistd.h>

#define HOST_PAGE 4096u

/* Whole pages inside the guest's memory, which its libc no longer uses. */
static uint8_t *pages(struct w2c_sys *p, uint64_t at, uint64_t len)
{
	if (!len || at % HOST_PAGE || len % HOST_PAGE || len > UINT32_MAX)
		return NULL;
	return guest_at(p, at, len);
}

DOOR_FN(mmap)
{
	uint8_t *at = pages(p, a[0], a[1]);
	int prot = guest_int(a[2]), flags = guest_int(a[3]), fd = -1;
	void *r;

	if (!at)
		return -EINVAL;
	/* Never executable. Access that the mapping does not allow would only trap. */
	if (prot & ~(PROT_READ | PROT_WRITE))
		return prot & PROT_EXEC ? -EACCES : -EINVAL;
	if ((flags & ~(MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS)) ||
	    !(flags & (MAP_SHARED | MAP_PRIVATE)))
		return -EOPNOTSUPP;
	if (!(flags & MAP_ANONYMOUS)) {
		fd = guest_fd(p, a[4]);
		if (fd < 0)
			return -EBADF;
	}
	r = mmap(at, a[1], prot, flags | MAP_FIXED, fd, (off_t)a[5]);
	return r == MAP_FAILED ? -errno : (int64_t)a[0];
}

DOOR_FN(own_release)
{
	uint8_t *at = pages(p, a[0], a[1]);

	if (!at)
		return -EINVAL;
	return mmap(at, a[1], PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED
		       ? -errno
		       : 0;
}

DOOR_FN(madvise)
{
	(void)p;
	(void)a;
	return 0;
}

DOOR_FN(msync)
{
	uint8_t *at = pages(p, a[0], (a[1] + HOST_PAGE - 1) / HOST_PAGE * HOST_PAGE);

	if (!at)
		return -EINVAL;
	return DOOR_RET(msync(at, (size_t)a[1], guest_int(a[2])));
}
