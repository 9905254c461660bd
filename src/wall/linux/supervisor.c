/* wall/linux/supervisor.c - see supervisor.h. */
#include "wall/linux/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "wall/linux/spawn.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif

extern const unsigned char cordon_init_bytes[];
extern const unsigned long cordon_init_bytes_len;

static int map_status(int fd, struct status **ret, struct cordon_error **reterr)
{
	void *p = mmap(NULL, sizeof(struct status), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return err_errno(reterr, errno, "map the status page");
	*ret = p;
	(*ret)->magic = STATUS_MAGIC;
	return 0;
}

int supervisor_make_status(struct status **ret, int *ret_fd, struct cordon_error **reterr)
{
	cleanup_close int fd = memfd_create("cordon-status", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, sizeof(struct status)) != 0)
		return err_errno(reterr, errno, "make the status page");
	int r = map_status(fd, ret, reterr);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

static int make_program(int *ret_fd, struct cordon_error **reterr)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	cleanup_close int fd = memfd_create("cordon-init", flags | MFD_EXEC);

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 every memfd may be executed */
		fd = memfd_create("cordon-init", flags);
	if (fd < 0)
		return err_errno(reterr, errno, "make the supervisor's file");
	int r = file_write_all(fd, cordon_init_bytes, cordon_init_bytes_len);
	if (r < 0)
		return err_errno(reterr, -r, "write the supervisor's file");
	/* Any process of our uid can open it through /proc. The seals prevent changes. */
	if (fcntl(fd, F_ADD_SEALS, SUPERVISOR_SEALS) != 0)
		return err_errno(reterr, errno, "seal the supervisor's file");
	/* A file that is open for writing cannot be executed: reopen it for reading. */
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int ro = open(path, O_RDONLY | O_CLOEXEC);
	if (ro < 0)
		return err_errno(reterr, errno, "reopen the supervisor's file");
	*ret_fd = ro;
	return 0;
}

static int open_pair(int *ret_ours, int *ret_theirs, struct cordon_error **reterr)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return err_errno(reterr, errno, "make the supervisor's sockets");
	*ret_ours = pair[0];
	*ret_theirs = pair[1];
	return 0;
}

static int spawn_supervisor(const struct supervisor_options *o, struct supervisor *sv,
			    struct cordon_error **reterr)
{
	char number[16];
	const char *const argv[] = { "cordon-init", number, NULL };
	cleanup_close int status = -1, program = -1, inner = -1, awaits = -1;
	bool is_born = o->flags & PLANF_BORN_IN_GROUP;

	snprintf(number, sizeof(number), "%u", o->flags);
	int r = supervisor_make_status(&sv->status, &status, reterr);
	if (r == 0)
		r = make_program(&program, reterr);
	if (r == 0)
		r = open_pair(&sv->control, &inner, reterr);
	if (r == 0)
		r = open_pair(&sv->plan, &awaits, reterr);
	if (r < 0)
		return r;
	struct spawn s = {
		.argv = argv,
		.program_fd = program,
		.fds = { o->fds[0], o->fds[1], o->fds[2], o->fds[3], inner, awaits, status, program,
			 is_born ? o->group_fd : -1 },
		.uid = o->uid,
		.adds_pid = o->adds_pid,
		.gid = o->gid,
		.empties_bounding = o->empties_bounding,
		.cgroup_fd = is_born ? o->own_group_fd : -1,
	};
	_Static_assert(INIT_FD_WIRE == 3 && INIT_FD_CONTROL == 4 && INIT_FD_PLAN == 5 &&
			       INIT_FD_STATUS == 6 && INIT_FD_SELF == 7 && INIT_FD_CGROUP == 8 &&
			       SPAWN_FDS == 9,
		       "the order above");
	return spawn_start(&s, &sv->pid, &sv->pidfd, reterr);
}

int supervisor_start(const struct supervisor_options *o, struct supervisor *ret,
		     struct cordon_error **reterr)
{
	struct supervisor s = { .pidfd = -1, .control = -1, .plan = -1 };
	int r = spawn_supervisor(o, &s, reterr);

	if (r < 0) {
		close_fdp(&s.control);
		close_fdp(&s.plan);
		if (s.status)
			munmap(s.status, sizeof(struct status));
		return r;
	}
	s.uid = o->uid + (o->adds_pid ? (uid_t)s.pid : 0);
	*ret = s;
	return 0;
}
