/* tests/pod/wasi/hostile.c - a program that lies about every pointer, length, count and name. */
#include "preview1.h"

#define ROOM 65536u
static _Alignas(8) u8 room[ROOM];
static u32 dir, other, n;
static u64 seed = 88172645463325252ull;

static u64 next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Outside, at the edge, around the 32 bits, or into what may be overwritten. */
static u64 wild(void)
{
	u64 size = (u64)__builtin_wasm_memory_size(0) * 65536u;
	const u64 edges[] = { 0xffffffff, 0xfffffff8, 0x80000000, 0x7fffffff,
			      size,       size - 1,   size - 7,   size + 1 };

	switch (next() % 4) {
	case 0:
		return edges[next() % 8];
	case 1:
		return next() % 16;
	default:
		return P(room) + next() % ROOM;
	}
}

static u32 wild_fd(void)
{
	const u32 fds[] = { 0xffffffff, 0x7fffffff, 1024, 256, 255, dir, dir, dir, other, 3, 1023 };

	return fds[next() % 11];
}

static u64 wild_number(void)
{
	const u64 numbers[] = { 0, 1, ~0ull, 1ull << 63, (1ull << 63) - 1, 4096, 1ull << 40 };

	return numbers[next() % 7];
}

#define W (u32) wild()
#define N (u32)(next() % 3 ? next() % 300 : wild())

/* The pointers that a call writes through are given as sound only inside the room. */
struct wild {
	u32 fd, out, len;
	u64 x, y;
};

static void one_program(u32 which, struct wild *w)
{
	switch (which) {
	case 0:
		args_get(0xfffffff0, 0xfffffff0);
		break;
	case 1:
		args_sizes_get(w->out, w->out);
		break;
	case 2:
		environ_get(0xfffff000, 0xfffff000);
		break;
	case 3:
		environ_sizes_get(w->out, w->out);
		break;
	case 4:
		clock_res_get((u32)w->x, w->out);
		break;
	case 5:
		clock_time_get((u32)w->x, w->y, w->out);
		break;
	case 6:
		proc_raise((u32)w->x);
		break;
	case 7:
		random_get(P(room) + 1000, w->len);
		break;
	case 8:
		poll_oneoff(0xfffffff0, w->out, N, w->out);
		break;
	case 9:
		sock_accept(w->fd, N, w->out);
		break;
	case 10:
		sock_recv(w->fd, W, N, N, w->out, w->out);
		break;
	case 11:
		sock_send(w->fd, W, N, N, w->out);
		break;
	default:
		sock_shutdown(w->fd, N);
		break;
	}
}

static void one_fd(u32 which, struct wild *w)
{
	switch (which) {
	case 0:
		fd_advise(w->fd, w->x, w->y, N);
		break;
	case 1:
		fd_allocate(w->fd, w->x, 1 + (w->y & 0xffff));
		break;
	case 2:
		fd_fdstat_get(w->fd, w->out);
		break;
	case 3:
		fd_fdstat_set_flags(w->fd, N);
		break;
	case 4:
		fd_fdstat_set_rights(other, w->x, w->y);
		break;
	case 5:
		fd_filestat_get(w->fd, w->out);
		break;
	case 6:
		fd_filestat_set_size(w->fd, w->x & 0xfffff);
		break;
	case 7:
		fd_filestat_set_times(w->fd, w->x, w->y, N);
		break;
	case 8:
		fd_pread(other, W, N, w->x, w->out);
		break;
	case 9:
		fd_prestat_get(w->fd, w->out);
		break;
	case 10:
		fd_prestat_dir_name(w->fd, w->out, N);
		break;
	case 11:
		fd_pwrite(other, W, N, w->x & 0xffff, w->out);
		break;
	case 12:
		fd_read(other, W, N, w->out);
		break;
	case 13:
		fd_readdir(w->fd, P(room) + 2000, w->len, next() % 2 ? 0 : w->x, w->out);
		break;
	case 14:
		fd_seek(w->fd, w->x, N, w->out);
		break;
	case 15:
		fd_tell(w->fd, w->out);
		break;
	default:
		fd_write(other, W, N, w->out);
		break;
	}
}

static void one_path(u32 which, struct wild *w)
{
	switch (which) {
	case 0:
		path_create_directory(w->fd, W, N);
		break;
	case 1:
		path_filestat_get(w->fd, N, W, N, w->out);
		break;
	case 2:
		path_filestat_set_times(w->fd, N, W, N, w->x, w->y, N);
		break;
	case 3:
		path_link(w->fd, N, W, N, w->fd, W, N);
		break;
	case 4:
		path_open(w->fd, N, W, N, N, w->x, w->y, N, w->out);
		break;
	case 5:
		path_readlink(w->fd, W, N, P(room) + 3000, w->len, w->out);
		break;
	case 6:
		path_remove_directory(w->fd, W, N);
		break;
	case 7:
		path_rename(w->fd, W, N, w->fd, W, N);
		break;
	case 8:
		path_symlink(W, N, w->fd, W, N);
		break;
	default:
		path_unlink_file(w->fd, W, N);
		break;
	}
}

static void one(u32 which)
{
	struct wild w = { .fd = wild_fd(), .x = wild_number(), .y = wild_number() };

	w.out = next() % 2 ? P(room) + (u32)(next() % (ROOM - 64))
			   : 0xfffffff0 + (u32)(next() % 16);
	w.len = next() % 2 ? (u32)(next() % 1000) : 0xffffff00;
	if (which < 13)
		one_program(which, &w);
	else if (which < 30)
		one_fd(which - 13, &w);
	else
		one_path(which - 30, &w);
}

/* Each call with one bad pointer, by name: the answer is an error, never a trap. */
static void pointers(void)
{
	const u32 bad = 0xfffffff0;
	struct iov v[2] = { { bad, 100 }, { P(room), 0xffffffff } };
	u8 sub[48] = { 0 };

	expect("args_get", args_get(bad, bad), FAULT);
	expect("args_sizes_get", args_sizes_get(bad, bad), FAULT);
	expect("environ_get", environ_get(bad, bad), FAULT);
	expect("environ_sizes_get", environ_sizes_get(bad, bad), FAULT);
	expect("clock_res_get", clock_res_get(0, bad + 9), FAULT);
	expect("clock_time_get", clock_time_get(0, 0, bad + 9), FAULT);
	expect("random_get", random_get(bad, 100), FAULT);
	expect("random_get, all", random_get(1, 0xffffffff), FAULT);
	expect("fd_fdstat_get", fd_fdstat_get(dir, bad), FAULT);
	expect("fd_filestat_get", fd_filestat_get(dir, bad), FAULT);
	expect("fd_prestat_get", fd_prestat_get(dir, bad + 9), FAULT);
	expect("fd_prestat_dir_name", fd_prestat_dir_name(dir, bad + 9, 0xffffffff), FAULT);
	expect("fd_read, vector", fd_read(other, bad, 3, P(&n)), FAULT);
	expect("fd_read, buffer", fd_read(other, P(v), 1, P(&n)), FAULT);
	expect("fd_read, length", fd_read(other, P(v + 1), 1, P(&n)), INVAL);
	expect("fd_read, count", fd_read(other, P(v), 0xffffffff, P(&n)), INVAL);
	expect("fd_read, a million", fd_read(other, P(v), 1000000, P(&n)), INVAL);
	expect("fd_read, result", fd_read(other, 0, 0, bad + 14), FAULT);
	expect("fd_write, buffer", fd_write(1, P(v), 1, P(&n)), FAULT);
	expect("fd_write, count", fd_write(1, P(v), 0xffffffff, P(&n)), INVAL);
	expect("fd_pread, buffer", fd_pread(other, P(v), 1, 0, P(&n)), FAULT);
	expect("fd_pread, offset", fd_pread(other, 0, 0, ~0ull, P(&n)), INVAL);
	expect("fd_pwrite, buffer", fd_pwrite(other, P(v), 1, 0, P(&n)), FAULT);
	expect("fd_readdir, buffer", fd_readdir(dir, bad, 4096, 0, P(&n)), FAULT);
	expect("fd_readdir, result", fd_readdir(dir, P(room), 4096, 0, bad + 14), FAULT);
	expect("fd_seek", fd_seek(other, 0, 0, bad + 9), FAULT);
	expect("fd_tell", fd_tell(other, bad + 9), FAULT);
	expect("path_create_directory", path_create_directory(dir, bad, 100), FAULT);
	expect("path_create_directory, length", path_create_directory(dir, P("x"), 0xffffffff),
	       FAULT);
	expect("path_filestat_get", path_filestat_get(dir, 0, bad, 100, P(room)), FAULT);
	expect("path_filestat_get, result", path_filestat_get(dir, 0, P("."), 1, bad), FAULT);
	expect("path_filestat_set_times", path_filestat_set_times(dir, 0, bad, 100, 0, 0, 0),
	       FAULT);
	expect("path_open", path_open(dir, 0, bad, 100, 0, 0, 0, 0, P(&n)), FAULT);
	expect("path_open, result", path_open(dir, 0, P("."), 1, 0, 0, 0, 0, bad + 14), FAULT);
	expect("path_open, long", path_open(dir, 0, P(room), 5000, 0, 0, 0, 0, P(&n)), NAMETOOLONG);
	expect("path_open, a zero in it", path_open(dir, 0, P("a\0b"), 3, 0, 0, 0, 0, P(&n)),
	       INVAL);
	expect("path_open, flags", path_open(dir, 0, P("."), 1, 99, 0, 0, 0, P(&n)), INVAL);
	expect("path_readlink", path_readlink(dir, bad, 100, P(room), 9, P(&n)), FAULT);
	expect("path_readlink, buffer", path_readlink(dir, P("x"), 1, bad, 99, P(&n)), FAULT);
	expect("path_remove_directory", path_remove_directory(dir, bad, 100), FAULT);
	expect("path_rename", path_rename(dir, bad, 100, dir, P("x"), 1), FAULT);
	expect("path_rename, to", path_rename(dir, P("x"), 1, dir, bad, 100), FAULT);
	expect("path_symlink", path_symlink(bad, 100, dir, P("x"), 1), FAULT);
	expect("path_symlink, to", path_symlink(P("x"), 1, dir, bad, 100), FAULT);
	expect("path_unlink_file", path_unlink_file(dir, bad, 100), FAULT);
	expect("poll_oneoff", poll_oneoff(bad, P(room), 1, P(&n)), FAULT);
	expect("poll_oneoff, events", poll_oneoff(P(sub), bad, 1, P(&n)), FAULT);
	expect("poll_oneoff, count", poll_oneoff(P(room), P(room), 0xffffffff, P(&n)), INVAL);
	expect("poll_oneoff, result", poll_oneoff(P(sub), P(room), 1, bad + 14), FAULT);
	expect("fd_close", fd_close(0xffffffff), BADF);
	expect("fd_renumber", fd_renumber(dir, 0xffffffff), BADF);
	expect("fd_allocate", fd_allocate(other, ~0ull, 1), INVAL);
	expect("fd_filestat_set_size", fd_filestat_set_size(other, ~0ull), INVAL);
}

static void refused(const char *name, u32 got)
{
	expect(name, got, NOTCAPABLE);
}

/* The shell has made: out -> /etc, up -> .., hop -> ../.., and a directory in. */
static void escapes(void)
{
	u64 stat[8];

	refused("an absolute name", path_open(dir, 1, PATH("/etc/passwd"), 0, 2, 0, 0, P(&n)));
	refused("dots", path_open(dir, 1, PATH("../etc/passwd"), 0, 2, 0, 0, P(&n)));
	refused("dots inside", path_open(dir, 1, PATH("in/../../etc/passwd"), 0, 2, 0, 0, P(&n)));
	refused("the parent", path_open(dir, 1, PATH(".."), 2, 2, 0, 0, P(&n)));
	refused("a link out", path_open(dir, 1, PATH("out/passwd"), 0, 2, 0, 0, P(&n)));
	refused("a last link out", path_open(dir, 1, PATH("out"), 2, 2, 0, 0, P(&n)));
	refused("a link up", path_open(dir, 1, PATH("up/etc/passwd"), 0, 2, 0, 0, P(&n)));
	refused("links and dots", path_open(dir, 1, PATH("in/../up/../etc"), 0, 2, 0, 0, P(&n)));
	refused("stat", path_filestat_get(dir, 1, PATH("out/passwd"), P(stat)));
	refused("mkdir", path_create_directory(dir, PATH("../tmp/x")));
	refused("mkdir through a link", path_create_directory(dir, PATH("up/tmp/x")));
	refused("rmdir", path_remove_directory(dir, PATH("up/tmp/x")));
	refused("unlink", path_unlink_file(dir, PATH("out/passwd")));
	refused("rename from", path_rename(dir, PATH("up/tmp/x"), dir, PATH("y")));
	refused("rename to", path_rename(dir, PATH("in"), dir, PATH("hop/tmp/y")));
	refused("a link to an absolute name", path_symlink(PATH("/etc/passwd"), dir, PATH("l")));
	refused("a link made outside", path_symlink(PATH("x"), dir, PATH("up/tmp/l")));
	refused("readlink", path_readlink(dir, PATH("up/bin"), P(room), 100, P(&n)));
	refused("times", path_filestat_set_times(dir, 1, PATH("out/passwd"), 0, 0, 1));
	expect("what stays inside", path_open(dir, 1, PATH("in/../in/."), 2, 2, 0, 0, P(&n)), 0);
}

void _start(void)
{
	dir = preopened("/workspace");
	check("/workspace", dir != ~0u);
	expect("a file", open_at(dir, "victim", 1, ALL, &other), 0);
	pointers();
	escapes();
	for (u32 i = 0; i < 60000; i++)
		one(i % 40);
	check("60000 calls", 1);
	proc_exit(failures ? 1 : 0);
}
