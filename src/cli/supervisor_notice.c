/* cli/supervisor_notice.c - see supervisor_notice.h. */
#include "cli/supervisor_notice.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { FIRST_FD = 3 };

int supervisor_notice_socket(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");

	if (!pid || !count || strtol(pid, NULL, 10) != getpid())
		return 0;
	if (strtol(count, NULL, 10) != 1)
		return -1;
	(void)fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC);
	return FIRST_FD;
}

void supervisor_notice_init(struct supervisor_notice *n)
{
	const char *path = getenv("NOTIFY_SOCKET");

	*n = (struct supervisor_notice){ 0 };
	if (path && (path[0] == '/' || path[0] == '@'))
		(void)str_copy(n->address, sizeof(n->address), path);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
}

void supervisor_notice_send(const struct supervisor_notice *n, const char *message)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t len = strlen(n->address);
	cleanup_close int fd = len ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

	if (fd < 0)
		return;
	memcpy(a.sun_path, n->address, len);
	if (a.sun_path[0] == '@') /* an abstract name */
		a.sun_path[0] = '\0';
	(void)sendto(fd, message, strlen(message), MSG_NOSIGNAL, (const struct sockaddr *)&a,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}
