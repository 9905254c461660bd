/* session/faked_box.h - a box of plain data: no process, no namespace. Its status page and its
 * control group's files are ours, so a test says what the kernel would have said. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "harness/test.h"
#include "session/engine.h"
#include "wall/linux/linux_box.h"
#include "wall/linux/linux_wall.h"

struct faked_box {
	struct status status;
	struct linux_box box;
	struct engine engine;
	char dir[32]; /* of the control group's files; "": there is no group */
};

static void faked_box_init(struct faked_box *f, enum guest_kind kind)
{
	*f = (struct faked_box){ .status = { .state = STATE_EXITED } };
	f->box.base = (struct box){
		.wall = &linux_wall, .control_fd = -1, .end_fd = -1, .workspace_fd = -1
	};
	f->box.pidfd = -1;
	f->box.status = &f->status;
	f->engine = (struct engine){
		.kind = kind, .box = &f->box.base, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1
	};
}

/* A control group of version 2, without files so far. */
__attribute__((unused)) static void faked_box_add_group(struct faked_box *f)
{
	snprintf(f->dir, sizeof(f->dir), "/tmp/cordon-group-XXXXXX");
	ASSERT(mkdtemp(f->dir));
	int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT(fd >= 0);
	f->box.cgroup = (struct cgroup){ .count = 1,
					 .is_v2 = true,
					 .dir_fds = { fd, -1, -1 },
					 .peak_fd = -1,
					 .supervisor_fd = -1 };
}

__attribute__((unused)) static void faked_box_count(struct faked_box *f, const char *name,
						    const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	ASSERT_EQ(file_save(path, 0644, text, strlen(text), NULL), 0);
}

__attribute__((unused)) static void faked_box_done(struct faked_box *f)
{
	static const char *const names[] = { "memory.events", "memory.peak", "pids.events",
					     "pids.peak", "cpu.stat" };

	if (!f->dir[0])
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		(void)unlinkat(f->box.cgroup.dir_fds[0], names[i], 0);
	close(f->box.cgroup.dir_fds[0]);
	ASSERT_EQ(rmdir(f->dir), 0);
	f->dir[0] = '\0';
}
