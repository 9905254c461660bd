/* inside/init/plan.c - see plan.h. The plan comes from the trusted host in a sealed memfd. The
 * checks here guard against a mismatched build, not against the guest. */
#include "inside/init/plan.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "wall/linux/kernel.h"

int plan_map_plan(struct job *j, int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	if ((size_t)st.st_size < sizeof(struct plan))
		return -EINVAL;
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	const struct plan *plan = p;
	if (plan->magic != PLAN_MAGIC || plan->version != PLAN_VERSION ||
	    plan->size != (uint64_t)st.st_size) {
		munmap(p, (size_t)st.st_size);
		return -EPROTO;
	}
	j->plan = plan;
	j->flags = j->plan->flags;
	return 0;
}

int plan_map_status(struct job *j, int status_fd)
{
	void *s =
		mmap(NULL, sizeof(struct status), PROT_READ | PROT_WRITE, MAP_SHARED, status_fd, 0);
	if (s == MAP_FAILED)
		return -errno;
	j->status = s;
	return 0;
}

int plan_map(struct job *j, int plan_fd, int status_fd)
{
	int r = plan_map_plan(j, plan_fd);

	return r < 0 ? r : plan_map_status(j, status_fd);
}

void plan_unmap(struct job *j)
{
	if (j->plan)
		munmap((void *)(uintptr_t)j->plan, j->plan->size);
	if (j->status)
		munmap(j->status, sizeof(struct status));
	*j = (struct job){ 0 };
}

/* Moves a descriptor to its number. */
static int place(int fd, int number)
{
	if (fd == number)
		return 0;
	if (dup2(fd, number) < 0)
		return -errno;
	close(fd);
	return 0;
}

/* The descriptors arrive in the order of their numbers, with the plan last, and get the lowest free
 * numbers. So none is above its own number, and moving them from last to first never overwrites
 * one. */
static int place_all(const unsigned char *numbers, const int *fds, size_t count)
{
	int r = 0;

	for (size_t i = count; r == 0 && i > 0; i--)
		r = place(fds[i - 1], numbers[i - 1]);
	return r;
}

int plan_receive(struct job *j)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(INIT_FD_END * sizeof(int))];
	} u = { .room = { 0 } };
	unsigned char numbers[INIT_FD_END];
	int fds[INIT_FD_END];
	struct iovec iov = { .iov_base = numbers, .iov_len = sizeof(numbers) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = u.room,
			      .msg_controllen = sizeof(u.room) };
	ssize_t n;

	while ((n = recvmsg(INIT_FD_PLAN, &msg, 0)) < 0 && errno == EINTR)
		;
	if (n == 0) /* the host knows why */
		return -1;
	if (n < 0)
		return plan_fail(j, STAGE_PLAN, 4, errno);
	if ((msg.msg_flags & MSG_CTRUNC) || msg.msg_controllen < CMSG_LEN((size_t)n * sizeof(int)))
		return plan_fail(j, STAGE_PLAN, 5, EMFILE);
	memcpy(fds, CMSG_DATA(&u.head), (size_t)n * sizeof(int));
	int r = place_all(numbers, fds, (size_t)n);
	if (r == 0)
		r = plan_map_plan(j, INIT_FD_PLAN);
	return r < 0 ? plan_fail(j, STAGE_PLAN, 6, -r) : 0;
}

/* A direct system call: in each new process the C library would first search for a faster one. */
void plan_mark(struct job *j, enum mark mark)
{
	struct timespec t;

	if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t) == 0)
		j->status->marks[mark] = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

const void *plan_at(const struct job *j, uint32_t offset)
{
	return (const char *)j->plan + (offset < j->plan->size ? offset : 0);
}

const char *plan_text(const struct job *j, uint32_t offset)
{
	return offset ? plan_at(j, offset) : "";
}

int plan_fail(struct job *j, enum stage stage, uint32_t detail, int os_errno)
{
	/* Only the first failure is recorded: a process that waits for a failed one only sees a
	 * broken pipe. */
	if (j->status->state == STATE_FAILED)
		return -1;
	j->status->stage = stage;
	j->status->detail = detail;
	j->status->os_errno = os_errno;
	j->status->state = STATE_FAILED;
	return -1;
}
