/* wall/launch.h - what to start and what it sees: plain data, filled by the guest room. */
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
	BIND_OPTIONAL = 1 << 0, /* a missing source is not an error */
	BIND_WRITABLE = 1 << 1,
	BIND_EXEC = 1 << 2,  /* files below may be executed */
	BIND_MOUNT = 1 << 3, /* a mount of the policy: with launch.has_exec executable */
};

struct launch_bind {
	char *host, *guest;
	uint32_t flags;
};

/* A read-only file in the sandbox with these bytes. */
struct launch_file {
	char *guest;
	char *bytes;
	size_t len;
	uint32_t mode;
};

struct launch_link {
	char *target, *guest;
};

/* Zero: empty, sees nothing and runs nothing. */
struct launch {
	enum launch_filter filter;
	char *executable; /* guest path */
	char *cwd;        /* NULL: /home/user */
	struct strlist argv, env;
	struct strlist exec_paths; /* guest paths (files or directories) that may be executed */
	struct strlist read_paths; /* guest directories in which all given files may be read */
	struct launch_bind *binds;
	size_t bind_count;
	struct launch_file *files;
	size_t file_count;
	struct launch_link *links;
	size_t link_count;
	bool has_exec;    /* files of the workspace and of mounts may be executed */
	bool is_template; /* forks sessions; each has its own workspace */
	bool has_network; /* loopback is up, and stream sockets are allowed */
	bool has_gateway; /* the gateway listens there */
	/* Borrowed, of a template: guest path of a file for which each session brings its own bytes
	 * (BOX_FORK_OWN_FILE); the template has it too. NULL: none. */
	const char *own_file;
	/* Borrowed, if has_gateway: where to send the listening sockets, and their ports. */
	int relay_fd; /* -1: of a template, whose sessions bring their own */
	const uint16_t *relay_ports;
	size_t relay_port_count;
};

/* All copy their arguments; 0 or -CORDON_NOMEM. guest NULL: the same path as on the host.
 * What an earlier bind shows already is not added again: a bind of the same files, a link below a
 * bind, a second link of the same name. The first one stays. */
int launch_bind(struct launch *l, const char *host, const char *guest, uint32_t flags);
int launch_file(struct launch *l, const char *guest, const void *bytes, size_t len, uint32_t mode);
int launch_link(struct launch *l, const char *target, const char *guest);
int launch_exec(struct launch *l, const char *guest); /* adds to exec_paths */
int launch_env(struct launch *l, const char *name, const char *value);
void launch_unset(struct launch *l, const char *name); /* removes a variable */
void launch_done(struct launch *l);
#define cleanup_launch CLEANUP(launch_done)
