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

/* Descriptors of ours live above what the guest may name. */
enum private_fd {
	PRIVATE_ROOT,
	PRIVATE_DENIALS,
	PRIVATE_AGENT,
	PRIVATE_NULL,
	PRIVATE_TOOLS,    /* to the session's agent, for calls of the host's tools */
	PRIVATE_PACKAGES, /* what /usr/lib/python is */
	PRIVATE_COUNT
};

struct vector { /* argv or envp: pointers into one block of strings */
	char **at;
	size_t count, bytes; /* bytes: of all strings with their ends */
	char *strings;
};

/* The name is the generated code's: the instance behind the import module "sys". */
struct w2c_sys {
	wasm_rt_memory_t *memory;
	const struct command *command; /* what runs */
	struct vector argv, envp;
	int fd_limit;              /* guest descriptors are below */
	int fd_soft;               /* new ones are below: the guest's own limit */
	int fd_high;               /* the highest it has had: exec looks no further */
	int fds[PRIVATE_COUNT];    /* ours, or -1 */
	bool rooted;               /* paths resolve beneath fds[PRIVATE_ROOT], there is no wall */
	char root[PATH_MAX];       /* its path, for taking it off again */
	pid_t agent;               /* never signalled; 0: none */
	uint16_t gateway_port;     /* of loopback: the one address there is; 0: no network */
	bool *allowed;             /* per entry of pod_commands; NULL: all */
	const char *allowed_names; /* the list itself, for tools */
	const char *tools;         /* names of the host's, each with its end, then an empty one */
	uint64_t image_dev; /* the directory of commands: its device, and a file number per command
			     */
	uint64_t *image_ino;
	struct module *modules; /* commands added to the image's: see module.h */
	size_t module_count;
	struct wasi *wasi;            /* of the added command that runs */
	uint64_t proc_dev;            /* 0: no /proc */
	const struct command *next;   /* what exec chose */
	jmp_buf exec;                 /* leaves the instance for the next one */
	pid_t session;                /* the process that is a session's shell; 0: none */
	bool in_command, reported;    /* of that shell: see session.c */
	bool has_run;                 /* a program has: what comes next was execed by it */
	bool warming, learning, cold; /* see checkpoint.c */
};

/* NULL where [at, at + len) is not all inside the guest's memory, or at is its null pointer. */
static inline void *guest_at(const struct w2c_sys *p, uint64_t at, uint64_t len)
{
	uint64_t size = p->memory->size;

	if (!at || at > size || len > size - at)
		return NULL;
	return p->memory->data + at;
}

/* As guest_at, but a null pointer stays one; false where it is bad. */
static inline bool guest_opt(const struct w2c_sys *p, uint64_t at, uint64_t len, void **ret)
{
	*ret = at ? guest_at(p, at, len) : NULL;
	return !at || *ret;
}

/* Copies a string of at most PATH_MAX bytes with its end; 0 or a negative errno. What is checked is
 * the copy: memory that the guest shares with another of its processes may change at any time. */
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

/* Integers come zero-extended from 32 bits. */
static inline int guest_int(uint64_t v)
{
	return (int)(uint32_t)v;
}

/* A new descriptor becomes the guest's: -EMFILE, and it is closed, where its table is full. */
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

/* Two, or none. */
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

/* A descriptor the guest may name, or -1, which the kernel answers with EBADF. */
static inline int guest_fd(const struct w2c_sys *p, uint64_t v)
{
	int fd = guest_int(v);

	return fd >= 0 && fd < p->fd_limit ? fd : -1;
}

/* Reports a denial to the host over a channel that the guest can neither block nor forge
 * (agent_packet.c). */
void process_deny(const struct w2c_sys *p, const char *operation, const char *target);
