/* Another user's directory appears as the sandbox's own. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"
#include "wall/linux/idmap.h"
#include "wall/linux/kernel.h"

enum { OWNER = 4242, GROUP = 4343, BOX = 64210 };

/* A tmpfs of our own, which knows how to map ids, with a directory that belongs to somebody. */
static const char *scratch(uid_t owner, gid_t group, mode_t mode)
{
	needs(geteuid() == 0, "root");
	ASSERT_EQ(unshare(CLONE_NEWNS), 0);
	ASSERT_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	ASSERT_EQ(mount("scratch", "/tmp", "tmpfs", 0, "size=1m"), 0);
	ASSERT_EQ(mkdir("/tmp/project", 0700), 0);
	ASSERT_EQ(chown("/tmp/project", owner, group), 0);
	ASSERT_EQ(chmod("/tmp/project", mode), 0);
	return "/tmp/project";
}

static int opened(const char *path)
{
	struct cordon_error *e = NULL;
	int fd = -2;

	if (idmap_open(path, BOX, BOX, &fd, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return fd;
}

static void refused(const char *path, int code, const char *words)
{
	struct cordon_error *e = NULL;
	int fd = -2;

	ASSERT_EQ(idmap_open(path, BOX, BOX, &fd, &e), -code);
	ASSERT_HAS(cordon_error_message(e), words);
	ASSERT_EQ(fd, -2); /* untouched */
	cordon_error_free(e);
}

TEST(its_own_needs_no_map)
{
	ASSERT_EQ(opened(scratch(BOX, BOX, 0700)), -1);
}

TEST(what_anybody_may_write_needs_no_map)
{
	ASSERT_EQ(opened(scratch(0, 0, 01777)), -1);
}

TEST(what_belongs_to_root_is_refused)
{
	refused(scratch(0, 0, 0755), CORDON_INVALID, "belongs to root");
}

TEST(what_is_missing_is_an_error)
{
	needs(geteuid() == 0, "root");
	refused("/nonexistent/project", CORDON_NOT_FOUND, "'/nonexistent/project'");
}

TEST(a_file_system_that_maps_nothing_is_refused)
{
	(void)scratch(OWNER, GROUP, 0700);
	ASSERT_EQ(mkdir("/tmp/proc", 0755), 0);
	ASSERT_EQ(mount("proc", "/tmp/proc", "proc", 0, NULL), 0);
	/* One of ours becomes another user's: proc cannot map ids. */
	pid_t pid = fork();
	if (pid == 0) {
		(void)setresgid(GROUP, GROUP, GROUP);
		(void)setresuid(OWNER, OWNER, OWNER);
		for (;;)
			pause();
	}
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/tmp/proc/%d/task/%d", pid, pid);
	do
		ASSERT_EQ(stat(path, &st), 0);
	while (st.st_uid != OWNER && usleep(1000) == 0);
	refused(path, CORDON_UNSUPPORTED, "mode snapshot");
	kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
}

static void write_file(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ASSERT(fd >= 0);
	ASSERT_EQ(write(fd, text, strlen(text)), (long long)strlen(text));
	close(fd);
}

static int attach(int tree)
{
	ASSERT_EQ(mkdir("/tmp/seen", 0755), 0);
	ASSERT_EQ(syscall(429 /* move_mount */, tree, "", AT_FDCWD, "/tmp/seen", 4), 0);
	/* Not for reading: root has no rights over ids that the mount does not know. */
	int dir = open("/tmp/seen", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ASSERT(dir >= 0);
	return dir;
}

TEST(the_owners_files_are_the_sandboxes_and_stay_the_owners)
{
	const char *path = scratch(OWNER, GROUP, 0700);
	int real = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	write_file(real, "file", "old");
	ASSERT_EQ(fchownat(real, "file", OWNER, GROUP, 0), 0);
	write_file(real, "foreign", "x");
	ASSERT_EQ(fchownat(real, "foreign", 4244, GROUP, 0), 0);
	int dir = attach(opened(path));
	ASSERT_EQ(fstatat(dir, "file", &st, 0), 0);
	ASSERT_EQ(st.st_uid, BOX);
	ASSERT_EQ(st.st_gid, BOX);
	ASSERT_EQ(fstatat(dir, "foreign", &st, 0), 0);
	ASSERT_EQ(st.st_uid, 65534); /* nobody's */
	pid_t pid = fork();
	if (pid == 0) {
		ASSERT_EQ(setresgid(BOX, BOX, BOX) | setresuid(BOX, BOX, BOX), 0);
		write_file(dir, "file", "new");
		write_file(dir, "made", "made");
		ASSERT(openat(dir, "foreign", O_WRONLY) < 0 && errno == EACCES);
		_exit(0);
	}
	int status;
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_EQ(status, 0);
	ASSERT_EQ(fstatat(real, "made", &st, 0), 0);
	ASSERT_EQ(st.st_uid, OWNER);
	ASSERT_EQ(st.st_gid, GROUP);
	ASSERT_EQ(fstatat(real, "file", &st, 0), 0);
	ASSERT_EQ(st.st_uid, OWNER);
}

TEST(what_has_roots_group_is_refused)
{
	refused(scratch(OWNER, 0, 0770), CORDON_INVALID, "its group is root");
}

TEST(nothing_is_left_of_the_namespace_that_held_the_maps)
{
	const char *path = scratch(OWNER, GROUP, 0700);
	int fd = opened(path);

	ASSERT(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	ASSERT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
}
