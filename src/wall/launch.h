/* wall/launch.h - what is to run and what it sees: plain data, filled by the guest room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

enum launch_filter {
	LAUNCH_PYTHON,
	LAUNCH_R,
	LAUNCH_NODE,
	LAUNCH_SH,
	LAUNCH_POD,
};

enum {
	BIND_OPTIONAL = 1 << 0, /* a missing source is no failure */
	BIND_WRITABLE = 1 << 1,
	BIND_EXEC = 1 << 2, /* files below may be executed */
	BIND_NOT_ALL =
		1 << 4, /* Landlock: the directory is seen, but no right is given by this bind */
};

struct launch_bind {
	char *host, *guest;
	uint32_t flags;
};

/* A file whose bytes are given; read-only in the sandbox. */
struct launch_file {
	char *guest;
	char *bytes;
	size_t len;
	uint32_t mode;
};

struct launch_link {
	char *target, *guest;
};

/* Zero is empty: sees nothing, runs nothing. */
struct launch {
	enum launch_filter filter;
	char *executable; /* guest path */
	char *cwd;        /* NULL: /home/user */
	struct strlist argv, env;
	struct strlist exec_paths; /* guest paths (files or directories) that may be executed */
	struct strlist read_paths; /* guest directories whose given files may all be read */
	struct launch_bind *binds;
	size_t bind_count;
	struct launch_file *files;
	size_t file_count;
	struct launch_link *links;
	size_t link_count;
	bool is_template; /* forks sessions; each gets a workspace of its own */
	bool has_network; /* loopback is up, stream sockets exist, and the gateway listens */
	/* Borrowed, when has_network: where the listening sockets go, and which ports they are on.
	 */
	int relay_fd;
	const uint16_t *relay_ports;
	size_t relay_port_count;
};

/* All copy; 0 or -CORDON_NOMEM. guest NULL: the same path as on the host. */
int launch_bind(struct launch *l, const char *host, const char *guest, uint32_t flags);
int launch_file(struct launch *l, const char *guest, const void *bytes, size_t len, uint32_t mode);
int launch_link(struct launch *l, const char *target, const char *guest);
int launch_env(struct launch *l, const char *name, const char *value);
void launch_done(struct launch *l);
#define cleanup_launch CLEANUP(launch_done)
