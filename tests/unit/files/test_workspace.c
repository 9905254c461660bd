#include "files/workspace.h"

#include "fixture.h"

TEST(workspace_writes_and_reads_all_bytes)
{
	cleanup_fixture struct fixture f = fixture_plain();
	char all[256], *back = NULL;
	size_t len = 0;
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;

	ASSERT_EQ(workspace_write(f.ws, "/tmp/test.bin", all, sizeof(all), NULL), 0);
	ASSERT_EQ(workspace_read(f.ws, "/tmp/test.bin", 0, &back, &len, NULL), 0);
	ASSERT_EQ(len, 256);
	ASSERT(memcmp(back, all, 256) == 0);
	free(back);
	ASSERT_EQ(workspace_read_at(f.ws, "/tmp/test.bin", 250, all, 10, &len, NULL), 0);
	ASSERT_EQ(len, 6);
	ASSERT_EQ((unsigned char)all[0], 250);
}

static int collect(const char *name, const struct cordon_file_info *info, void *arg)
{
	char *text = arg;
	strcat(text, name);
	strcat(text, info->type == CORDON_DIRECTORY ? "/ "
		     : info->type == CORDON_SYMLINK ? "@ "
						    : " ");
	return 0;
}

static int stop_at_once(const char *name, const struct cordon_file_info *info, void *arg)
{
	(void)name, (void)info, (void)arg;
	return 7;
}

TEST(workspace_lists_sorted_and_stats)
{
	cleanup_fixture struct fixture f = fixture_plain();
	char text[256] = "";
	struct cordon_file_info info;
	fixture_put(&f, "b b\n\xc3\xa9", "abc");
	fixture_put(&f, "a/deep/er", "");
	ASSERT_EQ(workspace_symlink(f.ws, "b", "/home/user/l", NULL), 0);

	ASSERT_EQ(workspace_list(f.ws, "/home/user", collect, text, NULL), 0);
	ASSERT_STREQ(text, "a/ b b\n\xc3\xa9 l@ ");
	text[0] = '\0';
	ASSERT_EQ(workspace_list(f.ws, "/", collect, text, NULL), 0);
	ASSERT_STREQ(text, "home/ tmp/ workspace/ ");
	ASSERT_EQ(workspace_list(f.ws, "/home/user", stop_at_once, NULL, NULL), 7);
	ASSERT_EQ(workspace_stat(f.ws, "b b\n\xc3\xa9", &info, NULL), 0);
	ASSERT_EQ(info.size, 3);
	ASSERT_EQ(info.type, CORDON_FILE);
	ASSERT_EQ(info.mode, 0644);
	ASSERT_EQ(workspace_stat(f.ws, "/home", &info, NULL), 0);
	ASSERT_EQ(info.type, CORDON_DIRECTORY);
	ASSERT_EQ(workspace_remove(f.ws, "b b\n\xc3\xa9", false, NULL), 0);
	ASSERT_FAILS(workspace_stat(f.ws, "b b\n\xc3\xa9", &info, &e), CORDON_NOT_FOUND,
		     "ENOENT: ");
}

TEST(workspace_refuses_everything_outside)
{
	cleanup_fixture struct fixture f = fixture_plain();
	char *bytes;
	size_t len;
	static const char *const outside[] = {
		"/etc/x", "/newtop", "/tmp/../../../etc/passwd", "/home/other/x", "../x", "/x"
	};
	for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
		ASSERT_FAILS(workspace_write(f.ws, outside[i], "x", 1, &e), CORDON_DENIED,
			     "EROFS: outside the workspace: ");
		ASSERT_FAILS(workspace_mkdir(f.ws, outside[i], true, &e), CORDON_DENIED,
			     "EROFS: outside the workspace: ");
		ASSERT_FAILS(workspace_remove(f.ws, outside[i], true, &e), CORDON_DENIED,
			     "EROFS: outside the workspace: ");
		ASSERT_FAILS(workspace_read(f.ws, outside[i], 0, &bytes, &len, &e),
			     CORDON_NOT_FOUND, "ENOENT: outside the workspace: ");
	}
	ASSERT_FAILS(workspace_remove(f.ws, "/tmp", true, &e), CORDON_STATE, "EBUSY: ");
	ASSERT_FAILS(workspace_write(f.ws, "/tmp", "x", 1, &e), CORDON_INVALID, "EISDIR: ");
	ASSERT_FAILS(workspace_read(f.ws, "/home", 0, &bytes, &len, &e), CORDON_INVALID,
		     "EISDIR: ");
	ASSERT_FAILS(workspace_read(f.ws, "", 0, &bytes, &len, &e), CORDON_NOT_FOUND, "ENOENT: ");
}

TEST(workspace_links_lead_where_the_guest_sees_them_lead)
{
	cleanup_fixture struct fixture f = fixture_plain();
	char *target = NULL;
	fixture_put(&f, "/home/user/a/file", "one");
	ASSERT_EQ(workspace_symlink(f.ws, "/home/user/a", "/tmp/absolute", NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, "../tmp/absolute/file", "/workspace/up", NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, "file", "/home/user/a/link", NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, "made/later", "/tmp/dangling", NULL), 0);

	ASSERT_STREQ(fixture_get(&f, "/tmp/absolute/file"), "one");
	ASSERT_STREQ(fixture_get(&f, "/workspace/up"), "one");
	ASSERT_STREQ(fixture_get(&f, "/tmp/absolute/../a/./link"), "one");
	ASSERT_STREQ(fixture_get(&f, "/home/user/../user//a/link"), "one");

	/* Writing through a link changes the target; the link stays. */
	fixture_put(&f, "/workspace/up", "two");
	fixture_put(&f, "/home/user/a/link", "three");
	ASSERT_STREQ(fixture_get(&f, "/home/user/a/file"), "three");
	ASSERT_EQ(workspace_readlink(f.ws, "/workspace/up", &target, NULL), 0);
	ASSERT_STREQ(target, "../tmp/absolute/file");
	free(target);
	fixture_put(&f, "/tmp/dangling", "four");
	ASSERT_STREQ(fixture_get(&f, "/tmp/made/later"), "four");
}

TEST(workspace_links_never_lead_out)
{
	cleanup_fixture struct fixture f = fixture_plain();
	struct cordon_file_info info;
	char *bytes;
	size_t len;
	ASSERT_EQ(workspace_symlink(f.ws, "/bin", "/tmp/escape", NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, "/etc/passwd", "/tmp/passwd", NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, "../../../../etc/passwd", "/tmp/up", NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, "/proc/self/root/etc", "/tmp/magic", NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, "b", "/tmp/a", NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, "a", "/tmp/b", NULL), 0);
	fixture_put(&f, "/tmp/mine", "kept");

	ASSERT_FAILS(workspace_write(f.ws, "/tmp/escape/backdoor", "x", 1, &e), CORDON_DENIED,
		     "EROFS: ");
	ASSERT_FAILS(workspace_move(f.ws, "/tmp/mine", "/tmp/escape/x", &e), CORDON_DENIED,
		     "EROFS: ");
	ASSERT_STREQ(fixture_get(&f, "/tmp/mine"), "kept");
	static const char *const out[] = { "/tmp/passwd", "/tmp/up", "/tmp/magic/passwd" };
	for (size_t i = 0; i < 3; i++)
		ASSERT_FAILS(workspace_read(f.ws, out[i], 0, &bytes, &len, &e), CORDON_NOT_FOUND,
			     "ENOENT: outside the workspace: ");
	ASSERT_FAILS(workspace_read(f.ws, "/tmp/a", 0, &bytes, &len, &e), CORDON_DENIED, "ELOOP: ");
	ASSERT_EQ(workspace_stat(f.ws, "/tmp/passwd", &info, NULL), 0);
	ASSERT_EQ(info.type, CORDON_SYMLINK);
	ASSERT_EQ(workspace_remove(f.ws, "/tmp/escape", true, NULL), 0); /* the link, not /bin */
	ASSERT_EQ(access("/bin/sh", X_OK), 0);
}

TEST(workspace_honours_modes)
{
	cleanup_fixture struct fixture f = fixture_plain();
	struct cordon_file_info info;
	fixture_put(&f, "/tmp/ro", "old");
	ASSERT_EQ(workspace_chmod(f.ws, "/tmp/ro", 0444, NULL), 0);
	ASSERT_FAILS(workspace_write(f.ws, "/tmp/ro", "new", 3, &e), CORDON_DENIED, "EACCES: ");
	ASSERT_FAILS(workspace_append(f.ws, "/tmp/ro", "new", 3, &e), CORDON_DENIED, "EACCES: ");
	ASSERT_STREQ(fixture_get(&f, "/tmp/ro"), "old");

	fixture_put(&f, "/tmp/tool", "old");
	ASSERT_EQ(workspace_chmod(f.ws, "/tmp/tool", 04755, NULL), 0);
	fixture_put(&f, "/tmp/tool", "new");
	ASSERT_EQ(workspace_stat(f.ws, "/tmp/tool", &info, NULL), 0);
	ASSERT_EQ(info.mode, 0755); /* kept, and never set-id */

	ASSERT_EQ(workspace_mkdir(f.ws, "/tmp/shut", false, NULL), 0);
	ASSERT_EQ(workspace_chmod(f.ws, "/tmp/shut", 0555, NULL), 0);
	ASSERT_FAILS(workspace_write(f.ws, "/tmp/shut/x", "x", 1, &e), CORDON_DENIED, "EACCES: ");
}

TEST(workspace_files_belong_to_the_guest)
{
	cleanup_fixture struct fixture f = fixture_plain();
	struct stat st;
	fixture_put(&f, "/tmp/d/x", "x");
	ASSERT_EQ(fstatat(f.root_fd, "tmp/d/x", &st, AT_SYMLINK_NOFOLLOW), 0);
	ASSERT_EQ(st.st_uid, getuid() ? getuid() : FIXTURE_UID);
	ASSERT_EQ(fstatat(f.root_fd, "tmp/d", &st, AT_SYMLINK_NOFOLLOW), 0);
	ASSERT_EQ(st.st_uid, getuid() ? getuid() : FIXTURE_UID);
	/* And this thread is itself again. */
	char mine[] = "/tmp/cordon-mine-XXXXXX";
	int fd = mkstemp(mine);
	ASSERT_EQ(fstat(fd, &st), 0);
	ASSERT_EQ(st.st_uid, getuid());
	close(fd);
	unlink(mine);
}

TEST(workspace_appends_moves_and_removes)
{
	cleanup_fixture struct fixture f = fixture_plain();
	ASSERT_EQ(workspace_append(f.ws, "log", "a\n", 2, NULL), 0);
	ASSERT_EQ(workspace_append(f.ws, "log", "b\n", 2, NULL), 0);
	ASSERT_STREQ(fixture_get(&f, "log"), "a\nb\n");
	ASSERT_EQ(workspace_move(f.ws, "log", "/workspace/log", NULL), 0);
	ASSERT_STREQ(fixture_get(&f, "/workspace/log"), "a\nb\n");
	ASSERT_FAILS(workspace_move(f.ws, "log", "x", &e), CORDON_NOT_FOUND,
		     "ENOENT: No such file or directory: 'log'");
	fixture_put(&f, "d/e/f/g", "x");
	ASSERT_FAILS(workspace_remove(f.ws, "d", false, &e), CORDON_STATE, "ENOTEMPTY: ");
	ASSERT_EQ(workspace_chmod(f.ws, "d/e/f", 0555, NULL), 0);
	ASSERT_EQ(workspace_chmod(f.ws, "d/e", 0, NULL), 0);
	ASSERT_EQ(workspace_remove(f.ws, "d", true, NULL), 0);
	ASSERT_FAILS(workspace_mkdir(f.ws, "d/e", false, &e), CORDON_NOT_FOUND, "ENOENT: ");
	ASSERT_EQ(workspace_mkdir(f.ws, "d/e", true, NULL), 0);
	ASSERT_EQ(workspace_mkdir(f.ws, "d/e", true, NULL), 0);
	ASSERT_FAILS(workspace_mkdir(f.ws, "d/e", false, &e), CORDON_EXISTS, "EEXIST: ");
}

TEST(workspace_removes_a_tree_deeper_than_any_path)
{
	cleanup_fixture struct fixture f = fixture_open(64 << 20, 20000);
	struct workspace_usage before, after;
	ASSERT_EQ(workspace_get_usage(f.ws, &before, NULL), 0);
	int fd = openat(f.root_fd, "tmp", O_PATH | O_DIRECTORY);
	for (int i = 0; i < 5000; i++) {
		ASSERT_EQ(mkdirat(fd, "d", 0777), 0);
		ASSERT_EQ(fchmodat(fd, "d", 0777, 0), 0);
		int next = openat(fd, "d", O_PATH | O_DIRECTORY);
		ASSERT(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
	if (getuid() == 0) { /* made by root here, by the guest in life */
		ASSERT_EQ(workspace_get_usage(f.ws, &after, NULL), 0);
		struct workspace_options o = { .root_fd = f.root_fd };
		workspace_close(f.ws);
		ASSERT_EQ(workspace_open(&o, &f.ws, NULL), 0);
	}
	ASSERT_EQ(workspace_remove(f.ws, "/tmp/d", true, NULL), 0);
	ASSERT_EQ(workspace_get_usage(f.ws, &after, NULL), 0);
	ASSERT_EQ(after.files, before.files);
}

TEST(workspace_does_not_hang_on_fifos)
{
	cleanup_fixture struct fixture f = fixture_plain();
	char *bytes;
	size_t len;
	ASSERT_EQ(mkfifoat(f.root_fd, "tmp/pipe", 0666), 0);
	ASSERT_EQ(fchmodat(f.root_fd, "tmp/pipe", 0666, 0), 0);
	ASSERT_FAILS(workspace_read(f.ws, "/tmp/pipe", 0, &bytes, &len, &e), CORDON_INVALID,
		     "EINVAL: ");
	ASSERT_FAILS(workspace_append(f.ws, "/tmp/pipe", "x", 1, &e), CORDON_INVALID, "EINVAL: ");
	ASSERT_FAILS(workspace_write(f.ws, "/tmp/pipe", "x", 1, &e), CORDON_INVALID, "EINVAL: ");
}

TEST(workspace_byte_quota_gives_space_back)
{
	cleanup_fixture struct fixture f = fixture_open(64 * 1024, 100);
	static char block[40 * 1024], more[60 * 1024];
	memset(block, 'x', sizeof(block));
	memset(more, 'y', sizeof(more));
	ASSERT_EQ(workspace_write(f.ws, "/tmp/a", block, sizeof(block), NULL), 0);
	ASSERT_FAILS(workspace_write(f.ws, "/tmp/b", block, sizeof(block), &e), CORDON_LIMIT,
		     "ENOSPC: no space left on device (limit: 65536 bytes): '/tmp/b'; the policy's "
		     "fs_bytes is the limit");
	ASSERT_EQ(workspace_write(f.ws, "/tmp/a", block, sizeof(block), NULL), 0);
	if (f.is_tmpfs) /* does not fit beside the old one, but in its place */
		ASSERT_EQ(workspace_write(f.ws, "/tmp/a", more, sizeof(more), NULL), 0);
	ASSERT_FAILS(workspace_append(f.ws, "/tmp/a", more, sizeof(more), &e), CORDON_LIMIT,
		     "ENOSPC: ");
	ASSERT_EQ(fixture_get(&f, "/tmp/a")[0], f.is_tmpfs ? 'y' : 'x');
	ASSERT_EQ(workspace_remove(f.ws, "/tmp/a", false, NULL), 0);
	ASSERT_EQ(workspace_write(f.ws, "/tmp/b", block, sizeof(block), NULL), 0);
	struct cordon_file_info info;
	ASSERT_EQ(workspace_stat(f.ws, "/tmp/b", &info, NULL), 0);
	ASSERT_EQ(info.size, sizeof(block));
}

TEST(workspace_count_quota_frees_slots)
{
	cleanup_fixture struct fixture f = fixture_open(1 << 20, 12);
	char name[32];
	int made = 0;
	struct cordon_error *e = NULL;
	for (; made < 20; made++) {
		snprintf(name, sizeof(name), "/tmp/%d", made);
		if (workspace_write(f.ws, name, "x", 1, &e) < 0)
			break;
	}
	ASSERT(made >= 7 && made <= 12);
	ASSERT_EQ(cordon_error_code(e), CORDON_LIMIT);
	if (f.is_tmpfs)
		ASSERT(strstr(cordon_error_message(e), "ENOSPC: file count limit exceeded: "));
	cordon_error_free(e);
	fixture_put(&f, "/tmp/0", "overwritten"); /* does not count */
	ASSERT_STREQ(fixture_get(&f, "/tmp/0"), "overwritten");
	ASSERT_EQ(workspace_remove(f.ws, "/tmp/1", false, NULL), 0);
	fixture_put(&f, "/tmp/new", "x");
}

TEST(workspace_mounts_refuse_writes_and_overlap)
{
	cleanup_fixture struct fixture f = fixture_plain();
	fixture_put(&f, "/workspace/data/a.csv", "1");
	fixture_put(&f, "/workspace/other/b", "1");
	ASSERT_EQ(workspace_symlink(f.ws, "/workspace/data", "/tmp/in", NULL), 0);
	ASSERT_EQ(workspace_add_mount(f.ws, "/workspace/data", true, NULL), 0);
	ASSERT_EQ(workspace_add_mount(f.ws, "/workspace/other", false, NULL), 0);
	ASSERT_FAILS(workspace_add_mount(f.ws, "/workspace/data/a.csv", true, &e), CORDON_EXISTS,
		     "'/workspace/data/a.csv' overlaps");
	ASSERT_FAILS(workspace_add_mount(f.ws, "/workspace", true, &e), CORDON_INVALID, "a mount");
	ASSERT_FAILS(workspace_write(f.ws, "/workspace/data/a.csv", "2", 1, &e), CORDON_DENIED,
		     "EROFS: read-only mount");
	ASSERT_FAILS(workspace_write(f.ws, "/tmp/in/new/x", "2", 1, &e), CORDON_DENIED,
		     "EROFS: read-only mount");
	ASSERT_FAILS(workspace_remove(f.ws, "/workspace/data", true, &e), CORDON_DENIED,
		     "EROFS: read-only mount");
	ASSERT_STREQ(fixture_get(&f, "/workspace/data/a.csv"), "1");
	fixture_put(&f, "/workspace/other/b", "2");
	fixture_put(&f, "/workspace/database", "beside");
}
