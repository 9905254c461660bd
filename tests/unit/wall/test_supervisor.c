/* The end of a supervisor that was killed: pid 1 ends too, however early that was. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/file.h"
#include "harness/test.h"
#include "wall/linux/format.h"
#include "wall/linux/supervisor.h"

extern const unsigned char cordon_init_bytes[];
extern const unsigned long cordon_init_bytes_len;

enum { END_MS = 60000, SPARE_FD = 100 };

static int open_program(void)
{
	char path[64];
	cleanup_close int fd = memfd_create("cordon-init", MFD_CLOEXEC);

	ASSERT(fd >= 0);
	ASSERT_EQ(file_write_all(fd, cordon_init_bytes, cordon_init_bytes_len), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int program = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT(program >= 0);
	return program;
}

_Noreturn static void become_supervisor(const int fds[static 4], uint32_t flags)
{
	static const int numbers[] = { INIT_FD_CONTROL, INIT_FD_PLAN, INIT_FD_STATUS,
				       INIT_FD_SELF };
	char name[] = "cordon-init", number[16];
	char *const argv[] = { name, number, NULL }, *const none[] = { NULL };
	int parked[4];

	(void)snprintf(number, sizeof(number), "%u", flags);
	for (int i = 0; i < 4; i++)
		parked[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, SPARE_FD);
	for (int i = 0; i < 4; i++)
		(void)dup2(parked[i], numbers[i]);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
		(void)fexecve(INIT_FD_SELF, argv, none);
	_exit(126);
}

/* A supervisor that is stopped in the call that has just made pid 1. Its sockets stay open. */
static pid_t stop_at_clone(uint32_t flags)
{
	struct status *page = NULL;
	int control[2], plan[2], status = -1, how = 0;

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, plan), 0);
	ASSERT_EQ(supervisor_make_status(&page, &status, NULL), 0);
	const int fds[] = { control[1], plan[1], status, open_program() };
	pid_t pid = fork();
	if (pid == 0)
		become_supervisor(fds, flags);
	ASSERT(pid > 0);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	ASSERT_EQ(waitpid(pid, &how, __WALL), pid);
	needs(WIFSTOPPED(how), "ptrace");
	ASSERT_EQ(ptrace(PTRACE_SETOPTIONS, pid, NULL,
			 PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL),
		  0);
	while (WIFSTOPPED(how) && how >> 16 != PTRACE_EVENT_FORK &&
	       how >> 16 != PTRACE_EVENT_CLONE) {
		ASSERT_EQ(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
		ASSERT_EQ(waitpid(pid, &how, __WALL), pid);
	}
	needs(WIFSTOPPED(how) || page->os_errno == 0, "user namespaces");
	ASSERT(WIFSTOPPED(how));
	return pid;
}

static void is_followed(uint32_t flags)
{
	pid_t supervisor = stop_at_clone(flags);
	unsigned long born = 0;
	int how;

	ASSERT_EQ(ptrace(PTRACE_GETEVENTMSG, supervisor, NULL, &born), 0);
	pid_t first = (pid_t)born;
	ASSERT_EQ(waitpid(first, &how, __WALL), first);
	ASSERT(WIFSTOPPED(how)); /* before its first instruction */
	cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, first, 0);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	ASSERT(pidfd >= 0);
	ASSERT_EQ(kill(supervisor, SIGKILL), 0);
	ASSERT_EQ(waitpid(supervisor, &how, __WALL), supervisor);
	ASSERT_EQ(ptrace(PTRACE_DETACH, first, NULL, NULL), 0);
	bool has_ended = poll(&p, 1, END_MS) == 1;
	if (!has_ended)
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	ASSERT(has_ended);
}

TEST(pid_1_does_not_outlive_a_supervisor_killed_at_its_birth)
{
	is_followed(PLANF_USERNS);
}

TEST(the_first_process_does_not_either_without_namespaces)
{
	is_followed(0);
}
