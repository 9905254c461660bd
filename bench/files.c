/* bench/files.c - the cost of working with a workspace. Prints one line per measurement, with its
 * target: the best of several rounds, because other work on the machine can only make it slower. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "files/export.h"
#include "files/pack.h"
#include "files/snapshot.h"
#include "files/workspace.h"

enum { ROUNDS = 7, OWNER = 65533 };
#define MIB ((size_t)1 << 20)

static void check(int r, const struct cordon_error *e, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, cordon_error_message(e));
	exit(1);
}
#define DO(call)                                                                                   \
	do {                                                                                       \
		struct cordon_error *e = NULL;                                                     \
		int r_ = (call);                                                                   \
		check(r_, e, #call);                                                               \
	} while (0)

static struct workspace *new_workspace(void)
{
	char dir[] = "/tmp/cordon-bench-XXXXXX", opts[128];
	uid_t owner = getuid() ? getuid() : OWNER;
	snprintf(opts, sizeof(opts), "size=1g,nr_inodes=70000,mode=0755,uid=%u", owner);
	if (!mkdtemp(dir) || mount("tmpfs", dir, "tmpfs", 0, opts)) {
		perror("mount a tmpfs");
		exit(1);
	}
	struct workspace_options o = { .root_fd = open(dir, O_PATH | O_DIRECTORY),
				       .owner_uid = owner,
				       .owner_gid = owner };
	struct workspace *ws = NULL;
	DO(workspace_open(&o, &ws, &e));
	close(o.root_fd);
	(void)umount2(dir, MNT_DETACH);
	(void)rmdir(dir);
	return ws;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

struct measure {
	double ms[ROUNDS], cpu_ms[ROUNDS];
	int count;
	uint64_t from;
	double cpu_from;
};

static double cpu_now_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void start(struct measure *m)
{
	m->cpu_from = cpu_now_ms();
	m->from = clock_now_ns();
}

static void stop(struct measure *m)
{
	m->cpu_ms[m->count] = cpu_now_ms() - m->cpu_from;
	m->ms[m->count++] = (double)(clock_now_ns() - m->from) / 1e6;
}

/* bytes 0: a time in ms, at most target; else a speed in MB/s, at least target. */
static void report(struct measure *m, const char *what, size_t bytes, double target)
{
	qsort(m->ms, (size_t)m->count, sizeof(*m->ms), by_value);
	qsort(m->cpu_ms, (size_t)m->count, sizeof(*m->cpu_ms), by_value);
	double ms = m->ms[0], speed = bytes ? (double)bytes / 1e6 / (ms / 1e3) : 0;
	bool is_met = bytes ? speed >= target : ms <= target;
	printf("%-52s %8.2f %s (target %3.0f, %.2f ms of CPU) %s\n", what, bytes ? speed : ms,
	       bytes ? "MB/s" : "ms  ", target, m->cpu_ms[0], is_met ? "met" : "MISSED");
	m->count = 0;
}

static char *content;

static void fill(struct workspace *ws, size_t files, size_t size)
{
	char name[64];
	for (size_t i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "/workspace/d%zu/f%zu", i % 16, i);
		content[i % size] = (char)i;
		DO(workspace_write(ws, name, content, size, &e));
	}
}

static void clear(struct workspace *ws)
{
	char name[64];
	for (size_t i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "/workspace/d%zu", i);
		(void)workspace_remove(ws, name, true, NULL);
	}
}

static void small_files(void)
{
	struct workspace *ws = new_workspace();
	struct measure m = { 0 };
	for (int r = 0; r < ROUNDS; r++) {
		start(&m);
		char name[64], *back;
		size_t len;
		for (int i = 0; i < 1000; i++) {
			snprintf(name, sizeof(name), "/workspace/%d", i);
			DO(workspace_write(ws, name, content, 4096, &e));
		}
		for (int i = 0; i < 1000; i++) {
			snprintf(name, sizeof(name), "/workspace/%d", i);
			DO(workspace_read(ws, name, 0, &back, &len, &e));
			free(back);
		}
		stop(&m);
	}
	report(&m, "write and read 1000 files of 4 KiB", 0, 60);
	workspace_close(ws);
}

static void large_file(void)
{
	struct workspace *ws = new_workspace();
	struct measure in = { 0 }, out = { 0 };
	for (int r = 0; r < ROUNDS; r++) {
		char *back;
		size_t len;
		start(&in);
		DO(workspace_write(ws, "/workspace/large", content, 256 * MIB, &e));
		stop(&in);
		start(&out);
		DO(workspace_read(ws, "/workspace/large", 0, &back, &len, &e));
		stop(&out);
		free(back);
		DO(workspace_remove(ws, "/workspace/large", false, &e));
	}
	report(&in, "256 MiB in", 256 * MIB, 500);
	report(&out, "256 MiB out", 256 * MIB, 500);
	workspace_close(ws);
}

static void snapshots(const char *what, size_t files, size_t size, double target)
{
	struct workspace *ws = new_workspace(), *other = new_workspace();
	struct measure first = { 0 }, again = { 0 }, full = { 0 }, same = { 0 }, fork = { 0 };
	char name[64];
	fill(ws, files, size);
	for (int r = 0; r < ROUNDS; r++) {
		struct snapshots *s = NULL;
		DO(snapshots_new(NULL, &s, &e));
		start(&first);
		DO(snapshots_create(s, ws, "a", NULL, NULL, &e));
		stop(&first);
		DO(workspace_write(ws, "/workspace/d0/f0", "x", 1, &e));
		start(&again);
		DO(snapshots_create(s, ws, "b", NULL, NULL, &e));
		stop(&again);
		start(&same);
		DO(snapshots_restore(s, ws, "a", NULL, &e));
		stop(&same);
		clear(ws);
		start(&full);
		DO(snapshots_restore(s, ws, "a", NULL, &e));
		stop(&full);
		snapshots_free(s);
		clear(other);
		start(&fork);
		DO(snapshot_fork(ws, other, &e));
		stop(&fork);
	}
	snprintf(name, sizeof(name), "snapshot, first, of %s", what);
	report(&first, name, 0, target);
	snprintf(name, sizeof(name), "snapshot, one file changed, of %s", what);
	report(&again, name, 0, target);
	snprintf(name, sizeof(name), "restore, one file changed, of %s", what);
	report(&same, name, 0, target);
	snprintf(name, sizeof(name), "restore, all removed, of %s", what);
	report(&full, name, 0, target);
	snprintf(name, sizeof(name), "fork of %s", what);
	report(&fork, name, 0, target);
	workspace_close(ws);
	workspace_close(other);
}

/* Text as programs write it: words from a small set, in an order that does not repeat. */
static void fill_text(char *text, size_t len)
{
	static const char *const words[] = {
		"return", "value",  "the",   "import", "data", "for",
		"0.125",  "result", "index", "print",  "x",    "12345"
	};
	uint32_t seed = 1;
	for (size_t at = 0; at < len;) {
		seed = seed * 1664525 + 1013904223;
		const char *w = words[(seed >> 24) % 12];
		for (; *w && at < len; w++)
			text[at++] = *w;
		if (at < len)
			text[at++] = (seed >> 16) % 11 ? ' ' : '\n';
	}
}

static void exports(void)
{
	struct workspace *ws = new_workspace(), *other = new_workspace();
	struct measure out = { 0 }, in = { 0 }, tar_out = { 0 }, tar_in = { 0 };
	cleanup_free char *text = malloc(100 * MIB);
	if (!text)
		exit(1);
	fill_text(text, 100 * MIB);
	for (int i = 0; i < 100; i++) {
		char name[64];
		snprintf(name, sizeof(name), "/workspace/f%d", i);
		DO(workspace_write(ws, name, text + (size_t)i * MIB, MIB, &e));
	}
	for (int r = 0; r < 3; r++) {
		cleanup_close int fd = memfd_create("bench", 0), tar = memfd_create("bench", 0);
		start(&out);
		DO(export_write(ws, NULL, fd, &e));
		stop(&out);
		(void)lseek(fd, 0, SEEK_SET);
		start(&in);
		DO(export_read(other, fd, 0, NULL, NULL, &e));
		stop(&in);
		start(&tar_out);
		DO(pack_to_fd(ws, "/workspace", tar, &e));
		stop(&tar_out);
		(void)lseek(tar, 0, SEEK_SET);
		start(&tar_in);
		DO(unpack_from_fd(other, "/tmp/in", tar, NULL, &e));
		stop(&tar_in);
		DO(workspace_remove(other, "/tmp/in", true, &e));
	}
	report(&out, "export of 100 MiB of text", 100 * MIB, 150);
	report(&in, "import of it", 100 * MIB, 150);
	report(&tar_out, "100 MiB out as a tar stream", 100 * MIB, 500);
	report(&tar_in, "100 MiB in as a tar stream", 100 * MIB, 500);
	workspace_close(ws);
	workspace_close(other);
}

int main(void)
{
	if (unshare(getuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		perror("a mount namespace of my own");
		return 1;
	}
	content = malloc(256 * MIB);
	if (!content)
		return 1;
	for (size_t i = 0; i < 256 * MIB; i++)
		content[i] = "the quick brown fox, number 01234"[(i * 2654435761U >> 7) % 33];
	small_files();
	large_file();
	snapshots("10 MiB in 500 files", 500, 10 * MIB / 500, 10);
	snapshots("256 MiB in 256 files", 256, MIB, 300);
	exports();
	return 0;
}
