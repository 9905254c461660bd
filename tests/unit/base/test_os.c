/* unit/base/test_os.c - what base/os.h promises of every operating system. */
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

static bool is_readable(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) > 0;
}

static bool is_private(int fd)
{
	return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

/* The lowest free number: it is the same before and after what leaks nothing. */
static int lowest(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

TEST(an_event_is_readable_until_it_is_cleared)
{
	int fd = os_event_open();

	ASSERT(fd >= 0 && is_private(fd));
	ASSERT(!is_readable(fd));
	for (int i = 0; i < 1000; i++)
		ASSERT_EQ(os_event_set(fd), 0);
	ASSERT(is_readable(fd));
	os_event_clear(fd);
	ASSERT(!is_readable(fd));
	os_event_clear(fd); /* does not wait */
	close(fd);
	ASSERT_EQ(os_event_set(fd), -EBADF);
}

TEST(a_timer_of_the_past_is_readable_and_none_never)
{
	int fd = os_timer_open();

	ASSERT(fd >= 0 && is_private(fd));
	ASSERT_EQ(os_timer_set(fd, clock_now_ns() - 1), 0);
	ASSERT(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 60000) == 1);
	os_timer_clear(fd);
	ASSERT(!is_readable(fd));
	ASSERT_EQ(os_timer_set(fd, 1), 0);
	ASSERT_EQ(os_timer_set(fd, 0), 0);
	ASSERT(!is_readable(fd));
	close(fd);
}

TEST(a_set_tells_which_one_is_ready)
{
	int set = os_watch_open(), a = os_event_open(), b = os_event_open(), tag;
	void *got = NULL;

	ASSERT(set >= 0 && is_private(set));
	ASSERT_EQ(os_watch_add(set, a, NULL), 0);
	ASSERT_EQ(os_watch_add(set, b, &tag), 0);
	ASSERT_EQ(os_watch_add(set, b, &tag), -EEXIST);
	ASSERT(!os_watch_next(set, &got));
	os_event_set(b);
	ASSERT(is_readable(set));
	ASSERT(os_watch_next(set, &got) && got == &tag);
	os_watch_remove(set, b);
	ASSERT(!is_readable(set) && !os_watch_next(set, &got));
	close(a);
	close(b);
	close(set);
}

TEST(a_sealed_memory_file_keeps_its_bytes)
{
	int fd = os_memory_file("test", true), open_one = os_memory_file("test", false);

	ASSERT(fd >= 0 && is_private(fd) && is_private(open_one));
	ASSERT_EQ(write(fd, "abc", 3), 3);
	ASSERT_EQ(os_seal(fd), 0);
	ASSERT(pwrite(fd, "x", 1, 0) < 0 && ftruncate(fd, 1) < 0 && ftruncate(fd, 9) < 0);
	ASSERT(os_seal(open_one) < 0); /* was not asked for */
	ASSERT_EQ(write(open_one, "abc", 3), 3);
	close(fd);
	close(open_one);
}

TEST(a_process_is_readable_when_it_has_ended)
{
	int gate[2];
	char byte;

	ASSERT_EQ(pipe(gate), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(gate[1]);
		_exit((int)read(gate[0], &byte, 1)); /* 0: the other end was closed */
	}
	int fd = os_process_open(pid);
	ASSERT(fd >= 0 && is_private(fd) && !is_readable(fd));
	close(gate[1]);
	ASSERT(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 60000) == 1);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	close(fd);
	ASSERT_EQ(os_process_open(pid), -ESRCH);
}

TEST(this_program_has_a_path)
{
	char path[PATH_MAX], small[2];

	ASSERT(os_program_path(path, sizeof(path)));
	ASSERT(path[0] == '/' && access(path, X_OK) == 0 && access(OS_PROGRAM, X_OK) == 0);
	ASSERT(os_program_path(small, sizeof(small)) && small[1] == '\0');
}

/* Many times, with more than there is room for: what does not fit must not stay open. */
TEST(descriptors_are_passed_and_none_is_left)
{
	int pair[2], sent[OS_FDS + 1], got[OS_FDS], before;
	char word[8];
	size_t count;

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (int i = 0; i <= OS_FDS; i++)
		sent[i] = 0;
	before = lowest();
	for (size_t round = 0; round < 2000; round++) {
		size_t n = round % OS_FDS + 1, room = round % 7;

		ASSERT_EQ(os_fds_send(pair[0], "word", 4, sent, n), 4);
		ASSERT_EQ(os_fds_receive(pair[1], word, sizeof(word), got, room, &count), 4);
		ASSERT_EQ(count, n < room ? n : room);
		for (size_t i = 0; i < count; i++) {
			ASSERT(is_private(got[i]));
			close(got[i]);
		}
	}
	ASSERT_EQ(lowest(), before);
	ASSERT(os_fds_receive(pair[1], word, sizeof(word), got, 4, &count) < 0 && errno == EAGAIN);
	ASSERT_EQ(count, (size_t)0);
	ASSERT(os_fds_send(pair[0], "word", 4, sent, OS_FDS + 1) < 0 && errno == EINVAL);
	uid_t who;
	ASSERT_EQ(os_peer_uid(pair[0], &who), 0);
	ASSERT_EQ(who, geteuid());
}

TEST(nothing_leads_out_of_a_folder)
{
	char dir[] = "/tmp/cordon-os-XXXXXX";

	ASSERT(mkdtemp(dir));
	int top = open(dir, O_RDONLY | O_DIRECTORY);
	ASSERT_EQ(mkdirat(top, "in", 0755), 0);
	ASSERT_EQ(symlinkat("/etc/passwd", top, "out"), 0);
	ASSERT_EQ(symlinkat("in", top, "link"), 0);
	int in = openat(top, "in", O_RDONLY | O_DIRECTORY);
	ASSERT_EQ(os_open_beneath(in, "..", O_RDONLY, 0, 0), -EXDEV);
	ASSERT_EQ(os_open_beneath(in, "/etc/passwd", O_RDONLY, 0, 0), -EXDEV);
	ASSERT_EQ(os_open_beneath(top, "out", O_RDONLY, 0, 0), -EXDEV);
	ASSERT_EQ(os_open_beneath(top, "link", O_RDONLY, 0, OS_NO_LINKS), -ELOOP);
	int fd = os_open_beneath(top, "link/new", O_WRONLY | O_CREAT | O_EXCL, 0600, OS_NO_MOUNTS);
	ASSERT(fd >= 0 && is_private(fd));
	close(fd);
	ASSERT_EQ(os_rename_new(in, "new", "kept"), 0);
	fd = openat(in, "new", O_WRONLY | O_CREAT, 0600);
	ASSERT_EQ(os_rename_new(in, "new", "kept"), -EEXIST);
	close(fd);
	ASSERT_EQ(unlinkat(in, "new", 0) | unlinkat(in, "kept", 0), 0);
	ASSERT_EQ(unlinkat(top, "in", AT_REMOVEDIR) | unlinkat(top, "out", 0) |
			  unlinkat(top, "link", 0) | rmdir(dir),
		  0);
}

TEST(a_file_owner_is_asked_for_without_changing_it)
{
	uid_t uid = os_file_uid((uid_t)-1);
	gid_t gid = os_file_gid((gid_t)-1);

	ASSERT_EQ(uid, geteuid());
	ASSERT_EQ(gid, getegid());
	ASSERT_EQ(os_file_uid((uid_t)-1), uid);
}
