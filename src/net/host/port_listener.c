/* net/host/port_listener.c - see port_listener.h. */
#include "net/host/port_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { BACKLOG = 128, ANY_PORT = -1 };

/* Nobody else may put a file there, or rename one. */
static bool is_private(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_uid == geteuid() && !(st->st_mode & 022);
}

static bool is_private_path(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && is_private(&st);
}

/* The user's directory for sockets if there is one, else /tmp. */
static int make_directory(char **directory, struct cordon_error **reterr)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	bool has_runtime =
		runtime && runtime[0] == '/' && strlen(runtime) < 64 && is_private_path(runtime);

	if (*directory)
		return 0;
	char *path = str_printf("%s/cordon-ports-XXXXXX", has_runtime ? runtime : "/tmp");
	if (!path || !mkdtemp(path)) {
		int r = err_errno(reterr, path ? errno : ENOMEM, "make a directory for sockets");

		free(path);
		return r;
	}
	*directory = path;
	return 0;
}

/* A path of the caller's must be in a directory where no one else can write. What is checked is
 * what is used: a link on the way there may lead elsewhere later. */
static int open_parent(const char *path, struct cordon_error **reterr)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *parent =
		slash ? str_ndup(path, slash == path ? 1 : (size_t)(slash - path)) : str_dup(".");
	struct stat st;

	if (!parent)
		return err_errno(reterr, ENOMEM, "open a socket");
	cleanup_close int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		return err_errno(reterr, errno, "open the socket '%s'", path);
	if (!is_private(&st))
		return err_set(reterr, CORDON_INVALID,
			       "'%s' is not a directory of this user in which no one else can "
			       "write, so a socket in it is not safe",
			       parent);
	return TAKE_FD(fd);
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Removes the file if it is still the socket that was bound: not what took its place since. */
static void remove_file(int dir_fd, const char *name, uint64_t inode)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode) &&
	    st.st_ino == inode)
		(void)unlinkat(dir_fd, name, 0);
}

/* By way of the directory that was opened. The file gets the mode that the socket has when it is
 * bound. */
static int bind_in(int fd, int dir_fd, const char *name, uint64_t *ret_inode)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct stat st;
	int n = snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/%s", dir_fd, name);

	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	if (fchmod(fd, 0600) != 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
		return -errno;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -errno;
	*ret_inode = st.st_ino;
	return 0;
}

static int open_path(const char *path, struct port_listener *ret, struct cordon_error **reterr)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cleanup_free char *address = str_dup(path);
	uint64_t inode = 0;

	if (fd < 0 || !address)
		return err_errno(reterr, fd < 0 ? errno : ENOMEM, "open a socket");
	/* Clients use the whole path. */
	if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(reterr, CORDON_INVALID, "'%s' is too long for a socket's path",
			       path);
	cleanup_close int dir = open_parent(path, reterr);
	if (dir < 0)
		return dir;
	int r = bind_in(fd, dir, name_of(path), &inode);
	if (r < 0)
		return err_errno(reterr, -r, "open the socket '%s'", path);
	if (listen(fd, BACKLOG) != 0) {
		int e = errno;

		remove_file(dir, name_of(path), inode);
		return err_errno(reterr, e, "listen on '%s'", path);
	}
	*ret = (struct port_listener){ .fd = TAKE_FD(fd),
				       .address = TAKE_PTR(address),
				       .is_path = true,
				       .dir_fd = TAKE_FD(dir),
				       .inode = inode };
	return 0;
}

static int open_loopback(int host_port, struct port_listener *ret, struct cordon_error **reterr)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)(host_port > 0 ? host_port : 0)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(sa);
	int one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 || listen(fd, BACKLOG) != 0 ||
	    getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
		return err_errno(reterr, errno, "listen on 127.0.0.1:%d",
				 host_port > 0 ? host_port : 0);
	char *address = str_printf("127.0.0.1:%u", ntohs(sa.sin_port));
	if (!address)
		return err_errno(reterr, ENOMEM, "listen");
	*ret = (struct port_listener){ .fd = TAKE_FD(fd), .address = address, .dir_fd = -1 };
	return 0;
}

int port_listener_open(const struct port_listener_options *o, struct port_listener *ret,
		       struct cordon_error **reterr)
{
	if (o->host_port < ANY_PORT || o->host_port > UINT16_MAX)
		return err_set(reterr, CORDON_INVALID, "%d is no port of the host", o->host_port);
	if (o->host_port && o->path)
		return err_set(reterr, CORDON_INVALID,
			       "name a port of the host or a socket's path, not both");
	if (o->host_port)
		return open_loopback(o->host_port, ret, reterr);
	if (o->path)
		return open_path(o->path, ret, reterr);
	int r = make_directory(o->directory, reterr);
	if (r < 0)
		return r;
	cleanup_free char *path = str_printf("%s/%u.sock", *o->directory, o->port);
	return path ? open_path(path, ret, reterr) : err_errno(reterr, ENOMEM, "open a socket");
}

void port_listener_close(struct port_listener *l)
{
	if (l->fd >= 0 && l->is_path)
		remove_file(l->dir_fd, name_of(l->address), l->inode);
	close_fdp(&l->fd);
	close_fdp(&l->dir_fd);
	free(l->address);
	*l = (struct port_listener){ .fd = -1, .dir_fd = -1 };
}
