/* The n-th allocation fails while files are written, snapshotted, exported and saved. */
#include <sys/mman.h>

#include "../unit/files/fixture.h"
#include "files/export.h"
#include "files/review.h"
#include "files/snapshot.h"
#include "files/store.h"
#include "harness/fault.h"

static struct fixture filled(void)
{
	struct fixture f = fixture_plain();
	fixture_put(&f, "a", "content");
	fixture_put(&f, "d/e/f", "deep");
	ASSERT_EQ(workspace_symlink(f.ws, "/tmp/x", "/tmp/link", NULL), 0);
	return f;
}

static int ignore(const char *name, const struct cordon_file_info *info, void *arg)
{
	(void)name, (void)info, (void)arg;
	return 0;
}

TEST(files_workspace_opens_and_lists)
{
	struct fixture f = filled();
	FAULT_LOOP
	{
		struct workspace_options o = { .root_fd = f.root_fd };
		struct workspace *ws = NULL;
		ASSERT_FAULT(workspace_open(&o, &ws, NULL));
		workspace_close(ws);
	}
	FAULT_LOOP
	{
		ASSERT_FAULT(workspace_list(f.ws, "/home/user", ignore, NULL, NULL));
	}
	FAULT_LOOP
	{
		ASSERT_FAULT(workspace_remove(f.ws, "d", true, NULL));
		if (!fault_was_hit())
			fixture_put(&f, "d/e/f", "deep");
	}
	fixture_done(&f);
}

TEST(files_snapshots)
{
	struct fixture f = filled(), g = fixture_plain();
	FAULT_LOOP
	{
		struct snapshots *s = NULL;
		int r = snapshots_new(NULL, &s, NULL);
		if (r == 0)
			r = snapshots_create(s, f.ws, "one", "{}", NULL, NULL);
		if (r == 0)
			r = snapshots_create(s, f.ws, NULL, NULL, NULL, NULL);
		if (r == 0)
			r = snapshots_restore(s, f.ws, "one", NULL, NULL);
		if (r == 0)
			r = snapshot_fork(f.ws, g.ws, NULL);
		ASSERT_FAULT(r);
		snapshots_free(s);
	}
	ASSERT_STREQ(fixture_get(&f, "a"), "content");
	ASSERT_STREQ(fixture_get(&g, "d/e/f"), "deep");
	fixture_done(&f);
	fixture_done(&g);
}

TEST(files_exports)
{
	struct fixture f = filled(), g = fixture_plain();
	FAULT_LOOP
	{
		int fd = memfd_create("test", MFD_CLOEXEC);
		char *report = NULL, *state = NULL;
		int r = export_write(f.ws, "{}", fd, NULL);
		if (r == 0 && lseek(fd, 0, SEEK_SET) == 0)
			r = export_read(g.ws, fd, 0, &report, &state, NULL);
		ASSERT_FAULT(r);
		free(report);
		free(state);
		close(fd);
	}
	ASSERT_STREQ(fixture_get(&g, "d/e/f"), "deep");
	fixture_done(&f);
	fixture_done(&g);
}

TEST(files_stores_keep_the_last_good_state)
{
	char dir[] = "/tmp/cordon-fault-XXXXXX", command[64];
	struct fixture f = filled(), g = fixture_plain();
	ASSERT(mkdtemp(dir) != NULL);
	struct store *first = NULL;
	ASSERT_EQ(store_open(dir, "x", &first, NULL), 0);
	ASSERT_EQ(store_save(first, f.ws, NULL, NULL), 0);
	store_close(first);
	FAULT_LOOP
	{
		struct store *s = NULL;
		int r = store_open(dir, "x", &s, NULL);
		if (r == 0)
			r = store_save(s, f.ws, "{}", NULL);
		ASSERT_FAULT(r);
		store_close(s);
	}
	ASSERT_EQ(store_open(dir, "x", &first, NULL), 0);
	ASSERT_EQ(store_load(first, g.ws, NULL, NULL), 0);
	store_close(first);
	ASSERT_STREQ(fixture_get(&g, "d/e/f"), "deep");
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ASSERT_EQ(system(command), 0);
	fixture_done(&f);
	fixture_done(&g);
}

TEST(files_reviews)
{
	char dir[] = "/tmp/cordon-fault-XXXXXX", path[128];
	struct fixture f = fixture_plain();
	ASSERT(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/a", dir);
	FILE *a = fopen(path, "w");
	ASSERT(a && fputs("one\ntwo\n", a) >= 0 && fclose(a) == 0);
	FAULT_LOOP
	{
		struct review_options o = { .host_dir = dir,
					    .ws = f.ws,
					    .guest_dir = "/workspace" };
		struct review *r = NULL;
		char *diff = NULL, *applied = NULL;
		int e = review_open(&o, &r, NULL);
		if (e == 0)
			e = workspace_write(f.ws, "/workspace/a", "one\n2\n", 6, NULL);
		if (e == 0)
			e = review_diff(r, &diff, NULL);
		if (e == 0)
			e = workspace_write(f.ws, "/workspace/a", "one\ntwo\n", 8, NULL);
		if (e == 0)
			e = review_apply(r, NULL, 0, &applied, NULL);
		ASSERT_FAULT(e);
		free(diff);
		free(applied);
		review_close(r);
	}
	snprintf(path, sizeof(path), "rm -rf %s", dir);
	ASSERT_EQ(system(path), 0);
	fixture_done(&f);
}
