/* serve/server/state_lock.c - see state_lock.h. */
#include "serve/server/state_lock.h"

#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/str.h"

/* F_SETLK, not flock(2): it belongs to this process alone. A child that outlives the server for a
 * moment would go on holding an flock. */
int state_lock_open(const char *folder, int *ret_fd, struct cordon_error **reterr)
{
	cleanup_free char *path = str_printf("%s/serve.lock", folder);
	struct flock wanted = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (!path)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(reterr, errno, "open '%s'", path);
	if (fcntl(fd, F_SETLK, &wanted) == 0) {
		*ret_fd = TAKE_FD(fd);
		return 0;
	}
	if (errno != EACCES && errno != EAGAIN)
		return err_errno(reterr, errno, "lock '%s'", path);
	bool is_known = fcntl(fd, F_GETLK, &wanted) == 0 && wanted.l_type != F_UNLCK;
	return err_set(reterr, CORDON_EXISTS,
		       "another server (process %ld) uses the directory '%s': stop it first, or "
		       "name another one with --state",
		       is_known ? (long)wanted.l_pid : 0L, folder);
}
