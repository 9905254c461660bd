/* inside/pod/runtime/process.h - the state of one pod process, and checked access to its guest's
 * memory. */
#pragma once

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "inside/pod/runtime/program.h"

/* Our descriptors are above those that the guest can use. */
enum private_fd {
	PRIVATE_ROOT,
	PRIVATE_DENIALS,
	PRIVATE_AGENT,
	PRIVATE_NULL,
	PRIVATE_TOOLS,    /* to the session's agent, for calls of host tools */
	PRIVATE_PACKAGES, /* the archive shown as /usr/lib/python */
	PRIVATE_COUNT
};

struct vector { /* argv or envp: pointers into one block of strings */
	char **at;
	size_t count, bytes; /* bytes: of all strings with their NULs */
	char *strings;
};

/* The generated code uses this name: the instance of the import module "sys". */
struct w2c_sys {
	wasm_rt_memory_t *memory;
	const struct command *command; /* the running program */
	struct vector argv, envp;
	int fd_limit;              /* all guest descriptors are below this */
	int fd_soft;               /* new ones are below this: the guest's own limit */
	int fd_high;               /* the highest used so far: exec checks up to here */
	int fds[PRIVATE_COUNT];    /* our own, or -1 */
	bool rooted;               /* no sandbox: paths resolve beneath fds[PRIVATE_ROOT] */
	char root[PATH_MAX];       /* its path, to remove it from names */
	pid_t agent;               /* never signalled; 0: none */
	uint16_t gateway_port;     /* on loopback: the only address; 0: no network */
	bool *allowed;             /* per entry of pod_commands; NULL: all */
	const char *allowed_names; /* the list itself, for tools */
	const char *tools;         /* names of host tools, each with a NUL, then an empty one */
	uint64_t image_dev; /* device of the directory of commands, and an inode per command */
	uint64_t *image_ino;
	struct module *modules; /* commands added to the image, see module.h */
	size_t module_count;
	struct wasi *wasi;            /* state of the running added command */
	uint64_t proc_dev;            /* 0: no /proc */
	const struct command *next;   /* chosen by exec */
	jmp_buf exec;                 /* leaves the instance for the next one */
	pid_t session;                /* the process that is a session's shell; 0: none */
	bool in_command, reported;    /* of that shell, see pod_session.c */
	bool has_run;                 /* a program has run: what comes next was started by exec */
	bool warming, learning, cold; /* see checkpoint.c */
};

/* NULL if [at, at + len) is not entirely inside the guest's memory, or at is the null pointer. */
static inline void *guest_at(const struct w2c_sys *p, uint64_t at, uint64_t len)
{
	uint64_t size = p->memory->size;

	if (!at || at > size || len > size - at)
		return NULL;
	return p->memory->data + at;
}

/* Like guest_at, but a null pointer is allowed; false: a bad pointer. */
static inline bool guest_opt(const struct w2c_sys *p, uint64_t at, uint64_t len, void **ret)
{
	*ret = at ? guest_at(p, at, len) : NULL;
	return !at || *ret;
}

/* Copies a string of at most PATH_MAX bytes with its NUL; 0 or a negative errno. The copy is what
 * gets checked: memory that the guest shares with its other processes may change at any time. */
static inline int guest_path(const struct w2c_sys *p, uint64_t at, char ret[PATH_MAX])
{
	uint64_t size = p->memory->size, room;

	if (!at || at >= size)
		return -EFAULT;
	room = size - at < PATH_MAX ? size - at : PATH_MAX;
	if (memccpy(ret, p->memory->data + at, 0, room))
		return 0;
	return room == PATH_MAX ? -ENAMETOOLONG : -EFAULT;
}

/* Integers arrive zero-extended from 32 bits. */
static inline int guest_int(uint64_t v)
{
	return (int)(uint32_t)v;
}

/* Gives a new descriptor to the guest. -EMFILE: its table is full, and the descriptor is closed. */
static inline int guest_admit(struct w2c_sys *p, int fd)
{
	if (fd >= p->fd_soft) {
		close(fd);
		return -EMFILE;
	}
	if (fd > p->fd_high)
		p->fd_high = fd;
	return fd;
}

/* Gives both or none. */
static inline int guest_admit_pair(struct w2c_sys *p, const int fds[2], void *to)
{
	int first = guest_admit(p, fds[0]), second = guest_admit(p, fds[1]);

	if (first < 0 || second < 0) {
		if (first >= 0)
			close(first);
		if (second >= 0)
			close(second);
		return -EMFILE;
	}
	memcpy(to, fds, 2 * sizeof *fds);
	return 0;
}

/* A descriptor that the guest may use, or -1, for which the kernel returns EBADF. */
static inline int guest_fd(const struct w2c_sys *p, uint64_t v)
{
	int fd = guest_int(v);

	return fd >= 0 && fd < p->fd_limit ? fd : -1;
}

/* Reports a denial to the host over a channel that the guest can neither block nor forge
 * (agent_packet.c). */
void process_deny(const struct w2c_sys *p, const char *operation, const char *target);
