/* fuzz/archive.c - hostile archives against a workspace. The first byte chooses: the rest is a tar
 * stream, a whole export file, or the tar stream inside a valid export file. Nothing may appear
 * outside the three trees, and no partial file may stay. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/blob.h"
#include "files/export.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char top[] = "/tmp/cordon-fuzz-XXXXXX";
static struct workspace *ws;

static void check(int is_true)
{
	if (!is_true)
		abort();
}

static void clean_up(void)
{
	char command[64];
	ws = workspace_close(ws);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	check(system(command) == 0);
}

static void start(void)
{
	char root[64];
	check(mkdtemp(top) != NULL);
	snprintf(root, sizeof(root), "%s/root", top);
	check(mkdir(root, 0700) == 0);
	struct workspace_options o = { .root_fd = open(root, O_PATH | O_DIRECTORY),
				       .owner_uid = getuid(),
				       .owner_gid = getgid(),
				       .max_bytes = 8 << 20,
				       .max_files = 1000 };
	check(workspace_open(&o, &ws, NULL) == 0);
	close(o.root_fd);
	atexit(clean_up);
}

static int remove_one(const char *name, const struct cordon_file_info *info, void *arg)
{
	char path[512];
	(void)info;
	snprintf(path, sizeof(path), "%s/%s", (const char *)arg, name);
	check(workspace_remove(ws, path, true, NULL) == 0);
	return 0;
}

static int count(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;
	check(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void check_walls(void)
{
	char root[64];
	static const char *const trees[] = { "/home/user", "/tmp", "/workspace" };
	snprintf(root, sizeof(root), "%s/root", top);
	check(count(top) == 1);
	check(count(root) == 3);
	for (int i = 0; i < 3; i++) {
		check(workspace_chmod(ws, trees[i], 0755, NULL) == 0);
		check(workspace_list(ws, trees[i], remove_one, (void *)trees[i], NULL) == 0);
	}
}

static void import(int fd)
{
	char *report = NULL, *state = NULL;
	check(lseek(fd, 0, SEEK_SET) == 0);
	if (export_read(ws, fd, 0, &report, &state, NULL) == 0)
		check(report && report[0] == '{');
	free(report);
	free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > 1 << 20)
		return 0;
	if (!ws)
		start();
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	check(fd >= 0);
	if (data[0] % 3 == 2) {
		struct blob_writer *w = NULL;
		check(blob_writer_open(fd, &w, NULL) == 0);
		check(blob_writer_put(w, data + 1, size - 1) == 0);
		check(blob_writer_finish(w, NULL) == 0);
		blob_writer_free(w);
		import(fd);
	} else {
		check(write(fd, data + 1, size - 1) == (ssize_t)size - 1);
		check(lseek(fd, 0, SEEK_SET) == 0);
		if (data[0] % 3 == 1)
			import(fd);
		else
			(void)unpack_from_fd(ws, "/workspace/in", fd, NULL, NULL);
	}
	close(fd);
	check_walls();
	return 0;
}
