/* inside/pod/runtime/toolbox.h - host tools in a pod: commands that call the session's agent, and
 * the Python packages that came with them. Their files do not exist on disk: system calls show
 * /usr/bin/TOOL and /usr/lib/python as if they did. */
#pragma once

#include "inside/lib/wire_json.h"
#include "inside/pod/runtime/process.h"

#define TOOLBOX_PACKAGES "/usr/lib/python"

/* Reads the welcome's array of tools; tools_fd: the socket that their processes use. In the agent,
 * before the first shell. 0 or a negative errno. */
int toolbox_fill(struct w2c_sys *p, struct json specs, int tools_fd);

/* The tool at a path, or NULL. */
const char *toolbox_find(const struct w2c_sys *p, const char *path);
bool toolbox_is_allowed(const struct w2c_sys *p, const char *tool);
/* The command that exec starts for it. */
const struct command *toolbox_command(const char *tool);
/* The name to pass to the kernel for a path: itself or another one. *is_link: it is a link in
 * /proc. */
const char *toolbox_place(const struct w2c_sys *p, const char *path, char buf[32], bool *is_link);

/* In pod_packages.c: the packages as one archive, from which Python imports directly. */
int packages_write(struct json specs, struct bytes *ret);
