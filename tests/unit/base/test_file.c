/* unit/base/test_file.c - whole reads and writes, lookups that stay beneath a directory. */
#include "base/file.h"
#include "base/str.h"
#include "harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

static char dir[] = "/tmp/cordon-test-file-XXXXXX";

static void enter_dir(void)
{
	ASSERT(mkdtemp(dir));
	ASSERT_EQ(chdir(dir), 0);
}

static void leave_dir(void)
{
	cleanup_free char *command = str_printf("rm -rf %s", dir);
	ASSERT_EQ(chdir("/"), 0);
	ASSERT_EQ(system(command), 0);
}

TEST(saves_and_loads)
{
	struct buf b = { 0 };
	struct stat st;

	enter_dir();
	ASSERT_EQ(file_save("x", 0640, "hello", 5, NULL), 0);
	ASSERT_EQ(file_save("x", 0600, "again", 5, NULL), 0);
	ASSERT_EQ(stat("x", &st), 0);
	ASSERT_EQ(st.st_mode & 07777, 0600);
	ASSERT_EQ(file_load("x", 5, &b, NULL), 0);
	ASSERT_STREQ(buf_text(&b), "again");
	buf_done(&b);
	ASSERT_EQ(system("test $(ls -A | wc -l) = 1"), 0); /* no temporary file is left */
	leave_dir();
}

TEST(a_save_that_fails_leaves_nothing)
{
	enter_dir();
	ASSERT_EQ(mkdir("taken", 0700), 0);
	ASSERT_EQ(mkdir("taken/inside", 0700), 0);
	ASSERT(file_save("taken", 0600, "x", 1, NULL) < 0);
	ASSERT_EQ(file_save("missing/x", 0600, "x", 1, NULL), -CORDON_NOT_FOUND);
	ASSERT_EQ(system("test $(ls -A | wc -l) = 1"), 0);
	leave_dir();
}

TEST(a_save_replaces_a_link_and_does_not_follow_it)
{
	struct stat st;

	enter_dir();
	ASSERT_EQ(file_save("target", 0600, "safe", 4, NULL), 0);
	ASSERT_EQ(symlink("target", "link"), 0);
	ASSERT_EQ(file_save("link", 0600, "new", 3, NULL), 0);
	ASSERT_EQ(lstat("link", &st), 0);
	ASSERT(S_ISREG(st.st_mode));
	ASSERT_EQ(stat("target", &st), 0);
	ASSERT_EQ(st.st_size, 4);
	leave_dir();
}

TEST(only_regular_files_of_the_right_size_are_loaded)
{
	static const struct {
		const char *path, *reason;
		int code;
	} cases[] = {
		{ "big", "has 6 bytes, more than the 5 allowed", CORDON_LIMIT },
		{ "directory", "is a directory", CORDON_INVALID },
		{ "fifo", "is not a regular file", CORDON_INVALID },
		{ "/dev/zero", "is not a regular file", CORDON_INVALID },
		{ "missing", "open 'missing'", CORDON_NOT_FOUND },
	};

	enter_dir();
	ASSERT_EQ(file_save("big", 0600, "123456", 6, NULL), 0);
	ASSERT_EQ(mkdir("directory", 0700), 0);
	ASSERT_EQ(mkfifo("fifo", 0600), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf b = { 0 };
		struct cordon_error *e = NULL;
		ASSERT_EQ(file_load(cases[i].path, 5, &b, &e), -cases[i].code);
		ASSERT_HAS(cordon_error_message(e), cases[i].reason);
		ASSERT(!b.data);
		cordon_error_free(e);
	}
	leave_dir();
}

TEST(a_file_whose_size_lies_is_still_limited)
{
	struct buf b = { 0 };

	/* Files of /proc say they are empty. */
	ASSERT_EQ(file_load("/proc/self/status", 10, &b, NULL), -CORDON_LIMIT);
	ASSERT_EQ(file_load("/proc/self/status", 1 << 20, &b, NULL), 0);
	ASSERT_HAS(buf_text(&b), "Name:");
	buf_done(&b);
}

TEST(dash_is_standard_input)
{
	struct buf b = { 0 };
	int fd;

	ASSERT_EQ(file_from_bytes("in", "typed", 5, &fd, NULL), 0);
	ASSERT_EQ(dup2(fd, STDIN_FILENO), STDIN_FILENO);
	ASSERT_EQ(file_load("-", 100, &b, NULL), 0);
	ASSERT_STREQ(buf_text(&b), "typed");
	buf_done(&b);
}

enum { PLENTY = 1 << 20 };

static void *drain(void *arg)
{
	int fd = *(int *)arg;
	char *bytes = malloc(PLENTY + 1);
	ssize_t n = file_read_full(fd, bytes, PLENTY + 1);

	for (ssize_t i = 0; i < n; i++)
		if (bytes[i] != (char)(i % 251))
			n = -1;
	free(bytes);
	return (void *)(intptr_t)n;
}

TEST(a_descriptor_that_does_not_block_is_waited_for)
{
	int pair[2];
	pthread_t reader;
	void *got;
	char *bytes = malloc(PLENTY);

	for (int i = 0; i < PLENTY; i++)
		bytes[i] = (char)(i % 251);
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ASSERT_EQ(file_set_nonblock(pair[0], true), 0);
	ASSERT_EQ(file_set_nonblock(pair[1], true), 0);
	ASSERT_EQ(pthread_create(&reader, NULL, drain, &pair[1]), 0);
	ASSERT_EQ(file_write_all(pair[0], bytes, PLENTY), 0);
	close(pair[0]);
	ASSERT_EQ(pthread_join(reader, &got), 0);
	ASSERT_EQ((intptr_t)got, PLENTY);
	close(pair[1]);
	free(bytes);
}

TEST(failures_come_back_as_errno)
{
	char byte;

	ASSERT_EQ(file_write_all(-1, "x", 1), -EBADF);
	ASSERT_EQ(file_read_full(-1, &byte, 1), -EBADF);
	ASSERT_EQ(file_set_nonblock(-1, true), -EBADF);
}

TEST(bytes_in_a_sealed_file_cannot_be_changed)
{
	char bytes[8] = { 0 };
	int fd = -1;

	ASSERT_EQ(file_from_bytes("sealed", "constant", 8, &fd, NULL), 0);
	ASSERT_EQ(file_read_full(fd, bytes, 8), 8);
	ASSERT(memcmp(bytes, "constant", 8) == 0);
	ASSERT_EQ(pwrite(fd, "x", 1, 0), -1);
	ASSERT_EQ(ftruncate(fd, 0), -1);
	ASSERT(mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	ASSERT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

TEST(a_draft_gets_its_name_when_it_is_whole)
{
	const char *path = "draft";
	enter_dir();
	for (int round = 0; round < 2; round++) {
		cleanup_file_draft struct file_draft d = { .fd = -1, .dir_fd = -1 };
		cleanup_error struct cordon_error *e = NULL;
		ASSERT_EQ(file_draft_open(&d, path, NULL), 0);
		ASSERT_EQ(access(path, F_OK), round - 1);
		ASSERT_EQ(file_write_all(d.fd, "new", 3), 0);
		ASSERT_EQ(file_draft_publish(&d, 0600, false, &e), round ? -CORDON_EXISTS : 0);
		if (round)
			ASSERT_EQ(file_draft_publish(&d, 0600, true, NULL), 0);
	}
	{
		cleanup_file_draft struct file_draft d = { .fd = -1, .dir_fd = -1 };
		ASSERT_EQ(file_draft_open(&d, path, NULL), 0);
		ASSERT_EQ(file_write_all(d.fd, "half", 4), 0);
	}
	cleanup_buf struct buf b = { 0 };
	ASSERT_EQ(file_load(path, 100, &b, NULL), 0);
	ASSERT_STREQ(buf_text(&b), "new");
	ASSERT_EQ(system("test $(ls -A | wc -l) = 1"), 0); /* one that was given up is gone */
	leave_dir();
}
