/* tests/pod/wasi/calls.c - every call of WASI preview 1 does what it says. */
#include "preview1.h"

static char buf[65536];
static u32 n, fd, dir;
static u64 big;

static void program(void)
{
	u32 count, bytes, at[16];
	u64 one, two;

	expect("args_sizes_get", args_sizes_get(P(&count), P(&bytes)), 0);
	check("three arguments", count == 3 && bytes == 6 + 4 + 4);
	expect("args_get", args_get(P(at), P(buf)), 0);
	check("the arguments", equal((char *)at[1], "a b", 4) && equal((char *)at[2], "c\"d", 4));
	expect("environ_sizes_get", environ_sizes_get(P(&count), P(&bytes)), 0);
	check("an environment", count > 1 && count < 1000 && bytes < sizeof buf / 2);
	expect("environ_get", environ_get(P(buf + 32768), P(buf)), 0);
	expect("clock_time_get", clock_time_get(0, 1, P(&one)), 0);
	check("after 2020", one > 1577836800000000000ull);
	expect("monotonic", clock_time_get(1, 1, P(&one)), 0);
	expect("monotonic again", clock_time_get(1, 1, P(&two)), 0);
	check("it goes on", two >= one);
	expect("cpu time", clock_time_get(2, 1, P(&one)), 0);
	expect("clock_res_get", clock_res_get(1, P(&one)), 0);
	check("a resolution", one > 0 && one < 1000000000);
	expect("no such clock", clock_time_get(9, 1, P(&one)), INVAL);
	one = two = 0;
	expect("random_get", random_get(P(&one), 8), 0);
	expect("random_get again", random_get(P(&two), 8), 0);
	check("they differ", one != two);
	expect("sched_yield", sched_yield(), 0);
	expect("proc_raise is not here", proc_raise(9), NOSYS);
	expect("sock_accept is not here", sock_accept(0, 0, P(&n)), NOSYS);
	expect("sock_recv is not here", sock_recv(0, 0, 0, 0, P(&n), P(&n)), NOSYS);
	expect("sock_send is not here", sock_send(0, 0, 0, 0, P(&n)), NOSYS);
	expect("sock_shutdown is not here", sock_shutdown(0, 0), NOSYS);
}

static void contents(void)
{
	struct iov v[2] = { { P("hello "), 6 }, { P("world\n"), 6 } }, in = { P(buf), 4096 };
	u64 stat[8];

	expect("create", open_at(dir, "file", 1 | 4, ALL, &fd), 0);
	expect("exclusive", open_at(dir, "file", 1 | 4, ALL, &n), EXIST);
	expect("fd_write", fd_write(fd, P(v), 2, P(&n)), 0);
	check("12 bytes", n == 12);
	expect("fd_seek", fd_seek(fd, 6, 0, P(&big)), 0);
	expect("fd_read", fd_read(fd, P(&in), 1, P(&n)), 0);
	check("the end of it", n == 6 && equal(buf, "world\n", 6));
	expect("fd_tell", fd_tell(fd, P(&big)), 0);
	check("at 12", big == 12);
	in.len = 5;
	expect("fd_pread", fd_pread(fd, P(&in), 1, 0, P(&n)), 0);
	check("its beginning", n == 5 && equal(buf, "hello", 5));
	expect("fd_pwrite", fd_pwrite(fd, P(v), 1, 100, P(&n)), 0);
	expect("fd_filestat_get", fd_filestat_get(fd, P(stat)), 0);
	check("size and type", stat[4] == 106 && (stat[2] & 255) == 4);
	expect("fd_filestat_set_size", fd_filestat_set_size(fd, 12), 0);
	expect("fd_allocate", fd_allocate(fd, 0, 4096), 0);
	expect("fd_filestat_get", fd_filestat_get(fd, P(stat)), 0);
	check("4096 bytes", stat[4] == 4096);
	expect("fd_advise", fd_advise(fd, 0, 0, 0), 0);
	expect("no such advice", fd_advise(fd, 0, 0, 9), INVAL);
	expect("fd_sync", fd_sync(fd), 0);
	expect("fd_datasync", fd_datasync(fd), 0);
	expect("fd_filestat_set_times", fd_filestat_set_times(fd, 1000000000, 2000000001, 1 | 4),
	       0);
	expect("fd_filestat_get", fd_filestat_get(fd, P(stat)), 0);
	check("the times", stat[5] == 1000000000 && stat[6] == 2000000001);
	expect("set and now at once", fd_filestat_set_times(fd, 0, 0, 1 | 2), INVAL);
	expect("a pipe has no place", fd_seek(0, 0, 0, P(&big)), SPIPE);
}

static void rights(void)
{
	u8 stat[24];
	u64 base;
	u32 ro;

	expect("fd_fdstat_get", fd_fdstat_get(fd, P(stat)), 0);
	check("a file", stat[0] == 4);
	expect("fd_fdstat_set_flags", fd_fdstat_set_flags(fd, 1), 0);
	expect("fd_fdstat_get", fd_fdstat_get(fd, P(stat)), 0);
	check("it appends", stat[2] == 1);
	base = *(u64 *)(stat + 8);
	check("it can be read and written", (base & 2) && (base & 64));
	expect("a right is given up", fd_fdstat_set_rights(fd, base & ~64ull, 0), 0);
	expect("and does not come back", fd_fdstat_set_rights(fd, base, 0), NOTCAPABLE);
	expect("nor is it there", fd_write(fd, 0, 0, P(&n)), BADF);
	expect("for reading", open_at(dir, "file", 0, 2, &ro), 0);
	expect("only", fd_write(ro, 0, 0, P(&n)), BADF);
	expect("fd_renumber", fd_renumber(ro, fd), 0);
	expect("is moved", fd_close(ro), BADF);
	expect("to an open one only", fd_renumber(fd, 200), BADF);
	expect("fd_close", fd_close(fd), 0);
	expect("once", fd_close(fd), BADF);
	expect("a directory cannot be read", fd_read(dir, 0, 0, P(&n)), ISDIR);
	expect("a file has no names", path_unlink_file(1, PATH("x")), NOTDIR);
}

static void names(void)
{
	u64 stat[8];

	expect("mkdir", path_create_directory(dir, PATH("d")), 0);
	expect("mkdir again", path_create_directory(dir, PATH("d")), EXIST);
	expect("rename", path_rename(dir, PATH("file"), dir, PATH("d/file")), 0);
	expect("stat", path_filestat_get(dir, 0, PATH("d/file"), P(stat)), 0);
	check("of a file", (stat[2] & 255) == 4 && stat[4] == 4096);
	expect("symlink", path_symlink(PATH("d/file"), dir, PATH("link")), 0);
	expect("readlink", path_readlink(dir, PATH("link"), P(buf), 100, P(&n)), 0);
	check("its target", n == 6 && equal(buf, "d/file", 6));
	expect("readlink, cut", path_readlink(dir, PATH("link"), P(buf), 3, P(&n)), 0);
	check("three bytes", n == 3);
	expect("lstat", path_filestat_get(dir, 0, PATH("link"), P(stat)), 0);
	check("is a link", (stat[2] & 255) == 7);
	expect("stat", path_filestat_get(dir, 1, PATH("link"), P(stat)), 0);
	check("follows it", (stat[2] & 255) == 4);
	expect("times of a link's file", path_filestat_set_times(dir, 1, PATH("link"), 5, 7, 1 | 4),
	       0);
	expect("stat", path_filestat_get(dir, 0, PATH("d/file"), P(stat)), 0);
	check("were set", stat[5] == 5 && stat[6] == 7);
	expect("times of a link", path_filestat_set_times(dir, 0, PATH("link"), 9, 9, 1 | 4), 0);
	expect("open a link without following", open_at(dir, "link", 0, 2, &n), LOOP);
	expect("open through it", path_open(dir, 1, PATH("link"), 0, 2, 0, 0, P(&n)), 0);
	expect("fd_close", fd_close(n), 0);
	expect("hard links are not here", path_link(dir, 0, PATH("link"), dir, PATH("l")), NOTSUP);
	expect("rmdir, full", path_remove_directory(dir, PATH("d")), NOTEMPTY);
	expect("unlink of a directory", path_unlink_file(dir, PATH("d")), ISDIR);
	expect("unlink as a directory", path_unlink_file(dir, PATH("link/")), NOTDIR);
	expect("unlink", path_unlink_file(dir, PATH("d/file")), 0);
	expect("unlink of a link", path_unlink_file(dir, PATH("link")), 0);
	expect("rmdir", path_remove_directory(dir, PATH("d/")), 0);
	expect("nothing there", path_filestat_get(dir, 0, PATH("d"), P(stat)), NOENT);
	expect("no name", path_filestat_get(dir, 0, PATH(""), P(stat)), NOENT);
}

/* As Linux has it for the same names. */
static void slashes(void)
{
	u64 stat[8];

	expect("a new file", open_at(dir, "sf", 1, ALL, &n), 0);
	expect("fd_close", fd_close(n), 0);
	expect("mkdir, written as one", path_create_directory(dir, PATH("sd/")), 0);
	expect("a link to it", path_symlink(PATH("sd"), dir, PATH("sl")), 0);
	expect("unlink of a directory/", path_unlink_file(dir, PATH("sd/")), ISDIR);
	expect("unlink of a file/", path_unlink_file(dir, PATH("sf/")), NOTDIR);
	expect("unlink of a link/", path_unlink_file(dir, PATH("sl/")), NOTDIR);
	expect("unlink of nothing/", path_unlink_file(dir, PATH("s0/")), NOENT);
	expect("rmdir of a file/", path_remove_directory(dir, PATH("sf/")), NOTDIR);
	expect("rmdir of a link/", path_remove_directory(dir, PATH("sl/")), NOTDIR);
	expect("rename of a file/", path_rename(dir, PATH("sf/"), dir, PATH("s1")), NOTDIR);
	expect("rename of a file to a name/", path_rename(dir, PATH("sf"), dir, PATH("s1/")),
	       NOTDIR);
	expect("rename of a directory//", path_rename(dir, PATH("sd//"), dir, PATH("s2/")), 0);
	expect("and back", path_rename(dir, PATH("s2"), dir, PATH("sd")), 0);
	expect("a link at a name/", path_symlink(PATH("sd"), dir, PATH("s3/")), NOENT);
	expect("a link at a directory/", path_symlink(PATH("sd"), dir, PATH("sd/")), EXIST);
	expect("readlink of a link/", path_readlink(dir, PATH("sl/"), P(buf), 9, P(&n)), INVAL);
	expect("readlink of a file/", path_readlink(dir, PATH("sf/"), P(buf), 9, P(&n)), NOTDIR);
	expect("stat of a file/", path_filestat_get(dir, 0, PATH("sf/"), P(stat)), NOTDIR);
	expect("stat of a link/", path_filestat_get(dir, 0, PATH("sl/"), P(stat)), 0);
	check("is its directory", (stat[2] & 255) == 3);
	expect("times of a link/", path_filestat_set_times(dir, 0, PATH("sl/"), 5, 7, 1 | 4), 0);
	expect("stat of a directory", path_filestat_get(dir, 0, PATH("sd"), P(stat)), 0);
	check("were set there", stat[5] == 5 && stat[6] == 7);
	expect("open of a file/", open_at(dir, "sf/", 0, 2, &n), NOTDIR);
	expect("unlink", path_unlink_file(dir, PATH("sf")), 0);
	expect("unlink of the link", path_unlink_file(dir, PATH("sl")), 0);
	expect("rmdir, written as one", path_remove_directory(dir, PATH("sd//")), 0);
}

/* Everything by its name from the top, but for what is the kernel's. */
static void root(void)
{
	u32 top = preopened("/");
	u64 stat[8];

	check("/ is open", top != ~0u);
	expect("/etc", path_filestat_get(top, 0, PATH("etc/passwd"), P(stat)), 0);
	expect("/workspace", path_filestat_get(top, 0, PATH("workspace"), P(stat)), 0);
	expect("not /proc", path_filestat_get(top, 0, PATH("proc"), P(stat)), NOTCAPABLE);
	expect("nor what is in it", open_at(top, "proc/self/status", 0, 2, &n), NOTCAPABLE);
	expect("nor its links", path_readlink(top, PATH("proc/self/exe"), P(buf), 99, P(&n)),
	       NOTCAPABLE);
	expect("nor above it", path_filestat_get(top, 0, PATH("../etc"), P(stat)), NOTCAPABLE);
}

/* Lists with a buffer of some bytes; counts the entries whose names begin with "e". */
static u32 count_entries(u32 size)
{
	u64 cookie = 0;
	u32 used, count = 0;

	for (int rounds = 0; rounds < 10000; rounds++) {
		u32 at = 0;

		if (fd_readdir(dir, P(buf), size, cookie, P(&used)) || used > size)
			return ~0u;
		while (used - at >= 24 && used - at - 24 >= *(u32 *)(buf + at + 16)) {
			count += buf[at + 24] == 'e';
			cookie = *(u64 *)(buf + at);
			at += 24 + *(u32 *)(buf + at + 16);
		}
		if (used < size)
			return count;
	}
	return ~0u;
}

static void listing(void)
{
	char name[4] = "e00";

	for (u32 i = 0; i < 50; i++) {
		name[1] = (char)('0' + i / 10);
		name[2] = (char)('0' + i % 10);
		if (open_at(dir, name, 1, ALL, &n) || fd_close(n))
			check(name, 0);
	}
	check("readdir at once", count_entries(sizeof buf) == 50);
	check("readdir bit by bit", count_entries(64) == 50);
	for (u32 i = 0; i < 50; i++) {
		name[1] = (char)('0' + i / 10);
		name[2] = (char)('0' + i % 10);
		path_unlink_file(dir, PATH(name));
	}
	check("readdir of nothing", count_entries(sizeof buf) == 0);
}

struct subscription {
	u64 data;
	u8 kind, pad[7];
	u32 what, pad2;
	u64 timeout, precision;
	u16 flags, pad3[3];
};

struct event {
	u64 data;
	u16 error;
	u8 kind, pad[5];
	u64 bytes;
	u16 flags, pad2[3];
};

static void waiting(void)
{
	struct subscription s[2] = { { .data = 7, .kind = 0, .what = 1, .timeout = 20000000 },
				     { .data = 8, .kind = 2, .what = 1 } };
	struct event e[2];
	u64 before, after;

	_Static_assert(sizeof *s == 48 && sizeof *e == 32, "layout");
	clock_time_get(1, 1, P(&before));
	expect("poll a clock", poll_oneoff(P(s), P(e), 1, P(&n)), 0);
	clock_time_get(1, 1, P(&after));
	check("20 ms went by", n == 1 && e[0].data == 7 && after - before >= 20000000);
	s[0].timeout = 60000000000;
	expect("poll with standard output", poll_oneoff(P(s), P(e), 2, P(&n)), 0);
	check("which is ready", n == 1 && e[0].data == 8 && e[0].kind == 2 && !e[0].error);
	s[1].what = 99;
	expect("poll with no descriptor", poll_oneoff(P(s), P(e), 2, P(&n)), 0);
	check("says so", n == 1 && e[0].error == BADF);
	s[0].timeout = after + 1000;
	s[0].flags = 1;
	expect("poll until a time that is past", poll_oneoff(P(s), P(e), 1, P(&n)), 0);
	check("at once", n == 1);
	expect("poll for nothing", poll_oneoff(P(s), P(e), 0, P(&n)), INVAL);
	s[0].kind = 9;
	expect("poll for what is not known", poll_oneoff(P(s), P(e), 1, P(&n)), INVAL);
}

void _start(void)
{
	u8 stat[8];

	program();
	dir = preopened("/workspace");
	check("/workspace is open", dir != ~0u);
	check("so is where it started", preopened(".") == 3);
	check("/proc is not", preopened("/proc") == ~0u);
	expect("a name that does not fit", fd_prestat_dir_name(dir, P(buf), 1), NAMETOOLONG);
	expect("no name of the standard streams", fd_prestat_get(1, P(stat)), BADF);
	contents();
	rights();
	names();
	slashes();
	root();
	listing();
	waiting();
	proc_exit(failures ? 1 : 0);
}
