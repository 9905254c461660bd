/* inside/pod/runtime/wasi_table.c - the descriptors of a WASI program and their rights. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "inside/pod/runtime/path.h"
#include "inside/pod/runtime/signals.h"
#include "inside/pod/runtime/wasi.h"

#define FILE_RIGHTS                                                                                \
	(WASI_FD_DATASYNC | WASI_FD_READ | WASI_FD_SEEK | WASI_FD_SET_FLAGS | WASI_FD_SYNC |       \
	 WASI_FD_TELL | WASI_FD_WRITE | WASI_FD_ADVISE | WASI_FD_ALLOCATE | WASI_FD_FILESTAT_GET | \
	 WASI_FD_SET_SIZE | WASI_FD_SET_TIMES | WASI_POLL)
#define STREAM_RIGHTS                                                                              \
	(WASI_FD_READ | WASI_FD_SET_FLAGS | WASI_FD_WRITE | WASI_FD_FILESTAT_GET | WASI_POLL)
#define DIRECTORY_RIGHTS                                                                           \
	(WASI_FD_SYNC | WASI_FD_DATASYNC | WASI_FD_SET_FLAGS | WASI_PATH_CREATE_DIRECTORY |        \
	 WASI_PATH_CREATE_FILE | WASI_PATH_OPEN | WASI_FD_READDIR | WASI_PATH_READLINK |           \
	 WASI_PATH_RENAME_SOURCE | WASI_PATH_RENAME_TARGET | WASI_PATH_FILESTAT_GET |              \
	 WASI_PATH_SET_SIZE | WASI_PATH_SET_TIMES | WASI_FD_FILESTAT_GET | WASI_FD_SET_TIMES |     \
	 WASI_PATH_SYMLINK | WASI_PATH_REMOVE_DIRECTORY | WASI_PATH_UNLINK)

enum wasi_type wasi_type_of(const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return WASI_FILE;
	case S_IFDIR:
		return WASI_DIRECTORY;
	case S_IFLNK:
		return WASI_LINK;
	case S_IFCHR:
		return WASI_CHARACTER;
	case S_IFBLK:
		return WASI_BLOCK;
	case S_IFSOCK:
		return WASI_STREAM;
	default:
		return WASI_UNKNOWN;
	}
}

static uint64_t rights_of(enum wasi_type type, int flags)
{
	uint64_t rights = type == WASI_FILE        ? FILE_RIGHTS
			  : type == WASI_DIRECTORY ? DIRECTORY_RIGHTS
						   : STREAM_RIGHTS;

	if ((flags & O_ACCMODE) == O_RDONLY)
		rights &= ~(WASI_FD_WRITE | WASI_FD_ALLOCATE | WASI_FD_SET_SIZE);
	if ((flags & O_ACCMODE) == O_WRONLY)
		rights &= ~WASI_FD_READ;
	return rights;
}

uint32_t wasi_find(struct w2c_sys *p, uint64_t fd, uint64_t rights, struct wasi_fd **ret)
{
	uint32_t n = (uint32_t)fd;

	if (n >= WASI_FDS || p->wasi->fds[n].fd < 0)
		return WASI_BADF;
	*ret = &p->wasi->fds[n];
	if (((*ret)->base & rights) == rights)
		return WASI_OK;
	/* If no descriptor of that type can do it, the error is not about rights. */
	if ((rights & DIRECTORY_RIGHTS & ~FILE_RIGHTS) && (*ret)->type != WASI_DIRECTORY)
		return WASI_NOTDIR;
	if ((rights & (WASI_FD_READ | WASI_FD_WRITE)) && (*ret)->type == WASI_DIRECTORY)
		return WASI_ISDIR;
	if ((rights & (WASI_FD_SEEK | WASI_FD_TELL)) && (*ret)->type != WASI_FILE &&
	    (*ret)->type != WASI_DIRECTORY)
		return WASI_SPIPE;
	if (rights & (WASI_FD_READ | WASI_FD_WRITE))
		return WASI_BADF;
	return WASI_NOTCAPABLE;
}

uint32_t wasi_add(struct w2c_sys *p, int fd, uint64_t base, uint64_t inheriting, uint32_t *ret)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;
	uint32_t n = 0;

	if (flags < 0 || fstat(fd, &st))
		return wasi_error(-errno);
	while (n < WASI_FDS && p->wasi->fds[n].fd >= 0)
		n++;
	if (n == WASI_FDS)
		return WASI_MFILE;
	p->wasi->fds[n] = (struct wasi_fd){ .fd = fd, .type = wasi_type_of(&st) };
	p->wasi->fds[n].base = base & rights_of(p->wasi->fds[n].type, flags);
	p->wasi->fds[n].inheriting = p->wasi->fds[n].type == WASI_DIRECTORY ? inheriting : 0;
	*ret = n;
	return WASI_OK;
}

/* A directory that is open at the start, under a name. */
static void preopen(struct w2c_sys *p, const char *path)
{
	uint64_t at;
	int64_t fd;
	uint32_t n = 0;

	wasi_clear(p);
	at = wasi_note(p, path, strlen(path) + 1);
	fd = wasi_door(p, SYS_openat, (uint64_t)(uint32_t)AT_FDCWD, at,
		       O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (wasi_add(p, (int)fd, ~0ull, WASI_RIGHTS_ALL, &n))
		close((int)fd);
	else
		snprintf(p->wasi->fds[n].preopen, sizeof p->wasi->fds[n].preopen, "%s", path);
}

static bool is_preopened(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && strcmp(entry->d_name, "proc") != 0 &&
	       strcmp(entry->d_name, "sys") != 0 && strlen(entry->d_name) < 60 &&
	       (entry->d_type == DT_DIR || entry->d_type == DT_LNK);
}

/* The working directory, the root, and every directory of the root by its name: a libc uses the
 * longest name that is a prefix of a path. wasi-libc treats "." and "/" as the same and uses the
 * last one; others take the first descriptor as the working directory. So "." is both first and
 * last. */
static void preopen_all(struct w2c_sys *p)
{
	struct dirent *entry;
	int fd = path_open_read(p, "/");
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	char path[64];

	preopen(p, ".");
	preopen(p, "/");
	if (!list && fd >= 0)
		close(fd);
	for (int n = 0; list && n < 48 && (entry = readdir(list)); n++) {
		if (!is_preopened(entry))
			continue;
		snprintf(path, sizeof path, "/%.60s", entry->d_name);
		preopen(p, path);
	}
	if (list)
		closedir(list);
	preopen(p, ".");
}

int wasi_start(struct w2c_sys *p)
{
	struct wasi *w = calloc(1, sizeof *w);
	uint32_t n = 0;

	if (!w)
		return -ENOMEM;
	p->wasi = w;
	w->scratch = (wasm_rt_memory_t){ .data = w->room, .size = sizeof w->room };
	for (size_t i = 0; i < WASI_FDS; i++)
		w->fds[i].fd = -1;
	for (int fd = 0; fd < 3; fd++) {
		if (wasi_add(p, fd, ~0ull, 0, &n) || n != (uint32_t)fd)
			w->fds[fd].fd = INT_MAX; /* closed, but its number is not reused */
	}
	preopen_all(p);
	/* WASI has no signals: a file that grows too large is an error of the call. */
	return signals_action(SIGXFSZ, SIGNAL_IGNORE, 0);
}
