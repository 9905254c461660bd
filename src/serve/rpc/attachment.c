/* serve/rpc/attachment.c - see attachment.h. */
#include "serve/rpc/attachment.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/os.h"
#include "serve/rpc/session_quota.h"

enum { DROP_BYTES = 65536 };

static bool drop(struct linein *in, uint64_t left)
{
	char bytes[DROP_BYTES];

	while (left > 0) {
		size_t n = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
		if (!linein_read(in, bytes, n))
			return false;
		left -= n;
	}
	return true;
}

/* A file of that size, mapped; NULL: there is no memory for it. Nobody else has the file yet. */
static void *make_file(uint64_t bytes, int *ret_fd)
{
	cleanup_close int fd = os_memory_file("cordon-attachment", true);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		return NULL;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	*ret_fd = TAKE_FD(fd);
	return at;
}

bool attachment_read(struct linein *in, const json_t *message, uint64_t max,
		     struct client_session_quota *quota, struct attachment *ret)
{
	const json_t *n = json_object_get(message, "attachment");
	uint64_t bytes = json_is_integer(n) && json_integer_value(n) > 0
				 ? (uint64_t)json_integer_value(n)
				 : 0;
	int fd = -1;

	*ret = (struct attachment){ .fd = -1, .bytes = bytes, .max = max };
	if (bytes == 0)
		return true;
	/* Before it has come: whoever announces it may send it slowly. */
	bool fits = bytes <= max && session_quota_attach(quota, bytes);
	void *at = fits ? make_file(bytes, &fd) : NULL;
	if (fits && !at)
		session_quota_detach(quota, bytes);
	if (!at)
		return drop(in, bytes);
	ret->quota = quota;
	bool is_whole = linein_read(in, at, bytes);
	(void)munmap(at, bytes);
	ret->fd = fd;
	if (!is_whole)
		attachment_done(ret);
	return is_whole;
}

void attachment_done(struct attachment *a)
{
	close_fdp(&a->fd);
	session_quota_detach(a->quota, a->bytes);
	a->quota = NULL;
	a->bytes = 0;
}
