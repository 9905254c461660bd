/* tests/pod/door_fixture.c - a pod process without a module: memory, a root, and the door. */
#include "door_fixture.h"

#include <ftw.h>
#include <sys/prctl.h>
#include <sys/resource.h>

struct w2c_sys fixture;
wasm_rt_memory_t fixture_memory;
static char root[] = "/dev/shm/pod-door-XXXXXX";

static void enter(struct w2c_sys *process, wasm_rt_memory_t **ret_memory)
{
	(void)process;
	(void)ret_memory;
	_exit(77); /* exec reached a program */
}

static const struct program program = { "true", enter, NULL, 0 };
const struct command pod_commands[] = { { "denied", &program }, { "true", &program }, { 0 } };
const size_t pod_command_count = 2;

static pid_t owner;

static int open_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)at;
	if (type == FTW_D || type == FTW_DNR)
		chmod(path, 0700);
	return type == FTW_DNR; /* again, to see what is in it */
}

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	remove(path);
	return 0;
}

/* Whatever modes the calls have left. */
static void remove_root(void)
{
	if (getpid() != owner)
		return;
	chmod(root, 0700);
	for (int i = 0; i < 100 && nftw(root, open_one, 8, FTW_PHYS); i++)
		;
	nftw(root, unlink_one, 8, FTW_PHYS | FTW_DEPTH);
}

static void fail(const char *what)
{
	perror(what);
	exit(99);
}

static void make_file(const char *name, const char *text, mode_t mode)
{
	char path[256];
	int fd;

	snprintf(path, sizeof path, "%s/%s", root, name);
	fd = open(path, O_CREAT | O_WRONLY, mode);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(path);
	close(fd);
}

static void make_root(void)
{
	char path[256];
	static const char *const dirs[] = { "usr", "usr/bin", "tmp", "etc" };

	/* In memory, where a call to write it all out has nothing to wait for. */
	if (!owner && !mkdtemp(root)) {
		strcpy(root, "/tmp/pod-door-XXXXXX");
		if (!mkdtemp(root))
			fail("mkdtemp");
	}
	if (!owner)
		atexit(remove_root);
	owner = getpid();
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		snprintf(path, sizeof path, "%s/%s", root, dirs[i]);
		if (mkdir(path, 0755))
			fail(path);
	}
	make_file("usr/bin/true", "", 0755);
	make_file("usr/bin/denied", "", 0755);
	make_file("tmp/file", "content", 0644);
	make_file("tmp/script", "#!/usr/bin/true\n", 0755);
	make_file("tmp/forged", "cordon pod: true\n", 0755);
	snprintf(path, sizeof path, "%s/tmp/escape", root);
	if (symlink("/etc/passwd", path))
		fail(path);
	snprintf(path, sizeof path, "%s/tmp/up", root);
	if (symlink("../../../../../../etc/shadow", path))
		fail(path);
}

/* Hostile calls are made for real: never with root's rights over this machine. */
static void drop_root(void)
{
	if (geteuid())
		return;
	if (setgroups(0, NULL) || setresgid(64321, 64321, 64321) ||
	    setresuid(64321, 64321, 64321) || !setuid(0))
		fail("dropping root");
	prctl(PR_SET_DUMPABLE, 1); /* a sanitizer looks at its own process */
}

/* Where they lead from outside of calls, above what a guest may name. */
static int public[3] = { -1, -1, -1 }, private_file = -1;

void fixture_private_stdio(void)
{
	char path[256];

	if (private_file < 0) {
		snprintf(path, sizeof path, "%s/tmp/stdio", root);
		int fd = open(path, O_CREAT | O_RDWR, 0600);

		private_file = fcntl(fd, F_DUPFD, FIXTURE_ABOVE);
		close(fd);
		for (int i = 0; i < 3; i++)
		public[i] = fcntl(i, F_DUPFD, FIXTURE_ABOVE);
	}
	for (int i = 0; i < 3; i++)
		if (private_file < 0 || dup2(private_file, i) < 0)
			_exit(98);
}

void fixture_public_stdio(void)
{
	for (int i = 0; i < 3; i++)
		if (public[i] < 0 || dup2(public[i], i) < 0)
			close(i);
}

void fixture_open(void)
{
	const struct rlimit small = { 1 << 20, 1 << 20 };

	drop_root();
	/* A file of terabytes is copied for hours. */
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &small))
		fail("limit");
	make_root();
	door_init();
	if (instance_open(0))
		fail("instance");
	wasm_rt_allocate_memory(&fixture_memory, FIXTURE_PAGES, FIXTURE_PAGES, false, 65536);
	fixture.memory = &fixture_memory;
	fixture.fd_limit = fixture.fd_soft = 64;
	for (int i = 0; i < PRIVATE_COUNT; i++)
		fixture.fds[i] = -1;
	fixture.fds[PRIVATE_ROOT] = fcntl(open(root, O_PATH | O_DIRECTORY), F_DUPFD, 64);
	fixture.rooted = true;
	strcpy(fixture.root, root);
	fixture.command = &pod_commands[1];
	if (chdir(root) || image_open(&fixture))
		fail("image");
}

void fixture_new_root(void)
{
	int fd;

	remove_root();
	if (mkdir(root, 0755))
		fail(root);
	make_root();
	close(fixture.fds[PRIVATE_ROOT]);
	fd = open(root, O_PATH | O_DIRECTORY);
	fixture.fds[PRIVATE_ROOT] = fcntl(fd, F_DUPFD, 64);
	close(fd);
	free(fixture.image_ino);
	if (chdir(root) || image_open(&fixture))
		fail("image");
}

void fixture_again(void)
{
	static unsigned runs;

	signals_attach(NULL);
	signals_hold();
	signals_release();
	syscall(SYS_close_range, 3, fixture.fd_limit - 1, 0);
	umask(022);
	fixture.fd_soft = fixture.fd_limit;
	fixture.next = NULL;
	memset(fixture_memory.data, 0, FIXTURE_BYTES);
	chmod(root, 0755);
	if (++runs % 2048 == 0)
		fixture_new_root();
	if (chdir(root))
		fail(root);
}

uint64_t fixture_string(uint64_t at, const char *text)
{
	strcpy((char *)fixture_memory.data + at, text);
	return at;
}

int64_t fixture_call(uint64_t n, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		     uint64_t f)
{
	return (int64_t)w2c_sys_call(&fixture, n, a, b, c, d, e, f);
}
