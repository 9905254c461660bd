/* wall/linux/linux_box.c - see linux_box.h. */
#include "wall/linux/linux_box.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "wall/linux/blueprint.h"
#include "wall/linux/kernel.h"
#include "wall/linux/plan_send.h"
#include "wall/linux/supervisor.h"

/* Killing as many processes as the limit allows takes about 30 ms; a machine may be busy. */
enum { KILL_MS = 10000 };

/* The pid, in our namespace, of a process in another one. */
static pid_t pid_of(int pidfd)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	const char *p = strstr(text, "Pid:");
	return p ? (pid_t)strtol(p + 4, NULL, 10) : 0;
}

/* The root is ready. Of a session that a template forked it also learns the first process. */
static void note_ready(struct linux_box *b, int fds[static 4])
{
	b->is_ready = true;
	b->base.workspace_fd = TAKE_FD(fds[0]);
	if (b->pidfd >= 0)
		return;
	b->pidfd = TAKE_FD(fds[1]);
	b->base.end_fd = b->is_forked ? b->pidfd : -1;
	b->status->init_pid = pid_of(b->pidfd);
}

/* Handles one message of the control socket. 1: there was one, 0: none now, -1: closed. */
static int receive(struct linux_box *b)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} u = { .room = { 0 } };
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = u.room,
			      .msg_controllen = sizeof(u.room) };
	int fds[4] = { -1, -1, -1, -1 };

	ssize_t n = recvmsg(b->base.control_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	size_t count = 0;
	if (msg.msg_controllen >= sizeof(struct cmsghdr) && u.head.cmsg_type == SCM_RIGHTS) {
		count = (u.head.cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(&u.head), (count < 4 ? count : 4) * sizeof(int));
	}
	if (byte == CONTROL_WORKSPACE && !b->is_ready)
		note_ready(b, fds);
	if (byte == CONTROL_TERMINALS && b->ptmx_fd < 0)
		b->ptmx_fd = TAKE_FD(fds[0]);
	if (byte == CONTROL_STARTED && !b->is_ready) {
		b->is_ready = true;
		b->pidfd = TAKE_FD(fds[0]);
		b->guest_pid = pid_of(b->pidfd);
	}
	b->is_answered |= byte == CONTROL_SAMPLED;
	for (size_t i = 0; i < 4; i++)
		close_fdp(&fds[i]);
	return 1;
}

/* A template that was stopped while it forked still holds a copy of the session's end of the
 * socket. So the pidfd decides. */
static bool is_dead(const struct linux_box *b)
{
	struct pollfd p = { .fd = b->base.end_fd, .events = POLLIN };

	return p.fd >= 0 && poll(&p, 1, 0) > 0;
}

bool linux_box_is_gone(struct box *box)
{
	struct linux_box *b = linux_box(box);
	bool was_dead = !b->is_gone && is_dead(b); /* before its last messages are read */
	int r = 1;

	while (!b->is_gone && (r = receive(b)) > 0)
		;
	if (r < 0 || was_dead)
		b->is_gone = true;
	return b->is_gone;
}

bool linux_box_has_ended(const struct box *box)
{
	const struct linux_box *b = linux_box(box);
	/* Pid 1 closes the socket of a guest when it gets to it, and ends a little later than its
	 * supervisor. So the process itself is looked at, too. */
	struct pollfd p[] = { { .fd = b->base.control_fd, .events = POLLRDHUP },
			      { .fd = b->pidfd, .events = POLLIN } };

	return b->is_gone || poll(p, 2, 0) > 0;
}

/* 0: the deadline passed, or poll failed. */
static int wait_word(const struct linux_box *b, deadline_ns deadline)
{
	struct pollfd p[] = { { .fd = b->base.control_fd, .events = POLLIN },
			      { .fd = b->base.end_fd, .events = POLLIN } };
	int n = poll(p, 2, deadline_poll_ms(deadline));

	return n < 0 ? errno == EINTR : n;
}

bool linux_box_wait_gone(struct box *box, deadline_ns deadline)
{
	struct linux_box *b = linux_box(box);

	while (!linux_box_is_gone(box))
		if (wait_word(b, deadline) == 0)
			return false;
	return true;
}

int linux_box_wait_ready(struct box *box, deadline_ns deadline, struct cordon_error **reterr)
{
	struct linux_box *b = linux_box(box);

	while (!b->is_ready && !linux_box_is_gone(box))
		if (!b->is_ready && wait_word(b, deadline) == 0)
			return err_set(reterr, CORDON_TIMEOUT, "the sandbox did not start in time");
	if (b->is_ready)
		return 0;
	int r = linux_box_failure(box, reterr);
	return r < 0 ? r : err_set(reterr, CORDON_OS, "the sandbox ended while it was being built");
}

/* How a kernel refuses namespaces: by rights, by a limit, or by a container's filter, which knows
 * no flags of clone3. */
static bool is_refusal(int os_errno)
{
	return os_errno == EPERM || os_errno == ENOSPC || os_errno == ENOSYS;
}

int linux_box_failure(const struct box *box, struct cordon_error **reterr)
{
	const struct linux_box *b = linux_box(box);
	static const char *const words[] = {
#define X(id, text) text,
		STAGES(X)
#undef X
	};
	const struct status *s = b->status;

	if (s->state != STATE_FAILED)
		return 0;
	const char *remedy = "";
	struct machine lacking = { 0 };
	if (s->stage == STAGE_NAMESPACES && is_refusal(s->os_errno)) {
		const char *why = machine_missing(&lacking, LAYER_USERNS, &remedy);
		uint32_t layer = LAYER_USERNS;

		while (layer < LAYER_CGROUPNS && !(b->require & layer))
			layer <<= 1;
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "the policy requires the layer '%s', and %s (%s); remedy: %s",
			       policy_layer_name(layer), why, strerror(s->os_errno), remedy);
	}
	if (s->stage == STAGE_DIRECTORY)
		return err_set(reterr, CORDON_NOT_FOUND,
			       "the working directory cannot be entered: %s",
			       strerror(s->os_errno));
	if (s->stage == STAGE_JOIN && s->detail == 0) /* pid 1 has no room (init/join.c) */
		return err_set(reterr, CORDON_LIMIT,
			       "too many commands have left processes running in the sandbox; "
			       "remedy: end some of them");
	const char *what = s->stage < sizeof(words) / sizeof(*words) ? words[s->stage] : "?";
	/* Not err_errno: an EPERM here comes from this machine, not from the policy. */
	return err_set(reterr, CORDON_OS, "the sandbox could not %s (step %d): %s", what,
		       (int)s->detail, strerror(s->os_errno));
}

/* Pid 1 of the place ends the guest with what it started. */
static void end_guest(const struct linux_box *b)
{
	char order = CONTROL_END;

	(void)send(b->base.control_fd, &order, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void linux_box_end(struct box *box)
{
	struct linux_box *b = linux_box(box);

	if (b->place) {
		if (!b->is_gone)
			end_guest(b);
		return;
	}
	/* SIGTERM tells a supervisor to end pid 1, which ends all others. */
	int signo = b->supervisor > 0 ? SIGTERM : SIGKILL;

	if (b->pidfd < 0 || b->is_gone)
		return;
	(void)syscall(SYS_pidfd_send_signal, b->pidfd, signo, NULL, 0);
	if (b->supervisor > 0) /* a stopped supervisor does not act on it */
		(void)syscall(SYS_pidfd_send_signal, b->pidfd, SIGCONT, NULL, 0);
}

/* Pid 1 closes the control socket before the kernel ends the other processes of its namespace. Its
 * pidfd reports its death only when all of them are dead. A supervisor waits for that itself. */
static void wait_empty(struct linux_box *b, deadline_ns deadline)
{
	struct pollfd p = { .fd = b->supervisor > 0 ? -1 : b->pidfd, .events = POLLIN };
	int n = 1;

	while (p.fd >= 0 && (n = poll(&p, 1, deadline_poll_ms(deadline))) < 0 && errno == EINTR)
		;
	b->is_stuck = b->is_stuck || n == 0;
}

/* A place that does not end its guest in time ends itself. */
static void kill_guest(struct linux_box *b)
{
	if (b->is_gone)
		return;
	end_guest(b);
	if (!linux_box_wait_gone(&b->base, deadline_after_ms(KILL_MS))) {
		b->is_stuck = true;
		linux_box_end(&b->place->base);
	}
	b->is_gone = true;
}

void linux_box_kill(struct box *box)
{
	struct linux_box *b = linux_box(box);
	deadline_ns deadline = deadline_after_ms(KILL_MS);

	if (b->place) {
		kill_guest(b);
		return;
	}

	if (b->pidfd >= 0 && !b->is_gone) {
		linux_box_end(box);
		b->is_stuck = !linux_box_wait_gone(box, deadline);
	}
	b->is_gone = true;
	wait_empty(b, deadline);
}

void linux_box_release(struct box *box)
{
	struct linux_box *b = linux_box(box);

	pthread_mutex_lock(&b->releasing);
	if (b->is_gone)
		close_fdp(&b->base.control_fd);
	pthread_mutex_unlock(&b->releasing);
}

/* The supervisor of a stuck sandbox keeps running and cleans up when the sandbox ends. */
static void reap_supervisor(struct linux_box *b)
{
	struct pollfd p = { .fd = b->pidfd, .events = POLLIN };
	deadline_ns deadline = deadline_after_ms(b->is_stuck ? 0 : KILL_MS);
	siginfo_t info;
	int n = 1;

	while (b->supervisor > 0 && (n = poll(&p, 1, deadline_poll_ms(deadline))) < 0 &&
	       errno == EINTR)
		;
	int flags = WEXITED | __WALL | (n == 0 ? WNOHANG : 0);
	while (b->supervisor > 0 && waitid(P_PID, (id_t)b->supervisor, &info, flags) < 0 &&
	       errno == EINTR)
		;
	b->supervisor = 0;
}

void linux_box_free(struct box *box)
{
	struct linux_box *b = linux_box(box);

	linux_box_kill(box);
	/* The supervisor ends, and removes what is left, when our end of the control socket is
	 * closed. */
	close_fdp(&b->base.control_fd);
	close_fdp(&b->base.workspace_fd);
	if (b->status && !(b->place && b->status == b->place->status))
		munmap(b->status, sizeof(struct status));
	if (b->place)
		b->place->guests--;
	bool had_supervisor = b->supervisor > 0;
	reap_supervisor(b);
	close_fdp(&b->pidfd);
	close_fdp(&b->ptmx_fd);
	if (!had_supervisor && b->private_dir[0])
		(void)rmdir(b->private_dir); /* in case there was no supervisor to do it */
	slots_done(&b->slots);               /* before the groups that contain them */
	if (b->template && b->cgroup.count)
		slots_give(&b->template->slots, &b->cgroup);
	else
		cgroup_done(&b->cgroup);
	pthread_mutex_destroy(&b->releasing);
	pthread_mutex_destroy(&b->counting);
	free(b);
}

int linux_box_interrupt(struct box *box, deadline_ns deadline)
{
	struct linux_box *b = linux_box(box);
	static const char orders[] = { CONTROL_INTERRUPT, CONTROL_SAMPLE };

	b->is_answered = false;
	for (int i = 0; i < 2; i++)
		if (send(b->base.control_fd, &orders[i], 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
			/* A guest that ends at the first order has closed the socket before the
			 * second. */
			return i > 0 && linux_box_is_gone(box) ? 0 : -CORDON_STATE;
	while (!b->is_answered && !linux_box_is_gone(box))
		if (!b->is_answered && wait_word(b, deadline) == 0)
			return -CORDON_STATE;
	return 0;
}

int linux_box_signal(struct box *box, int signo)
{
	struct linux_box *b = linux_box(box);
	const char order[] = { CONTROL_SIGNAL, (char)signo };
	ssize_t n = -1;

	/* The thread that runs the guest may be closing the socket. */
	pthread_mutex_lock(&b->releasing);
	if (b->base.control_fd >= 0)
		n = send(b->base.control_fd, order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
	pthread_mutex_unlock(&b->releasing);
	return n == sizeof(order) ? 0 : -CORDON_STATE;
}

pid_t linux_box_first_pid(const struct box *box)
{
	const struct linux_box *b = linux_box(box);

	return b->place ? b->guest_pid : b->status->init_pid;
}

pid_t linux_box_pid(const struct box *box)
{
	return linux_box(box)->is_gone ? 0 : linux_box_first_pid(box);
}

/* pid 1 has only one child when this is first called. */
pid_t linux_box_guest_pid(struct linux_box *b)
{
	char path[64], text[32] = "";
	pid_t init = linux_box_pid(&b->base);

	if (b->guest_pid > 0 || init <= 0 || b->place)
		return b->is_gone ? 0 : b->guest_pid;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", init, init);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		b->guest_pid = (pid_t)strtol(text, NULL, 10);
	return b->guest_pid;
}

void linux_box_find_guest(struct box *box)
{
	(void)linux_box_guest_pid(linux_box(box));
}

const struct status *linux_box_status(const struct box *box)
{
	return linux_box(box)->status;
}

/* The supervisor of a forked session is its template's, and reports on the template's page. */
static bool is_out_of_memory(const struct linux_box *guest)
{
	const struct linux_box *b = linux_box_whole(guest);
	const struct status *s = b->template ? b->template->status : b->status;

	if (!b->template)
		return s->memory_kills > 0;
	for (int i = 0; i < STATUS_VICTIMS && b->status->init_pid > 0; i++)
		if (s->memory_victims[i] == b->status->init_pid)
			return true;
	return false;
}

struct box_state linux_box_look(const struct box *box)
{
	static const enum box_stage stages[] = { [STATE_BUILDING] = BOX_BUILDING,
						 [STATE_RUNNING] = BOX_RUNNING,
						 [STATE_EXITED] = BOX_EXITED,
						 [STATE_FAILED] = BOX_FAILED };
	const struct linux_box *b = linux_box(box);
	const struct linux_box *whole = linux_box_whole(b);
	const struct status *s = b->status;
	uint32_t state = s->state;

	return (struct box_state){
		.stage = state < sizeof(stages) / sizeof(*stages) ? stages[state] : BOX_BUILDING,
		.wait_status = s->wait_status,
		.cpu_us = s->cpu_us,
		.memory_peak_bytes = whole->status->memory_peak_kib * 1024,
		.processes_peak = whole->status->processes_peak,
		.is_out_of_memory = is_out_of_memory(b),
		.is_stuck = b->is_stuck,
		.is_nonotify = s->is_nonotify,
		.has_denials = s->denial_count > 0,
		.has_groups = whole->cgroup.count > 0,
	};
}

void linux_box_count(const struct box *box, struct box_counts *ret)
{
	cgroup_read(&linux_box_whole(linux_box(box))->cgroup, ret);
}
