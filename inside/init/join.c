/* inside/init/join.c - see join.h. */
#include "inside/init/join.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inside/init/guest_start.h"
#include "inside/init/guest_table.h"
#include "inside/init/reaper.h"
#include "wall/linux/kernel.h"

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int join_receive(int control, int fds[static JOIN_FDS])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(JOIN_FDS * sizeof(int))];
	} u = { .room = { 0 } };
	unsigned char text[1 + JOIN_FDS];
	struct iovec iov = { .iov_base = text, .iov_len = sizeof(text) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = u.room,
			      .msg_controllen = sizeof(u.room) };

	for (int i = 0; i < JOIN_FDS; i++)
		fds[i] = -1;
	ssize_t n = recvmsg(control, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	size_t count = 0;
	if (msg.msg_controllen >= sizeof(struct cmsghdr) && u.head.cmsg_type == SCM_RIGHTS)
		count = (u.head.cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < count; i++) {
		unsigned number = i + 1 < (size_t)n ? text[i + 1] : JOIN_FDS;
		int fd;

		memcpy(&fd, CMSG_DATA(&u.head) + i * sizeof(int), sizeof(fd));
		if (number < JOIN_FDS && fds[number] < 0)
			fds[number] = fd;
		else
			close(fd);
	}
	return text[0];
}

/* Tells the host which process it is. */
static void tell(const struct entry *e)
{
	int pidfd = (int)syscall(SYS_pidfd_open, e->pid, 0);

	(void)reaper_send(e->control, CONTROL_STARTED, &pidfd, pidfd >= 0);
	close_one(&pidfd);
}

static void adopt_first(int fds[static JOIN_FDS])
{
	struct entry *first = &guest_table[0];

	if (first->control >= 0) /* only once */
		return;
	first->control = fds[INIT_FD_CONTROL];
	fds[INIT_FD_CONTROL] = -1;
	if (first->pid > 0)
		tell(first);
	guest_table_settle(first);
}

static void start(const struct job *place, struct entry *e, int fds[static JOIN_FDS])
{
	if (plan_map_plan(&e->job, fds[INIT_FD_PLAN]) < 0) {
		plan_fail(&e->job, STAGE_PLAN, 7, EPROTO);
		return;
	}
	e->job.locks_fd = place->locks_fd;
	e->pid = guest_join(&e->job, fds, &e->report);
	if (e->pid > 0)
		tell(e);
}

void join_start(const struct job *place, int fds[static JOIN_FDS])
{
	struct job refused = { 0 };
	struct entry *e = NULL;

	if (fds[INIT_FD_CONTROL] >= 0) /* we never wait for the host */
		(void)fcntl(fds[INIT_FD_CONTROL], F_SETFL, O_NONBLOCK);
	if (fds[INIT_FD_CONTROL] >= 0 && fds[INIT_FD_PLAN] < 0) {
		adopt_first(fds);
	} else if (fds[INIT_FD_CONTROL] >= 0 &&
		   plan_map_status(&refused, fds[INIT_FD_STATUS]) == 0) {
		e = guest_table_add();
		if (!e) {
			plan_fail(&refused, STAGE_JOIN, 0, EAGAIN);
			plan_unmap(&refused);
		}
	}
	if (e) {
		e->job = refused;
		e->control = fds[INIT_FD_CONTROL];
		fds[INIT_FD_CONTROL] = -1;
		start(place, e, fds);
		guest_table_settle(e);
	}
	for (int i = 0; i < JOIN_FDS; i++)
		close_one(&fds[i]);
}
