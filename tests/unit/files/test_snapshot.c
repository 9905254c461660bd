#include "files/snapshot.h"

#include <sys/mman.h>

#include "fixture.h"

static struct snapshots *new_store(uint32_t count, uint64_t bytes)
{
	struct snapshots *s = NULL;
	struct snapshots_options o = { .max_count = count, .max_bytes = bytes };
	ASSERT_EQ(snapshots_new(&o, &s, NULL), 0);
	return s;
}

static void take(struct snapshots *s, struct fixture *f, const char *name)
{
	struct cordon_error *e = NULL;
	if (snapshots_create(s, f->ws, name, NULL, NULL, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
}

static void restore(struct snapshots *s, struct fixture *f, const char *name)
{
	struct cordon_error *e = NULL;
	if (snapshots_restore(s, f->ws, name, NULL, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
}

TEST(snapshot_brings_files_and_state_back)
{
	cleanup_fixture struct fixture f = fixture_plain();
	cleanup_snapshots struct snapshots *s = new_store(0, 0);
	cleanup_free char *state = NULL, *name = NULL, *target = NULL;
	struct cordon_file_info info, before;
	fixture_put(&f, "a", "v1");
	fixture_put(&f, "d/e/f", "deep");
	fixture_put(&f, "/tmp/t", "t");
	ASSERT_EQ(workspace_chmod(f.ws, "a", 0640, NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, "/tmp/t", "/home/user/l", NULL), 0);
	ASSERT_EQ(workspace_stat(f.ws, "a", &before, NULL), 0);
	ASSERT_EQ(snapshots_create(s, f.ws, NULL, "{\"env\":1}", &name, NULL), 0);
	ASSERT_STREQ(name, "1");

	fixture_put(&f, "a", "v2, longer");
	fixture_put(&f, "new", "x");
	fixture_put(&f, "d/e/g/h", "x");
	ASSERT_EQ(workspace_remove(f.ws, "/tmp/t", false, NULL), 0);
	ASSERT_EQ(workspace_mkdir(f.ws, "/tmp/t", false, NULL), 0);
	ASSERT_EQ(workspace_remove(f.ws, "l", false, NULL), 0);
	for (int twice = 0; twice < 2; twice++) {
		free(state);
		ASSERT_EQ(snapshots_restore(s, f.ws, "1", &state, NULL), 0);
		ASSERT_STREQ(state, "{\"env\":1}");
		ASSERT_STREQ(fixture_get(&f, "a"), "v1");
		ASSERT_STREQ(fixture_get(&f, "d/e/f"), "deep");
		ASSERT_STREQ(fixture_get(&f, "l"), "t");
		ASSERT(fixture_get(&f, "new")[0] == '!');
		ASSERT(fixture_get(&f, "d/e/g/h")[0] == '!');
		ASSERT_EQ(workspace_stat(f.ws, "a", &info, NULL), 0);
		ASSERT_EQ(info.mode, 0640);
		ASSERT_EQ(info.mtime_ns, before.mtime_ns);
		fixture_put(&f, "a", "v3");
	}
	ASSERT_FAILS(snapshots_restore(s, f.ws, "nope", NULL, &e), CORDON_NOT_FOUND,
		     "no such snapshot: nope");
}

TEST(snapshot_shares_what_did_not_change)
{
	cleanup_fixture struct fixture f = fixture_plain();
	cleanup_snapshots struct snapshots *s = new_store(0, 100000);
	static char block[60000];
	memset(block, 'b', sizeof(block));
	ASSERT_EQ(workspace_write(f.ws, "big", block, sizeof(block), NULL), 0);
	take(s, &f, "one");
	take(s, &f, "two"); /* would be over the limit if nothing were shared */
	fixture_put(&f, "small", "x");
	take(s, &f, "three");
	block[59999] = 'c';
	ASSERT_EQ(workspace_write(f.ws, "big", block, sizeof(block), NULL), 0);
	ASSERT_FAILS(snapshots_create(s, f.ws, "four", NULL, NULL, &e), CORDON_LIMIT,
		     "snapshots hold 60001 of 100000 bytes");
	ASSERT_EQ(snapshots_remove(s, "one", NULL), 0);
	ASSERT_EQ(snapshots_remove(s, "two", NULL), 0);
	ASSERT_FAILS(snapshots_create(s, f.ws, "four", NULL, NULL, &e), CORDON_LIMIT,
		     "snapshots hold");
	ASSERT_EQ(snapshots_remove(s, "three", NULL), 0);
	take(s, &f, "four");
	cleanup_free char *list = snapshots_list(s);
	ASSERT(strstr(list, "\"name\":\"four\"") && strstr(list, "\"bytes\":60001"));
}

TEST(snapshot_sees_writes_through_a_mapping)
{
	cleanup_fixture struct fixture f = fixture_plain();
	cleanup_snapshots struct snapshots *s = new_store(0, 0);
	fixture_put(&f, "/tmp/m", "before");
	int fd = openat(f.root_fd, "tmp/m", O_RDWR);
	char *p = mmap(NULL, 6, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT(p != MAP_FAILED);
	memcpy(p, "BEFORE", 6);
	take(s, &f, "one");
	memcpy(p, "after!", 6); /* no time of the file changes */
	take(s, &f, "two");
	restore(s, &f, "one");
	ASSERT_STREQ(fixture_get(&f, "/tmp/m"), "BEFORE");
	restore(s, &f, "two");
	ASSERT_STREQ(fixture_get(&f, "/tmp/m"), "after!");
	close(fd);
}

TEST(snapshot_restore_keeps_the_quota_right)
{
	cleanup_fixture struct fixture f = fixture_open(1 << 20, 100);
	cleanup_snapshots struct snapshots *s = new_store(0, 0);
	static char block[900 * 1024];
	needs(f.is_tmpfs, "tmpfs that a test may mount");
	memset(block, 'b', sizeof(block));
	ASSERT_EQ(workspace_write(f.ws, "/tmp/full", block, sizeof(block), NULL), 0);
	take(s, &f, "full");
	ASSERT_EQ(workspace_remove(f.ws, "/tmp/full", false, NULL), 0);
	ASSERT_EQ(workspace_write(f.ws, "/tmp/other", block, sizeof(block), NULL), 0);
	restore(s, &f, "full"); /* there is no room for both */
	struct workspace_usage u;
	ASSERT_EQ(workspace_get_usage(f.ws, &u, NULL), 0);
	ASSERT(u.bytes >= sizeof(block) && u.bytes < sizeof(block) + 65536);
	ASSERT_FAILS(workspace_write(f.ws, "/tmp/more", block, sizeof(block), &e), CORDON_LIMIT,
		     "ENOSPC: ");
	memset(block, 'c', sizeof(block));
	ASSERT_EQ(workspace_write(f.ws, "/tmp/full", block, sizeof(block), NULL), 0);
	restore(s, &f, "full");
	ASSERT_EQ(fixture_get(&f, "/tmp/full")[0], 'b');
}

TEST(snapshot_keeps_holes_and_hard_links)
{
	cleanup_fixture struct fixture f = fixture_open(1 << 20, 100);
	cleanup_snapshots struct snapshots *s = new_store(0, 0);
	needs(f.is_tmpfs, "tmpfs that a test may mount");
	fixture_put(&f, "/tmp/sparse", "");
	fixture_put(&f, "/tmp/a", "linked");
	int tmp = openat(f.root_fd, "tmp", O_PATH | O_DIRECTORY);
	int fd = openat(tmp, "sparse", O_RDWR);
	ASSERT_EQ(ftruncate(fd, 100 << 20), 0); /* a hundred times the quota */
	ASSERT_EQ(pwrite(fd, "end", 3, 50 << 20), 3);
	ASSERT_EQ(linkat(tmp, "a", tmp, "b", 0), 0);
	take(s, &f, "one");
	take(s, &f, "two");
	ASSERT_EQ(workspace_remove(f.ws, "/tmp/sparse", false, NULL), 0);
	ASSERT_EQ(workspace_remove(f.ws, "/tmp/b", false, NULL), 0);
	ASSERT_EQ(workspace_remove(f.ws, "/tmp/a", false, NULL), 0);
	restore(s, &f, "one");
	struct stat a, b, sp;
	ASSERT_EQ(fstatat(tmp, "a", &a, 0), 0);
	ASSERT_EQ(fstatat(tmp, "b", &b, 0), 0);
	ASSERT_EQ(a.st_ino, b.st_ino);
	ASSERT_EQ(fstatat(tmp, "sparse", &sp, 0), 0);
	ASSERT_EQ(sp.st_size, 100 << 20);
	ASSERT_EQ(sp.st_blocks, 8);
	char end[4] = "";
	size_t len;
	ASSERT_EQ(workspace_read_at(f.ws, "/tmp/sparse", 50 << 20, end, 3, &len, NULL), 0);
	ASSERT_STREQ(end, "end");
	close(tmp);
	close(fd);
}

TEST(snapshot_reads_what_its_owner_closed)
{
	cleanup_fixture struct fixture f = fixture_plain();
	cleanup_snapshots struct snapshots *s = new_store(0, 0);
	struct cordon_file_info info;
	fixture_put(&f, "shut/in/file", "secret");
	ASSERT_EQ(workspace_chmod(f.ws, "shut/in/file", 0, NULL), 0);
	ASSERT_EQ(workspace_chmod(f.ws, "shut/in", 0, NULL), 0);
	ASSERT_EQ(workspace_chmod(f.ws, "shut", 0, NULL), 0);
	take(s, &f, "one");
	ASSERT_EQ(workspace_stat(f.ws, "shut", &info, NULL), 0);
	ASSERT_EQ(info.mode, 0);
	ASSERT_EQ(workspace_remove(f.ws, "shut", true, NULL), 0);
	restore(s, &f, "one");
	ASSERT_EQ(workspace_stat(f.ws, "shut", &info, NULL), 0);
	ASSERT_EQ(info.mode, 0);
	ASSERT_EQ(workspace_chmod(f.ws, "shut", 0755, NULL), 0);
	ASSERT_EQ(workspace_chmod(f.ws, "shut/in", 0755, NULL), 0);
	ASSERT(strstr(fixture_get(&f, "shut/in/file"), "EACCES"));
	ASSERT_EQ(workspace_chmod(f.ws, "shut/in/file", 0644, NULL), 0);
	ASSERT_STREQ(fixture_get(&f, "shut/in/file"), "secret");
	restore(s, &f, "one");
	restore(s, &f, "one");
	ASSERT_EQ(workspace_stat(f.ws, "shut", &info, NULL), 0);
	ASSERT_EQ(info.mode, 0);
}

TEST(snapshot_number_is_limited_and_names_are_reused)
{
	cleanup_fixture struct fixture f = fixture_plain();
	cleanup_snapshots struct snapshots *s = new_store(2, 0);
	fixture_put(&f, "a", "1");
	take(s, &f, "x");
	fixture_put(&f, "a", "2");
	take(s, &f, "x"); /* takes the name over */
	take(s, &f, "y");
	ASSERT_FAILS(snapshots_create(s, f.ws, NULL, NULL, NULL, &e), CORDON_LIMIT,
		     "there are 2 snapshots");
	fixture_put(&f, "a", "3");
	restore(s, &f, "x");
	ASSERT_STREQ(fixture_get(&f, "a"), "2");
	ASSERT_FAILS(snapshots_create(s, f.ws, "", NULL, NULL, &e), CORDON_INVALID,
		     "a snapshot's name");
}

TEST(snapshot_fork_is_independent_both_ways)
{
	cleanup_fixture struct fixture f = fixture_plain(), g = fixture_plain();
	fixture_put(&f, "a", "parent");
	fixture_put(&f, "d/b", "b");
	fixture_put(&f, "shut/c", "c");
	ASSERT_EQ(workspace_chmod(f.ws, "shut/c", 0400, NULL), 0);
	ASSERT_EQ(workspace_chmod(f.ws, "shut", 0, NULL), 0);
	fixture_put(&g, "rest", "of another");
	ASSERT_EQ(snapshot_fork(f.ws, g.ws, NULL), 0);
	ASSERT_STREQ(fixture_get(&g, "a"), "parent");
	ASSERT(fixture_get(&g, "rest")[0] == '!');
	fixture_put(&g, "a", "child");
	fixture_put(&f, "d/b", "changed");
	ASSERT_STREQ(fixture_get(&f, "a"), "parent");
	ASSERT_STREQ(fixture_get(&g, "d/b"), "b");
	for (int i = 0; i < 2; i++) {
		struct fixture *each = i ? &g : &f;
		struct cordon_file_info info;
		ASSERT_EQ(workspace_stat(each->ws, "shut", &info, NULL), 0);
		ASSERT_EQ(info.mode, 0);
		ASSERT_EQ(workspace_chmod(each->ws, "shut", 0700, NULL), 0);
		ASSERT_STREQ(fixture_get(each, "shut/c"), "c");
	}
}
