/* inside/pod/runtime/toolbox.c - see toolbox.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/toolbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inside/guests/sh/tool_process.h"
#include "inside/pod/runtime/path.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

/* A file that every image has; the door shows it in place of a tool. */
#define STAND_IN "/usr/bin/extensions"

static int private_fd(const struct w2c_sys *p, int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, p->fd_limit);

	if (fd >= 0)
		close(fd);
	return high;
}

/* In memory if the sandbox allows that, else an unnamed file in the workspace. */
static int store(const struct bytes *archive)
{
	int fd = (int)syscall(SYS_memfd_create, "packages",
			      MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0)
		fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0400);
	if (fd < 0)
		return -errno;
	if (bytes_write(fd, archive->data, archive->len) < 0) {
		close(fd);
		return -EIO;
	}
	fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	return fd;
}

int toolbox_fill(struct w2c_sys *p, struct json specs, int tools_fd)
{
	struct bytes names = { 0 }, archive = { 0 };
	struct json key, spec;
	const char *at = NULL;
	int r = 0;

	while (json_each(specs, &at, &key, &spec)) {
		json_string(json_get(spec, "name"), &names);
		bytes_char(&names, 0);
	}
	bytes_char(&names, 0);
	p->tools = names.data;
	p->fds[PRIVATE_TOOLS] = private_fd(p, tools_fd);
	if (packages_write(specs, &archive)) {
		r = store(&archive);
		p->fds[PRIVATE_PACKAGES] = private_fd(p, r);
	}
	bytes_done(&archive);
	return r < 0 ? r : p->fds[PRIVATE_TOOLS] < 0 ? -EMFILE : 0;
}

static bool is_in(const char *list, char separator, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; at && *at;) {
		size_t len = separator ? strcspn(at, ",") : strlen(at);

		if (len == n && !memcmp(at, name, n))
			return true;
		at += len + (separator ? at[len] == separator : 1);
	}
	return false;
}

const char *toolbox_find(const struct w2c_sys *p, const char *path)
{
	static const char *const dirs[] = { "/usr/bin/", "/bin/" };

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		size_t n = strlen(dirs[i]);

		if (strncmp(path, dirs[i], n) != 0)
			continue;
		if (!strcmp(path, STAND_IN) || !strcmp(path + n, "extensions"))
			return "extensions";
		return p->tools && is_in(p->tools, 0, path + n) ? path + n : NULL;
	}
	return NULL;
}

bool toolbox_is_allowed(const struct w2c_sys *p, const char *tool)
{
	return !p->allowed || is_in(p->allowed_names, ',', tool);
}

const char *toolbox_place(const struct w2c_sys *p, const char *path, char buf[32], bool *is_link)
{
	*is_link = false;
	if (path[0] != '/')
		return path;
	if (p->fds[PRIVATE_PACKAGES] >= 0 && !strcmp(path, TOOLBOX_PACKAGES)) {
		snprintf(buf, 32, "/proc/self/fd/%d", p->fds[PRIVATE_PACKAGES]);
		*is_link = true;
		return buf;
	}
	return p->tools && toolbox_find(p, path) ? STAND_IN : path;
}

/* Runs in place of an instance: our own code, which passes on what it was given. */
static void run_tool(struct w2c_sys *p, wasm_rt_memory_t **ret_memory)
{
	char cwd[PATH_MAX];
	struct tool_process call = { p->command->name, (int)p->argv.count - 1, p->argv.at + 1,
				     path_cwd(p, cwd) < 0 ? "" : cwd, p->envp.at };

	(void)ret_memory;
	_exit(tool_process_run(p->fds[PRIVATE_TOOLS], &call));
}

const struct command *toolbox_command(const char *tool)
{
	static const struct program program = { .name = "tool", .enter = run_tool };
	static struct command command;
	static char name[256];

	snprintf(name, sizeof name, "%s", tool);
	command = (struct command){ name, &program };
	return &command;
}
