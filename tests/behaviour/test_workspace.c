/* The workspace as guests and their hosts see it, through the public API and a real sandbox: the
 * cases FS-*, SNP-* and LIM-17..19 that need a guest. */
#include <cordon/cordon.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/test.h"
#include "workroom.h"

TEST(workspace_host_and_guest_see_the_same)
{
	struct cordon_session *s = open_with("python", NULL, NULL);
	put(s, "/workspace/in dir/a\n\xc3\xa9", "from the host");
	ASSERT_STREQ(run(s, "print(open('/workspace/in dir/a\\n\\u00e9').read(), end='')"),
		     "from the host");
	ASSERT_STREQ(
		run(s,
		    "open('/workspace/in dir/a\\n\\u00e9', 'a').write(' and the guest') and None"),
		"");
	ASSERT_STREQ(get(s, "/workspace/in dir/a\n\xc3\xa9"), "from the host and the guest");
	ASSERT_STREQ(run(s,
			 "import os\nprint(all(os.access(d, os.W_OK) for d in "
			 "['/home/user', '/tmp', '/workspace']), os.path.expanduser('~'), end='')"),
		     "True /home/user");
	ASSERT_HAS(get(s, "/nonexistent"), "!ENOENT: ");
	cordon_session_close(s);
}

TEST(workspace_the_rest_is_read_only)
{
	struct cordon_session *s = open_with("sh", NULL, NULL);
	ASSERT_STREQ(run(s, "for f in /etc/x /newtop/x /usr/bin/x /tmp/../../../etc/passwd; do "
			    "(echo evil > $f) 2>/dev/null && echo wrote $f; done; mkdir /newtop "
			    "2>/dev/null && echo made; true"),
		     "");
	ASSERT_STREQ(run(s, "ln -s /bin /tmp/escape; (echo x > /tmp/escape/backdoor) 2>/dev/null "
			    "&& echo wrote; true"),
		     "");
	ASSERT_STREQ(
		run(s, "ln -s b /tmp/a; ln -s a /tmp/b; cat /tmp/a 2>/dev/null || printf loop"),
		"loop");
	ASSERT_STREQ(run(s,
			 "echo old > /tmp/ro; chmod 444 /tmp/ro; (echo new > /tmp/ro) 2>/dev/null; "
			 "cat /tmp/ro"),
		     "old\n");
	ASSERT_STREQ(run(s, "head -c 100000 /dev/zero | wc -c; cat /dev/null; echo x > /dev/null"),
		     "100000\n");
	ASSERT_STREQ(run(s, "(for i in $(seq 200); do echo a >> /tmp/log; done) & "
			    "(for i in $(seq 200); do echo b >> /tmp/log; done) & wait; "
			    "wc -l < /tmp/log"),
		     "400\n");
	struct cordon_error *e = NULL;
	ASSERT_EQ(cordon_file_write(s, "/tmp/ro", "host", 4, &e), -CORDON_DENIED);
	ASSERT_HAS(cordon_error_message(e), "EACCES: ");
	cordon_error_free(e);
	cordon_session_close(s);
}

TEST(workspace_sessions_do_not_share)
{
	struct cordon_session *a = open_with("python", NULL, NULL),
			      *b = open_with("python", NULL, NULL);
	put(a, "/tmp/mine", "a");
	ASSERT_HAS(run(b, "open('/tmp/mine')"), "No such file");
	ASSERT_HAS(get(b, "/tmp/mine"), "!ENOENT: ");
	cordon_session_close(a);
	cordon_session_close(b);
}

TEST(workspace_byte_quota_is_the_guests_and_the_hosts)
{
	static const char *const settings[] = { "fs_bytes=1048576", NULL };
	struct cordon_session *s = open_with("python", settings, NULL);
	ASSERT_HAS(run(s, "open('/tmp/big', 'wb').write(b'x' * 2000000)"),
		   "No space left on device");
	ASSERT_STREQ(run(s, "import os\nos.unlink('/tmp/big')\n"
			    "print(open('/tmp/fits', 'wb').write(b'x' * 900000), end='')"),
		     "900000");
	static char block[900000];
	struct cordon_error *e = NULL;
	ASSERT_EQ(cordon_file_write(s, "/tmp/more", block, sizeof(block), &e), -CORDON_LIMIT);
	ASSERT_HAS(cordon_error_message(e), "ENOSPC: ");
	cordon_error_free(e);
	ASSERT_EQ(cordon_file_write(s, "/tmp/fits", block, sizeof(block), NULL), 0);
	ASSERT_EQ(cordon_snapshot_create(s, "full", NULL), 0);
	ASSERT_EQ(cordon_file_remove(s, "/tmp/fits", false, NULL), 0);
	ASSERT_EQ(cordon_snapshot_restore(s, "full", NULL), 0);
	ASSERT_HAS(run(s, "open('/tmp/big', 'wb').write(b'x' * 300000)"),
		   "No space left on device");
	cordon_session_close(s);
}

TEST(workspace_count_quota_is_the_guests_and_the_hosts)
{
	static const char *const settings[] = { "file_count=64", NULL };
	struct cordon_session *s = open_with("python", settings, NULL);
	ASSERT_HAS(run(s, "for i in range(100): open(f'/tmp/{i}', 'w').close()"),
		   "No space left on device");
	struct cordon_error *e = NULL;
	ASSERT_EQ(cordon_file_write(s, "/tmp/new", "x", 1, &e), -CORDON_LIMIT);
	ASSERT_HAS(cordon_error_message(e), "ENOSPC: file count limit exceeded");
	cordon_error_free(e);
	put(s, "/tmp/0", "overwriting does not count");
	ASSERT_EQ(cordon_file_remove(s, "/tmp/1", false, NULL), 0);
	put(s, "/tmp/new", "x");
	cordon_session_close(s);
}

TEST(workspace_snapshots_bring_files_and_environment_back)
{
	struct cordon_session *s = open_with("sh", NULL, NULL);
	struct cordon_error *e = NULL;
	ASSERT_EQ(cordon_session_setenv(s, "WHICH", "original", NULL), 0);
	ASSERT_STREQ(run(s, "echo v1 > /workspace/f; echo $WHICH"), "original\n");
	ASSERT_EQ(cordon_snapshot_create(s, "one", NULL), 0);
	ASSERT_EQ(cordon_session_setenv(s, "WHICH", "changed", NULL), 0);
	for (int twice = 0; twice < 2; twice++) {
		ASSERT_STREQ(run(s, "echo v2 > /workspace/f; echo x > /workspace/new"), "");
		ASSERT_EQ(cordon_snapshot_restore(s, "one", NULL), 0);
		ASSERT_STREQ(
			run(s,
			    "cat /workspace/f; test ! -e /workspace/new && echo gone; echo $WHICH"),
			"v1\ngone\noriginal\n");
	}
	ASSERT_EQ(cordon_snapshot_restore(s, "nope", &e), -CORDON_NOT_FOUND);
	ASSERT_STREQ(cordon_error_message(e), "no such snapshot: nope");
	cordon_error_free(e);
	cordon_session_close(s);
}

TEST(workspace_forks_are_independent)
{
	struct cordon_session *s = open_with("python", NULL, NULL), *child = NULL;
	put(s, "/workspace/f", "parent");
	ASSERT_EQ(cordon_session_fork(s, &child, NULL), 0);
	ASSERT_STREQ(run(child, "print(open('/workspace/f').read(), end='')"), "parent");
	ASSERT_STREQ(run(child, "open('/workspace/f', 'w').write('child') and None"), "");
	ASSERT_STREQ(run(s, "open('/workspace/g', 'w').write('later') and None"), "");
	ASSERT_STREQ(get(s, "/workspace/f"), "parent");
	ASSERT_HAS(get(child, "/workspace/g"), "!ENOENT");
	cordon_session_close(s);
	cordon_session_close(child);
}

TEST(workspace_exports_travel_between_guests)
{
	struct cordon_session *s = open_with("python", NULL, NULL),
			      *t = open_with("sh", NULL, NULL);
	char *report = NULL;
	int fd = memfd_create("export", MFD_CLOEXEC);
	ASSERT_STREQ(run(s, "import os\nos.makedirs('/workspace/d')\n"
			    "open('/workspace/d/run.sh', 'w').write('echo ran')\n"
			    "os.chmod('/workspace/d/run.sh', 0o750)\n"
			    "os.symlink('d/run.sh', '/workspace/l')"),
		     "");
	ASSERT_EQ(cordon_session_setenv(s, "A", "1", NULL), 0);
	ASSERT_EQ(cordon_files_export(s, fd, NULL), 0);
	ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
	ASSERT_EQ(cordon_files_import(t, fd, &report, NULL), 0);
	ASSERT_HAS(report, "\"skipped\":[]");
	ASSERT_STREQ(run(t,
			 "sh /workspace/l; readlink /workspace/l; stat -c %a /workspace/d/run.sh; "
			 "echo $A; ls -A /dev /proc | wc -l > /dev/null"),
		     "ran\nd/run.sh\n750\n1\n");
	free(report);
	cordon_session_close(s);
	cordon_session_close(t);
}

/* A place for named workspaces that is this test's own. */
static void own_store(char dir[static 32])
{
	strcpy(dir, "/tmp/cordon-persist-XXXXXX");
	ASSERT(mkdtemp(dir) != NULL);
	ASSERT_EQ(setenv("XDG_DATA_HOME", dir, 1), 0);
}

static void drop_store(const char *dir)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ASSERT_EQ(system(command), 0);
}

TEST(workspace_persists_by_name)
{
	char dir[32];

	own_store(dir);
	struct cordon_session *s = open_with("python", NULL, "mine");
	ASSERT_STREQ(run(s, "open('/workspace/kept', 'w').write('kept') and None"), "");
	struct cordon_session *second = NULL;
	struct cordon_error *e = NULL;
	struct cordon_session_options o = { .guest = "python", .workspace = "mine" };
	ASSERT_EQ(cordon_session_open(&o, &second, &e), -CORDON_EXISTS);
	ASSERT_HAS(cordon_error_message(e), "held by process");
	cordon_error_free(e);
	cordon_session_close(s);
	s = open_with("python", NULL, "mine");
	ASSERT_STREQ(get(s, "/workspace/kept"), "kept");
	cordon_session_close(s);
	s = open_with("python", NULL, "other");
	ASSERT_HAS(get(s, "/workspace/kept"), "!ENOENT");
	cordon_session_close(s);
	drop_store(dir);
}

TEST(workspace_outlives_its_guest)
{
	struct cordon_session *s = open_with("python", NULL, NULL);
	put(s, "/workspace/f", "kept");
	(void)run(s, "import os\nos._exit(3)");
	ASSERT_STREQ(get(s, "/workspace/f"), "kept");
	ASSERT_STREQ(run(s, "print(open('/workspace/f').read(), end='')"), "kept");
	cordon_session_close(s);
}

/* One place for one workspace, which can be made to fail. */
struct cupboard {
	char id[64];
	void *bytes;
	size_t len;
	bool is_broken;
	int saves, loads;
};

static int put_away(const char *id, const void *bytes, size_t len, void *arg)
{
	struct cupboard *c = arg;
	c->saves++;
	if (c->is_broken)
		return -CORDON_OS;
	snprintf(c->id, sizeof(c->id), "%s", id);
	free(c->bytes);
	c->bytes = malloc(len);
	c->len = len;
	memcpy(c->bytes, bytes, len);
	return 0;
}

static int take_out(const char *id, void **ret, size_t *ret_len, void *arg)
{
	struct cupboard *c = arg;
	c->loads++;
	if (c->is_broken || strcmp(id, c->id) != 0)
		return -CORDON_NOT_FOUND;
	*ret = malloc(c->len);
	memcpy(*ret, c->bytes, c->len);
	*ret_len = c->len;
	return 0;
}

/* SNP-12 */
TEST(workspace_offloads_and_comes_back)
{
	struct cordon_session *s = open_with("python", NULL, NULL);
	struct cordon_execute_options o = { .code = "1" };
	struct cordon_result *r = NULL;
	struct cordon_error *e = NULL;
	struct cupboard c = { .is_broken = true };

	put(s, "/workspace/f", "kept");
	ASSERT_EQ(cordon_session_setenv(s, "WHICH", "mine", NULL), 0);
	ASSERT_STREQ(run(s, "import os\nos.chdir('/workspace')"), "");
	ASSERT_EQ(cordon_session_offload(s, NULL, NULL, &e), -CORDON_INVALID);
	ASSERT_STREQ(cordon_error_message(e), "No storage callbacks configured");
	e = cordon_error_free(e);
	ASSERT_EQ(cordon_session_offload(s, put_away, &c, &e), -CORDON_OS);
	e = cordon_error_free(e);
	ASSERT_STREQ(get(s, "/workspace/f"), "kept"); /* a save that failed keeps everything */
	c.is_broken = false;
	ASSERT_EQ(cordon_session_offload(s, put_away, &c, NULL), 0);
	ASSERT_EQ(cordon_session_offload(s, put_away, &c, NULL), 0);
	ASSERT_EQ(c.saves, 2);
	ASSERT_STREQ(c.id, cordon_session_id(s));
	ASSERT_HAS(get(s, "/workspace/f"), "offloaded");
	ASSERT_EQ(cordon_session_execute(s, &o, &r, &e), -CORDON_STATE);
	ASSERT_HAS(cordon_error_message(e), "rehydrate() first");
	e = cordon_error_free(e);
	c.is_broken = true;
	ASSERT_EQ(cordon_session_rehydrate(s, take_out, &c, &e), -CORDON_NOT_FOUND);
	e = cordon_error_free(e);
	c.is_broken = false;
	ASSERT_EQ(cordon_session_rehydrate(s, take_out, &c, NULL), 0);
	ASSERT_EQ(cordon_session_rehydrate(s, take_out, &c, NULL), 0);
	ASSERT_EQ(c.loads, 2);
	ASSERT_STREQ(run(s, "print(open('f').read(), os.environ['WHICH'], end='')"), "kept mine");
	free(c.bytes);
	cordon_session_close(s);
}

/* SNP-12 with a name: while its contents are elsewhere nothing is saved, afterwards all is again.
 */
TEST(workspace_with_a_name_is_saved_after_it_came_back)
{
	struct cupboard c = { 0 };
	char dir[32];

	own_store(dir);
	struct cordon_session *s = open_with("python", NULL, "mine");
	put(s, "/workspace/f", "before");
	ASSERT_EQ(cordon_session_offload(s, put_away, &c, NULL), 0);
	cordon_session_close(s); /* while it is away: what was saved under the name stays */
	s = open_with("python", NULL, "mine");
	ASSERT_HAS(get(s, "/workspace/f"), "!ENOENT");
	put(s, "/workspace/f", "before");
	cordon_session_close(s);

	s = open_with("python", NULL, "mine");
	ASSERT_STREQ(get(s, "/workspace/f"), "before");
	ASSERT_EQ(cordon_session_setenv(s, "WHICH", "mine", NULL), 0);
	ASSERT_EQ(cordon_session_offload(s, put_away, &c, NULL), 0);
	ASSERT_EQ(cordon_session_rehydrate(s, take_out, &c, NULL), 0);
	ASSERT_STREQ(run(s, "open('/workspace/f', 'a').write(' and after') and None"), "");
	put(s, "/workspace/g", "new");
	cordon_session_close(s);

	s = open_with("python", NULL, "mine");
	ASSERT_STREQ(get(s, "/workspace/f"), "before and after");
	ASSERT_STREQ(get(s, "/workspace/g"), "new");
	ASSERT_STREQ(run(s, "import os\nprint(os.environ['WHICH'], end='')"), "mine");
	/* Nothing was changed but that it went away and came back: it is there the next time too.
	 */
	ASSERT_EQ(cordon_session_offload(s, put_away, &c, NULL), 0);
	ASSERT_EQ(cordon_session_rehydrate(s, take_out, &c, NULL), 0);
	cordon_session_close(s);
	s = open_with("python", NULL, "mine");
	ASSERT_STREQ(get(s, "/workspace/g"), "new");
	cordon_session_close(s);
	free(c.bytes);
	drop_store(dir);
}

static int found_mount(const char *path, const struct cordon_file_info *info, const char *link,
		       void *arg)
{
	(void)info, (void)link;
	*(bool *)arg |= strstr(path, "/data") != NULL;
	return 0;
}

/* FS-15, FS-17, SNP-09: inside the workspace and outside of it, live and copied. */
TEST(workspace_mounts_inside_it)
{
	char dir[] = "/tmp/cordon-mount-XXXXXX", file[64], live[256], copied[96], outside[96];
	ASSERT(mkdtemp(dir) != NULL);
	ASSERT_EQ(chmod(dir, 0755), 0);
	snprintf(file, sizeof(file), "%s/f", dir);
	FILE *f = fopen(file, "w");
	ASSERT(f != NULL && fputs("before", f) >= 0 && fclose(f) == 0 && chmod(file, 0644) == 0);
	snprintf(live, sizeof(live), "mounts=%s:/workspace/deep/data:ro,%s:/tmp/copy,%s:/mnt/x:ro",
		 dir, dir, dir);
	const char *const settings[] = { live, NULL };
	struct cordon_session *s = open_with("sh", settings, NULL), *child = NULL;
	struct cordon_error *e = NULL;
	bool is_found = false;
	char *text = NULL;
	size_t len;

	f = fopen(file, "w");
	ASSERT(f != NULL && fputs("after", f) >= 0 && fclose(f) == 0);
	const char *all = "cat /workspace/deep/data/f /tmp/copy/f /mnt/x/f";
	ASSERT_STREQ(run(s, all), "afterbeforeafter");
	ASSERT_STREQ(
		run(s, "for d in /workspace/deep/data /mnt/x; do (echo x > $d/new) 2> /dev/null && "
		       "echo wrote; ls $d/../../../etc/shadow 2> /dev/null; done; true"),
		"");
	/* The host is told where they are; a copy is the workspace's. */
	ASSERT_EQ(cordon_file_read(s, "/workspace/deep/data/f", &text, &len, &e),
		  -CORDON_UNSUPPORTED);
	ASSERT_HAS(cordon_error_message(e), "is a live mount of the host's '/tmp/cordon-mount-");
	e = cordon_error_free(e);
	ASSERT_EQ(cordon_file_write(s, "/mnt/x/new", "x", 1, &e), -CORDON_UNSUPPORTED);
	e = cordon_error_free(e);
	ASSERT_STREQ(get(s, "/tmp/copy/f"), "before");
	ASSERT_EQ(cordon_file_write(s, "/tmp/copy/f", "x", 1, &e), -CORDON_DENIED);
	ASSERT_HAS(cordon_error_message(e), "EROFS: read-only mount");
	e = cordon_error_free(e);
	ASSERT_EQ(cordon_session_fork(s, &child, NULL), 0);
	ASSERT_STREQ(run(child, all), "afterbeforeafter");
	int fd = memfd_create("export", MFD_CLOEXEC);
	ASSERT_EQ(cordon_files_export(s, fd, NULL), 0);
	ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
	ASSERT_EQ(cordon_export_list(fd, found_mount, &is_found, NULL), 0);
	ASSERT(!is_found);
	cordon_session_close(child);
	cordon_session_close(s);
	snprintf(copied, sizeof(copied), "mounts=%s:/workspace/data", dir);
	snprintf(outside, sizeof(outside), "rm -rf %s", dir);
	/* And in one shot: they are there before the code is. */
	struct cordon_policy *p = NULL;
	struct cordon_result *r = NULL;
	ASSERT_EQ(cordon_policy_new("standard", &p, NULL), 0);
	ASSERT_EQ(cordon_policy_set(p, copied, NULL), 0);
	struct cordon_session_options so = { .guest = "sh", .policy = p };
	struct cordon_execute_options eo = { .code = "cat /workspace/data/f" };
	ASSERT_EQ(cordon_run(&so, &eo, &r, NULL), 0);
	ASSERT_STREQ(cordon_result_stdout(r, &len), "after");
	cordon_result_free(r);
	cordon_policy_free(p);
	ASSERT_EQ(system(outside), 0);
}
