/* inside/pod/runtime/wasi.h - WASI preview 1 on top of the door: a table of descriptors with
 * rights, and errors. */
#pragma once

#include <sys/stat.h>

#include "inside/pod/runtime/module.h"
#include "inside/pod/runtime/process.h"

#define WASI_FDS 256
#define WASI_VECTORS 1024
#define WASI_TRANSFER 0x7ffff000u /* the kernel limits a transfer to this */
#define WASI_SCRATCH 49152u       /* bytes for names and structures of one call of the door */

enum wasi_errno {
	WASI_OK = 0,
	WASI_2BIG = 1,
	WASI_BADF = 8,
	WASI_FAULT = 21,
	WASI_INVAL = 28,
	WASI_IO = 29,
	WASI_ISDIR = 31,
	WASI_MFILE = 33,
	WASI_NAMETOOLONG = 37,
	WASI_NOENT = 44,
	WASI_NOSYS = 52,
	WASI_NOTDIR = 54,
	WASI_NOTSUP = 58,
	WASI_OVERFLOW = 61,
	WASI_PERM = 63,
	WASI_SPIPE = 70,
	WASI_NOTCAPABLE = 76,
};

enum wasi_type {
	WASI_UNKNOWN,
	WASI_BLOCK,
	WASI_CHARACTER,
	WASI_DIRECTORY,
	WASI_FILE,
	WASI_STREAM = 6,
	WASI_LINK = 7
};

#define WASI_RIGHT(n) (1ull << (n))
#define WASI_FD_DATASYNC WASI_RIGHT(0)
#define WASI_FD_READ WASI_RIGHT(1)
#define WASI_FD_SEEK WASI_RIGHT(2)
#define WASI_FD_SET_FLAGS WASI_RIGHT(3)
#define WASI_FD_SYNC WASI_RIGHT(4)
#define WASI_FD_TELL WASI_RIGHT(5)
#define WASI_FD_WRITE WASI_RIGHT(6)
#define WASI_FD_ADVISE WASI_RIGHT(7)
#define WASI_FD_ALLOCATE WASI_RIGHT(8)
#define WASI_PATH_CREATE_DIRECTORY WASI_RIGHT(9)
#define WASI_PATH_CREATE_FILE WASI_RIGHT(10)
#define WASI_PATH_OPEN WASI_RIGHT(13)
#define WASI_FD_READDIR WASI_RIGHT(14)
#define WASI_PATH_READLINK WASI_RIGHT(15)
#define WASI_PATH_RENAME_SOURCE WASI_RIGHT(16)
#define WASI_PATH_RENAME_TARGET WASI_RIGHT(17)
#define WASI_PATH_FILESTAT_GET WASI_RIGHT(18)
#define WASI_PATH_SET_SIZE WASI_RIGHT(19)
#define WASI_PATH_SET_TIMES WASI_RIGHT(20)
#define WASI_FD_FILESTAT_GET WASI_RIGHT(21)
#define WASI_FD_SET_SIZE WASI_RIGHT(22)
#define WASI_FD_SET_TIMES WASI_RIGHT(23)
#define WASI_PATH_SYMLINK WASI_RIGHT(24)
#define WASI_PATH_REMOVE_DIRECTORY WASI_RIGHT(25)
#define WASI_PATH_UNLINK WASI_RIGHT(26)
#define WASI_POLL WASI_RIGHT(27)
#define WASI_RIGHTS_ALL (WASI_RIGHT(28) - 1)

struct wasi_fd {
	int fd; /* of this process, or -1 */
	enum wasi_type type;
	uint64_t base, inheriting; /* rights */
	char preopen[64];          /* its name, if it was open at the start */
};

struct wasi {
	struct wasi_fd fds[WASI_FDS];
	wasm_rt_memory_t scratch; /* what the door uses as memory while it works for us */
	uint32_t used;
	_Alignas(16) uint8_t room[WASI_SCRATCH];
};

typedef uint32_t wasi_fn(struct w2c_sys *p, const uint64_t a[WASI_ARGS]);
#define WASI_FN(name) uint32_t wasi_##name(struct w2c_sys *p, const uint64_t a[WASI_ARGS])

/* The import of an added command: calls by index in wasi_list.h. */
uint32_t wasi_call(struct w2c_sys *p, uint32_t call, const uint64_t a[WASI_ARGS]);
/* Sets up the descriptors of a starting program; 0 or a negative errno. */
int wasi_start(struct w2c_sys *p);
__attribute__((noreturn)) void wasi_finish(struct w2c_sys *p, uint32_t status);

/* Converts a negative errno, or success, to WASI's error. */
uint32_t wasi_error(int64_t r);
/* NULL if [at, at + len) is not entirely inside the guest's memory. 0 is a valid address. */
void *wasi_at(const struct w2c_sys *p, uint64_t at, uint64_t len);
bool wasi_put(const struct w2c_sys *p, uint64_t at, const void *from, size_t len);
bool wasi_put32(const struct w2c_sys *p, uint64_t at, uint64_t value);
bool wasi_put64(const struct w2c_sys *p, uint64_t at, uint64_t value);

/* Calls the door; pointers are offsets from wasi_note: names and structures of ours. */
int64_t wasi_door(struct w2c_sys *p, long n, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
/* Starts a call: clears what was noted. */
void wasi_clear(struct w2c_sys *p);
/* Copies something to where the door can read it (NULL: zeros); its address; 0: no room. */
uint64_t wasi_note(struct w2c_sys *p, const void *from, size_t len);
void *wasi_noted(const struct w2c_sys *p, uint64_t at);

/* The descriptor, if it has all these rights; 0 or an error. */
uint32_t wasi_find(struct w2c_sys *p, uint64_t fd, uint64_t rights, struct wasi_fd **ret);
/* Adds a descriptor of this process to the table, with the rights that its type can have. */
uint32_t wasi_add(struct w2c_sys *p, int fd, uint64_t base, uint64_t inheriting, uint32_t *ret);
enum wasi_type wasi_type_of(const struct stat *st);
/* Writes 64 bytes of stat results. */
uint32_t wasi_put_stat(const struct w2c_sys *p, uint64_t at, const struct stat *st);
/* Two times and their flags in the door's format: an address; 0: invalid flags. */
uint64_t wasi_note_times(struct w2c_sys *p, uint64_t atim, uint64_t mtim, uint64_t flags);
