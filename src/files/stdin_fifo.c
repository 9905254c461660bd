/* files/stdin_fifo.c - see stdin_fifo.h. The guest may replace the FIFO by anything. That does no
 * harm, since the bytes are for the guest anyway; but the host must neither block nor leave the
 * workspace. */
#include "files/stdin_fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "files/path_lookup.h"

int stdin_fifo_make(struct workspace *ws, char ret_path[static STDIN_FIFO_PATH_SIZE],
		    struct cordon_error **reterr)
{
	cleanup_owner struct owner o = { 0 };
	char tail[17];
	int r = path_lookup_enter(ws, &o, reterr);

	if (r < 0)
		return r;
	random_hex(tail, 16);
	(void)snprintf(ret_path, STDIN_FIFO_PATH_SIZE, "/tmp/.cordon-stdin-%s", tail);
	r = mkfifoat(ws->tree_fd[WORKSPACE_TMP], ret_path + sizeof("/tmp/") - 1, 0600) != 0 ? -errno
											    : 0;
	return path_lookup_fail(ws, ret_path, r, reterr);
}

int stdin_fifo_open(struct workspace *ws, const char *path, int *ret_fd)
{
	cleanup_owner struct owner o = { 0 };
	struct stat st;

	if (path_lookup_enter(ws, &o, NULL) < 0)
		return -1;
	cleanup_close int fd = path_lookup_open_plain(
		ws->tree_fd[WORKSPACE_TMP], path + sizeof("/tmp/") - 1,
		O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0);
	if (fd < 0)
		return fd == -ENXIO || fd == -EINTR ? 0 : -1;
	if (fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))
		return -1;
	*ret_fd = TAKE_FD(fd);
	return 1;
}

void stdin_fifo_remove(struct workspace *ws, const char *path)
{
	cleanup_owner struct owner o = { 0 };

	if (path_lookup_enter(ws, &o, NULL) == 0)
		(void)unlinkat(ws->tree_fd[WORKSPACE_TMP], path + sizeof("/tmp/") - 1, 0);
}
