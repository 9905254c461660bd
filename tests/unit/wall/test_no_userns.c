/* The sandbox without namespaces: a launch with the host's paths, its directory, its end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "harness/test.h"
#include "inside/init/no_userns_init.h"
#include "wall/linux/no_userns.h"

static struct launch python(void)
{
	struct launch l = { .filter = LAUNCH_PYTHON };

	l.executable = str_dup("/usr/bin/python3");
	ASSERT_EQ(strlist_add(&l.argv, "python3"), 0);
	ASSERT_EQ(launch_bind(&l, "/usr/lib/python3", NULL, 0), 0);
	return l;
}

static void rewritten(const struct launch *l, struct launch *ret)
{
	cleanup_error struct cordon_error *e = NULL;

	if (no_userns_rewrite(l, "/tmp/box", ret, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
}

static void refused(const struct launch *l, const char *words)
{
	cleanup_launch struct launch out = { 0 };
	cleanup_error struct cordon_error *e = NULL;

	ASSERT_EQ(no_userns_rewrite(l, "/tmp/box", &out, &e), -CORDON_UNSUPPORTED);
	ASSERT_HAS(cordon_error_message(e), words);
	ASSERT(!out.executable);
}

TEST(paths_of_the_workspace_are_in_the_directory)
{
	static const char *const table[][2] = {
		{ "/home/user", "/tmp/box/w/user" },
		{ "/home/user/a b", "/tmp/box/w/user/a b" },
		{ "/tmp", "/tmp/box/w/tmp" },
		{ "/workspace/x", "/tmp/box/w/workspace/x" },
		{ "/run/cordon/code", "/tmp/box/run/cordon/code" },
		{ "--file=/run/cordon/code", "--file=/tmp/box/run/cordon/code" },
		{ "/home/username", "/home/username" }, /* a longer name is another */
		{ "/usr/bin/sh", "/usr/bin/sh" },
		{ "x=y=/tmp", "x=y=/tmp" }, /* only what follows the first = */
		{ "/tmp=/tmp", "/tmp=/tmp" },
		{ "plain", "plain" },
		{ "", "" },
	};
	cleanup_launch struct launch l = python(), out = { 0 };

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		ASSERT_EQ(strlist_add(&l.argv, table[i][0]), 0);
	ASSERT_EQ(launch_env(&l, "HOME", "/home/user"), 0);
	ASSERT_EQ(launch_env(&l, "PATH", "/usr/bin:/bin"), 0);
	rewritten(&l, &out);
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		ASSERT_STREQ(out.argv.items[i + 1], table[i][1]);
	ASSERT_STREQ(out.env.items[0], "HOME=/tmp/box/w/user");
	ASSERT_STREQ(out.env.items[1], "PATH=/usr/bin:/bin");
	ASSERT_STREQ(out.cwd, "/tmp/box/w/user");
	ASSERT_STREQ(out.executable, "/usr/bin/python3");
	ASSERT_EQ(out.bind_count, 1);
	ASSERT_EQ(out.filter, LAUNCH_PYTHON);
}

TEST(files_are_only_those_of_the_runtime)
{
	cleanup_launch struct launch l = python(), out = { 0 };

	ASSERT_EQ(launch_file(&l, "/run/cordon/code", "1", 1, 0444), 0);
	rewritten(&l, &out);
	ASSERT_STREQ(out.files[0].guest, "/tmp/box/run/cordon/code");
	ASSERT_EQ(out.files[0].mode, 0444);
	ASSERT_EQ(launch_file(&l, "/etc/passwd", "x", 1, 0444), 0);
	refused(&l, "no file of its own at '/etc/passwd'");
}

TEST(what_needs_a_namespace_says_so)
{
	cleanup_launch struct launch elsewhere = python(), pod = python(), net = python();

	ASSERT_EQ(launch_bind(&elsewhere, "/etc", "/mnt/etc", 0), 0);
	refused(&elsewhere, "'/etc' cannot be seen as '/mnt/etc'");
	pod.filter = LAUNCH_POD;
	refused(&pod, "the pod guest needs a mount namespace");
	net.has_network = true;
	refused(&net, "leave expose empty");
	net.has_gateway = true;
	refused(&net, "the gateway needs a network namespace");
}

TEST(a_file_of_ours_outside_the_private_directory_is_refused)
{
	cleanup_launch struct launch l = python();

	ASSERT_EQ(launch_file(&l, "/usr/bin/own", "#!", 2, 0555), 0);
	refused(&l, "/usr/bin/own");
}

static void enter_scratch(char dir[static NO_USERNS_PATH])
{
	cleanup_error struct cordon_error *e = NULL;

	if (no_userns_make(geteuid(), dir, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
}

TEST(the_directory_is_its_owners_alone)
{
	char dir[NO_USERNS_PATH], other[NO_USERNS_PATH];
	struct stat st;

	enter_scratch(dir);
	enter_scratch(other);
	ASSERT(strcmp(dir, other) != 0);
	ASSERT_EQ(stat(dir, &st), 0);
	ASSERT_EQ(st.st_mode & 07777, 0700);
	ASSERT_EQ(st.st_uid, geteuid());
	ASSERT_EQ(rmdir(dir) | rmdir(other), 0);
}

TEST(a_place_that_cannot_be_is_an_error)
{
	cleanup_error struct cordon_error *missing = NULL, *wide = NULL;
	char dir[NO_USERNS_PATH], name[NO_USERNS_PATH + 1];

	ASSERT_EQ(setenv("TMPDIR", "/proc/self/nonexistent", 1), 0);
	ASSERT(no_userns_make(geteuid(), dir, &missing) < 0);
	ASSERT_HAS(cordon_error_message(missing), "'/proc/self/nonexistent'");
	ASSERT_STREQ(dir, "");
	memset(name, 'x', sizeof(name));
	name[0] = '/';
	name[NO_USERNS_PATH] = '\0';
	ASSERT_EQ(setenv("TMPDIR", name, 1), 0);
	ASSERT_EQ(no_userns_make(geteuid(), dir, &wide), -CORDON_INVALID);
}

TEST(a_directory_that_cannot_be_given_away_is_removed)
{
	cleanup_error struct cordon_error *e = NULL;
	char dir[NO_USERNS_PATH], parent[] = "/tmp/cordon-test-XXXXXX";

	needs(geteuid() != 0 || setuid(64999) == 0, "user to become");
	ASSERT(mkdtemp(parent) != NULL);
	ASSERT_EQ(setenv("TMPDIR", parent, 1), 0);
	ASSERT(no_userns_make(geteuid() + 1, dir, &e) < 0);
	ASSERT_STREQ(dir, "");
	ASSERT_EQ(rmdir(parent), 0); /* it is empty */
}

TEST(tasks_are_counted_with_their_threads)
{
	uint64_t before = no_userns_count_tasks(geteuid());
	int pipe_fds[2];

	ASSERT(before >= 1);
	ASSERT_EQ(pipe(pipe_fds), 0);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			char byte;

			close(pipe_fds[1]);
			_exit((int)read(pipe_fds[0], &byte, 1));
		}
	/* Others of this user come and go: three of ours are there for certain. */
	ASSERT(no_userns_count_tasks(geteuid()) >= 4);
	ASSERT_EQ(no_userns_count_tasks(4294900000U), 0);
	close(pipe_fds[1]);
	while (wait(NULL) > 0)
		;
}

/* A plan that knows no more than the directory's name. */
static struct job job_in(char *dir)
{
	struct plan *p = mem_alloc(sizeof(*p) + NO_USERNS_PATH);

	ASSERT(p != NULL);
	p->size = sizeof(*p) + NO_USERNS_PATH;
	p->private_dir = sizeof(*p);
	memcpy(p + 1, dir, NO_USERNS_PATH);
	return (struct job){ .plan = p };
}

TEST(the_directory_goes_with_whatever_the_guest_made_of_it)
{
	char dir[NO_USERNS_PATH];
	struct stat st;

	enter_scratch(dir);
	int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT(top >= 0);
	ASSERT_EQ(symlinkat("/etc", top, "link"), 0);
	ASSERT_EQ(mknodat(top, "pipe", S_IFIFO | 0600, 0), 0);
	ASSERT_EQ(mkdirat(top, "closed", 0700), 0);
	ASSERT_EQ(mkdirat(top, "closed/inner", 0), 0);
	ASSERT_EQ(fchmodat(top, "closed", 0, 0), 0);
	/* Deeper than a path can say. */
	int fd = dup(top);
	for (int i = 0; i < 3000; i++) {
		ASSERT_EQ(mkdirat(fd, "d", 0700), 0);
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ASSERT(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
	close(top);
	struct job j = job_in(dir);
	no_userns_remove(&j);
	ASSERT(stat(dir, &st) != 0 && errno == ENOENT);
	ASSERT_EQ(stat("/etc", &st), 0);
	free((void *)(uintptr_t)j.plan);
}

static void be_stubborn(int said)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	if (fork() == 0)
		(void)setsid();
	if (write(said, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

TEST(every_process_below_is_ended)
{
	int said[2];
	char byte;

	ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	ASSERT_EQ(pipe2(said, O_CLOEXEC), 0);
	for (int i = 0; i < 5; i++)
		if (fork() == 0)
			be_stubborn(said[1]);
	close(said[1]);
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(read(said[0], &byte, 1), 1);
	no_userns_end();
	ASSERT_EQ(read(said[0], &byte, 1), 0); /* nobody holds the other end */
	ASSERT(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}
