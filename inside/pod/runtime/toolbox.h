/* inside/pod/runtime/toolbox.h - the host's tools in a pod: commands that call the session's agent,
 * and the Python packages that came with them. Their files are on no disk: system calls show
 * /usr/bin/TOOL and /usr/lib/python as if they were. */
#pragma once

#include "inside/lib/wire_json.h"
#include "inside/pod/runtime/process.h"

#define TOOLBOX_PACKAGES "/usr/lib/python"

/* Takes the welcome's array of tools; tools_fd is what their processes speak through. In the agent,
 * before the first shell. 0 or a negative errno. */
int toolbox_fill(struct w2c_sys *p, struct json specs, int tools_fd);

/* The tool that a path names, or NULL. */
const char *toolbox_find(const struct w2c_sys *p, const char *path);
bool toolbox_is_allowed(const struct w2c_sys *p, const char *tool);
/* What exec starts for it. */
const struct command *toolbox_command(const char *tool);
/* What a name stands for: itself, or another name to give to the kernel. is_link: of /proc. */
const char *toolbox_place(const struct w2c_sys *p, const char *path, char buf[32], bool *is_link);

/* In packages.c: the packages as one archive, which Python imports from as it is. */
int packages_write(struct json specs, struct bytes *ret);
