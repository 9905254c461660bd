/* tests/pod/wasi/preview1.h - WASI preview 1 without a libc: imports, and a little TAP. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define NULL ((void *)0)
#define IMPORT(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))
#define P(x) ((u32)(x))

IMPORT(args_get) u32 args_get(u32, u32);
IMPORT(args_sizes_get) u32 args_sizes_get(u32, u32);
IMPORT(environ_get) u32 environ_get(u32, u32);
IMPORT(environ_sizes_get) u32 environ_sizes_get(u32, u32);
IMPORT(clock_res_get) u32 clock_res_get(u32, u32);
IMPORT(clock_time_get) u32 clock_time_get(u32, u64, u32);
IMPORT(proc_exit) _Noreturn void proc_exit(u32);
IMPORT(proc_raise) u32 proc_raise(u32);
IMPORT(sched_yield) u32 sched_yield(void);
IMPORT(random_get) u32 random_get(u32, u32);
IMPORT(fd_advise) u32 fd_advise(u32, u64, u64, u32);
IMPORT(fd_allocate) u32 fd_allocate(u32, u64, u64);
IMPORT(fd_close) u32 fd_close(u32);
IMPORT(fd_datasync) u32 fd_datasync(u32);
IMPORT(fd_fdstat_get) u32 fd_fdstat_get(u32, u32);
IMPORT(fd_fdstat_set_flags) u32 fd_fdstat_set_flags(u32, u32);
IMPORT(fd_fdstat_set_rights) u32 fd_fdstat_set_rights(u32, u64, u64);
IMPORT(fd_filestat_get) u32 fd_filestat_get(u32, u32);
IMPORT(fd_filestat_set_size) u32 fd_filestat_set_size(u32, u64);
IMPORT(fd_filestat_set_times) u32 fd_filestat_set_times(u32, u64, u64, u32);
IMPORT(fd_pread) u32 fd_pread(u32, u32, u32, u64, u32);
IMPORT(fd_prestat_get) u32 fd_prestat_get(u32, u32);
IMPORT(fd_prestat_dir_name) u32 fd_prestat_dir_name(u32, u32, u32);
IMPORT(fd_pwrite) u32 fd_pwrite(u32, u32, u32, u64, u32);
IMPORT(fd_read) u32 fd_read(u32, u32, u32, u32);
IMPORT(fd_readdir) u32 fd_readdir(u32, u32, u32, u64, u32);
IMPORT(fd_renumber) u32 fd_renumber(u32, u32);
IMPORT(fd_seek) u32 fd_seek(u32, u64, u32, u32);
IMPORT(fd_sync) u32 fd_sync(u32);
IMPORT(fd_tell) u32 fd_tell(u32, u32);
IMPORT(fd_write) u32 fd_write(u32, u32, u32, u32);
IMPORT(path_create_directory) u32 path_create_directory(u32, u32, u32);
IMPORT(path_filestat_get) u32 path_filestat_get(u32, u32, u32, u32, u32);
IMPORT(path_filestat_set_times) u32 path_filestat_set_times(u32, u32, u32, u32, u64, u64, u32);
IMPORT(path_link) u32 path_link(u32, u32, u32, u32, u32, u32, u32);
IMPORT(path_open) u32 path_open(u32, u32, u32, u32, u32, u64, u64, u32, u32);
IMPORT(path_readlink) u32 path_readlink(u32, u32, u32, u32, u32, u32);
IMPORT(path_remove_directory) u32 path_remove_directory(u32, u32, u32);
IMPORT(path_rename) u32 path_rename(u32, u32, u32, u32, u32, u32);
IMPORT(path_symlink) u32 path_symlink(u32, u32, u32, u32, u32);
IMPORT(path_unlink_file) u32 path_unlink_file(u32, u32, u32);
IMPORT(poll_oneoff) u32 poll_oneoff(u32, u32, u32, u32);
IMPORT(sock_accept) u32 sock_accept(u32, u32, u32);
IMPORT(sock_recv) u32 sock_recv(u32, u32, u32, u32, u32, u32);
IMPORT(sock_send) u32 sock_send(u32, u32, u32, u32, u32);
IMPORT(sock_shutdown) u32 sock_shutdown(u32, u32);

enum {
	BADF = 8,
	EXIST = 20,
	FAULT = 21,
	INVAL = 28,
	ISDIR = 31,
	LOOP = 32,
	NAMETOOLONG = 37,
	NOENT = 44,
	NOSYS = 52,
	NOTDIR = 54,
	NOTEMPTY = 55,
	NOTSUP = 58,
	SPIPE = 70,
	NOTCAPABLE = 76
};
#define ALL (~0ull)

struct iov {
	u32 at, len;
};

static u32 length(const char *s)
{
	u32 n = 0;

	while (s[n])
		n++;
	return n;
}

static int equal(const char *a, const char *b, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (a[i] != b[i])
			return 0;
	return 1;
}

static void say(const char *s)
{
	struct iov v = { P(s), length(s) };
	u32 n;

	fd_write(1, P(&v), 1, P(&n));
}

static void say_number(u32 n)
{
	char text[12];
	int i = 11;

	text[i] = 0;
	do {
		text[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	say(text + i);
}

static u32 failures;

static void check(const char *name, int is_true)
{
	failures += !is_true;
	say(is_true ? "ok - " : "not ok - ");
	say(name);
	say("\n");
}

/* An error number, and which one it should have been. */
static void expect(const char *name, u32 got, u32 wanted)
{
	check(name, got == wanted);
	if (got != wanted) {
		say("# got ");
		say_number(got);
		say(", wanted ");
		say_number(wanted);
		say("\n");
	}
}

#define PATH(s) P(s), length(s)

static u32 open_at(u32 dir, const char *name, u32 how, u64 rights, u32 *ret)
{
	return path_open(dir, 0, PATH(name), how, rights, ALL, 0, P(ret));
}

/* The descriptor of a preopened directory, or ~0. */
static u32 preopened(const char *name)
{
	char text[64];
	u32 stat[2];

	for (u32 fd = 3; fd < 64 && !fd_prestat_get(fd, P(stat)); fd++)
		if (stat[1] == length(name) && !fd_prestat_dir_name(fd, P(text), stat[1]) &&
		    equal(text, name, stat[1]))
			return fd;
	return ~0u;
}
