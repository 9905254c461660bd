/* base/linux/dir_events.c - see base/dir_events.h. */
#include "base/dir_events.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

enum {
	BUFFER = 16 * 1024, /* at least 60 events; at most 512 that have a name */
	WANTED = IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVE_SELF |
		 IN_ONLYDIR
};

int dir_events_open(void)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int dir_events_add(int fd, int dir_fd)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	int number = inotify_add_watch(fd, path, WANTED);
	return number < 0 ? -errno : number;
}

void dir_events_remove(int fd, int directory)
{
	(void)inotify_rm_watch(fd, directory);
}

static enum dir_event event_of(uint32_t mask)
{
	if (mask & IN_Q_OVERFLOW)
		return DIR_EVENT_LOST;
	if (mask & (IN_IGNORED | IN_UNMOUNT))
		return DIR_EVENT_GONE;
	if (mask & IN_MOVE_SELF)
		return DIR_EVENT_MOVED;
	if (mask & (IN_CREATE | IN_MOVED_TO))
		return DIR_EVENT_CREATED;
	return mask & (IN_DELETE | IN_MOVED_FROM) ? DIR_EVENT_REMOVED : DIR_EVENT_MODIFIED;
}

int dir_events_read(int fd, dir_events_fn fn, void *arg)
{
	_Alignas(struct inotify_event) char bytes[BUFFER];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (char *p = bytes; p < bytes + n;) {
		const struct inotify_event *e = (const void *)p;

		fn(e->wd, event_of(e->mask), e->len > 0 ? e->name : "", e->mask & IN_ISDIR, arg);
		p += sizeof(*e) + e->len;
	}
	return n > 0;
}
