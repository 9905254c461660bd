/* serve/rpc/socket.c - see socket.h. */
#include "serve/rpc/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "base/str.h"

enum { BACKLOG = 16, PAUSE_NS = 50000000 };

static int check_folder(const char *path, struct cordon_error **reterr)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *folder = slash ? str_ndup(path, (size_t)(slash - path)) : str_dup(".");
	struct stat st;

	if (!folder)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (!folder[0])
		return err_set(reterr, CORDON_INVALID, "'%s' must be in a directory of its own",
			       path);
	if (mkdir(folder, 0700) != 0 && errno != EEXIST)
		return err_errno(reterr, errno, "make the directory '%s'", folder);
	if (lstat(folder, &st) != 0)
		return err_errno(reterr, errno, "check the directory '%s'", folder);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 0077))
		return err_set(
			reterr, CORDON_DENIED,
			"the directory '%s' must belong to you and be closed to others (mode 0700)",
			folder);
	return 0;
}

/* True if a server listens there. */
static bool is_alive(const struct sockaddr_un *a)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0;
}

int socket_listen(const char *path, int *ret_fd, struct cordon_error **reterr)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct stat st;

	if (!str_copy(a.sun_path, sizeof(a.sun_path), path))
		return err_set(reterr, CORDON_INVALID, "the path of a socket has at most %zu bytes",
			       sizeof(a.sun_path) - 1);
	int r = check_folder(path, reterr);
	if (r < 0)
		return r;
	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode) || is_alive(&a))
			return err_set(reterr, CORDON_EXISTS, "'%s' is in use", path);
		(void)unlink(path);
	}
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(reterr, errno, "make a socket");
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) != 0 || chmod(path, 0600) != 0 ||
	    listen(fd, BACKLOG) != 0)
		return err_errno(reterr, errno, "listen at '%s'", path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int socket_accept(int fd, int *ret_client, struct cordon_error **reterr)
{
	for (;;) {
		uid_t who;
		cleanup_close int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (client < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (client < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
			/* Too many descriptors are open: current clients are served, new ones
			 * wait. */
			(void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
			continue;
		}
		if (client < 0)
			return err_errno(reterr, errno, "accept a client");
		if (os_peer_uid(client, &who) < 0 || who != geteuid())
			continue;
		*ret_client = TAKE_FD(client);
		return 0;
	}
}
