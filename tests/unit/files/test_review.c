#include "files/review.h"

#include "files/linediff.h"
#include "fixture.h"

static char dir[] = "/tmp/cordon-project-XXXXXX";

static void remove_dir(void)
{
	char command[64];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ASSERT_EQ(system(command), 0);
}

static void put(const char *rel, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, rel);
	FILE *f = fopen(path, "w");
	ASSERT(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* The content as a string, "!" when there is none. */
static const char *get(const char *rel)
{
	static char text[4096];
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, rel);
	FILE *f = fopen(path, "r");
	if (!f)
		return "!";
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

static void make_project(void)
{
	char path[256];
	ASSERT(mkdtemp(dir) != NULL);
	atexit(remove_dir);
	snprintf(path, sizeof(path), "%s/src", dir);
	ASSERT_EQ(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/.git", dir);
	ASSERT_EQ(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/link", dir);
	ASSERT_EQ(symlink("/etc/hostname", path), 0);
	put("a.txt", "one\ntwo\nthree\n");
	put("gone.txt", "bye\n");
	put("src/b.c", "int b;\n");
	put("src/run.sh", "#!/bin/sh\n");
}

static struct review *open_review(struct fixture *f)
{
	struct cordon_error *e = NULL;
	struct review *r = NULL;
	struct review_options o = { .host_dir = dir, .ws = f->ws, .guest_dir = "/workspace" };
	if (review_open(&o, &r, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return r;
}

static char *diff_of(struct review *r)
{
	struct cordon_error *e = NULL;
	char *json = NULL;
	if (review_diff(r, &json, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return json;
}

static char *apply_to(struct review *r, const char *const *paths, size_t count)
{
	struct cordon_error *e = NULL;
	char *json = NULL;
	if (review_apply(r, paths, count, &json, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return json;
}

static void change_things(struct fixture *f)
{
	fixture_put(f, "/workspace/a.txt", "one\n2\nthree\nfour\n");
	fixture_put(f, "/workspace/new/deep/file", "new\n");
	fixture_put(f, "/workspace/.git/hooks/pre-commit", "evil\n");
	ASSERT_EQ(workspace_remove(f->ws, "/workspace/gone.txt", false, NULL), 0);
	ASSERT_EQ(workspace_remove(f->ws, "/workspace/src/b.c", false, NULL), 0);
	ASSERT_EQ(workspace_mkdir(f->ws, "/workspace/src/b.c", false, NULL), 0);
	ASSERT_EQ(workspace_chmod(f->ws, "/workspace/src/run.sh", 0755, NULL), 0);
	ASSERT_EQ(workspace_symlink(f->ws, "../../../etc", "/workspace/src/out", NULL), 0);
	ASSERT_EQ(workspace_symlink(f->ws, "../a.txt", "/workspace/src/in", NULL), 0);
}

TEST(review_names_every_kind_of_change)
{
	make_project();
	cleanup_fixture struct fixture f = fixture_plain();
	cleanup_review struct review *r = open_review(&f);
	char *json = diff_of(r);
	ASSERT_STREQ(json, "{\"added\":0,\"modified\":0,\"deleted\":0,\"changes\":[]}");
	free(json);
	change_things(&f);
	json = diff_of(r);
	ASSERT_HAS(json, "\"added\":7,\"modified\":3,\"deleted\":1");
	ASSERT_HAS(
		json,
		"{\"path\":\"a.txt\",\"change\":\"modified\",\"type\":\"file\",\"mode\":\"0644\","
		"\"size\":17,\"old_type\":\"file\",\"old_mode\":\"0644\",\"old_size\":14,"
		"\"lines_added\":2,\"lines_removed\":1,\"diff\":\"@@ -1,3 +1,4 @@\\n one\\n"
		"-two\\n+2\\n three\\n+four\\n\"}");
	ASSERT_HAS(json, "{\"path\":\"gone.txt\",\"change\":\"deleted\",\"type\":\"file\"");
	ASSERT_HAS(json,
		   "\"lines_added\":0,\"lines_removed\":1,\"diff\":\"@@ -1,1 +0,0 @@\\n-bye\\n\"");
	ASSERT_HAS(json, "{\"path\":\"new/deep/file\",\"change\":\"added\",\"type\":\"file\"");
	ASSERT_HAS(json, "{\"path\":\"src/b.c\",\"change\":\"type\",\"type\":\"directory\"");
	ASSERT_HAS(
		json,
		"{\"path\":\"src/run.sh\",\"change\":\"mode\",\"type\":\"file\",\"mode\":\"0755\"");
	ASSERT_HAS(json, "{\"path\":\"src/in\",\"change\":\"added\",\"type\":\"link\"");
	free(json);
	ASSERT_STREQ(get("a.txt"), "one\ntwo\nthree\n"); /* the host has seen nothing of it */
}

TEST(review_applies_all_but_what_is_dangerous)
{
	make_project();
	cleanup_fixture struct fixture f = fixture_plain();
	cleanup_review struct review *r = open_review(&f);
	change_things(&f);
	char *json = apply_to(r, NULL, 0), path[256];
	ASSERT_HAS(json, "{\"path\":\".git/hooks/pre-commit\",\"reason\":\"git may execute");
	ASSERT_HAS(json,
		   "{\"path\":\"src/out\",\"reason\":\"a link that leads out of the project\"}");
	free(json);
	ASSERT_STREQ(get("a.txt"), "one\n2\nthree\nfour\n");
	ASSERT_STREQ(get("new/deep/file"), "new\n");
	ASSERT_STREQ(get("gone.txt"), "!");
	ASSERT_STREQ(get(".git/hooks/pre-commit"), "!");
	ASSERT_STREQ(get("src/in"), "one\n2\nthree\nfour\n");
	struct stat st;
	snprintf(path, sizeof(path), "%s/src/run.sh", dir);
	ASSERT_EQ(stat(path, &st), 0);
	ASSERT_EQ(st.st_mode & 0777, 0755);
	snprintf(path, sizeof(path), "%s/src/b.c", dir);
	ASSERT_EQ(stat(path, &st), 0);
	ASSERT(S_ISDIR(st.st_mode));
	snprintf(path, sizeof(path), "%s/src/out", dir);
	ASSERT_EQ(lstat(path, &st), -1);
	/* No temporary names are left. */
	snprintf(path, sizeof(path), "test -z \"$(find %s -name '.cordon*')\"", dir);
	ASSERT_EQ(system(path), 0);
	static const char *const hook[] = { ".git/hooks/pre-commit" };
	json = apply_to(r, hook, 1); /* named, so wanted */
	ASSERT_HAS(json, "\"applied\":[\".git/hooks/pre-commit\"],\"refused\":[]");
	free(json);
}

TEST(review_refuses_what_changed_underneath)
{
	make_project();
	cleanup_fixture struct fixture f = fixture_plain();
	cleanup_review struct review *r = open_review(&f);
	change_things(&f);
	put("a.txt", "mine\n");
	put("new", "mine\n");
	put("gone.txt", "still needed\n");
	static const char *const chosen[] = { "a.txt", "new/", "gone.txt", "src/run.sh" };
	char *json = apply_to(r, chosen, 4);
	ASSERT_HAS(json, "\"applied\":[\"src/run.sh\"]");
	ASSERT_HAS(json, "{\"path\":\"a.txt\",\"reason\":\"changed on the host meanwhile\"}");
	ASSERT_HAS(json, "{\"path\":\"gone.txt\",\"reason\":\"changed on the host meanwhile\"}");
	ASSERT_HAS(json, "{\"path\":\"new\",\"reason\":\"appeared on the host meanwhile\"}");
	ASSERT_HAS(json, "{\"path\":\"new/deep\"");
	free(json);
	ASSERT_STREQ(get("a.txt"), "mine\n");
	ASSERT_STREQ(get("new"), "mine\n");
	ASSERT_STREQ(get("gone.txt"), "still needed\n");
}

TEST(review_never_follows_links_that_the_host_grew)
{
	make_project();
	cleanup_fixture struct fixture f = fixture_plain();
	cleanup_review struct review *r = open_review(&f);
	char path[256], outside[] = "/tmp/cordon-outside-XXXXXX";
	ASSERT(mkdtemp(outside) != NULL);
	fixture_put(&f, "/workspace/src/x", "evil");
	snprintf(path, sizeof(path), "rm -rf %s/src; ln -s %s %s/src", dir, outside, dir);
	ASSERT_EQ(system(path), 0);
	free(apply_to(r, NULL, 0));
	ASSERT_EQ(rmdir(outside), 0); /* still empty */
}

TEST(intake_refuses_ways_out)
{
	make_project();
	cleanup_fixture struct fixture f = fixture_plain();
	struct intake_options o = { .host_path = dir, .ws = f.ws, .guest_path = "/workspace/p" };
	ASSERT_FAILS(intake_copy(&o, &e), CORDON_DENIED, "the link 'link' leads out of '");
	o.links_may_lead_out = true;
	ASSERT_EQ(intake_copy(&o, NULL), 0);
	ASSERT_STREQ(fixture_get(&f, "/workspace/p/src/b.c"), "int b;\n");
	ASSERT(fixture_get(&f, "/workspace/p/link")[0] == '!'); /* a link in the guest's world */
	o.max_bytes = 10;
	ASSERT_FAILS(intake_copy(&o, &e), CORDON_LIMIT, "'");
	o.max_bytes = 0;
	o.host_path = "/tmp/../etc";
	ASSERT_FAILS(intake_copy(&o, &e), CORDON_INVALID, "'/tmp/../etc' must not contain '..'");
	o.host_path = "/nowhere/at/all";
	ASSERT_FAILS(intake_copy(&o, &e), CORDON_NOT_FOUND, "open '/nowhere/at/all'");
	o.host_path = dir;
	o.guest_path = "/etc/x";
	ASSERT_FAILS(intake_copy(&o, &e), CORDON_DENIED, "EROFS: ");
	char file[256];
	snprintf(file, sizeof(file), "%s/a.txt", dir);
	o.host_path = file;
	o.guest_path = "/tmp/sub/renamed.txt";
	ASSERT_EQ(intake_copy(&o, NULL), 0);
	ASSERT_STREQ(fixture_get(&f, "/tmp/sub/renamed.txt"), "one\ntwo\nthree\n");
}

TEST(intake_into_a_plain_directory)
{
	make_project();
	char to[] = "/tmp/cordon-mount-XXXXXX", path[256];
	ASSERT(mkdtemp(to) != NULL);
	uid_t owner = getuid() ? getuid() : FIXTURE_UID;
	gid_t group = getuid() ? getgid() : FIXTURE_UID;
	ASSERT_EQ(chown(to, owner, group), 0);
	struct strlist leave_out = { 0 };
	ASSERT_EQ(strlist_add(&leave_out, ".git"), 0);
	struct intake_options o = { .host_path = dir,
				    .dir_fd = open(to, O_PATH | O_DIRECTORY),
				    .guest_path = "mnt",
				    .owner_uid = owner,
				    .owner_gid = group,
				    .leave_out = &leave_out,
				    .links_may_lead_out = true };
	struct cordon_error *e = NULL;
	if (intake_copy(&o, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	struct stat st;
	snprintf(path, sizeof(path), "%s/mnt/src/b.c", to);
	ASSERT_EQ(stat(path, &st), 0);
	ASSERT_EQ(st.st_uid, owner);
	snprintf(path, sizeof(path), "%s/mnt/.git", to);
	ASSERT_EQ(stat(path, &st), -1);
	close(o.dir_fd);
	strlist_done(&leave_out);
	snprintf(path, sizeof(path), "rm -rf %s", to);
	ASSERT_EQ(system(path), 0);
}

TEST(linediff_finds_the_least)
{
	static const struct {
		const char *old, *new, *want;
		unsigned added, removed;
	} cases[] = {
		{ "", "", "", 0, 0 },
		{ "a\n", "a\n", "", 0, 0 },
		{ "", "a\n", "@@ -0,0 +1,1 @@\n+a\n", 1, 0 },
		{ "a\nb\nc\n", "a\nc\n", "@@ -1,3 +1,2 @@\n a\n-b\n c\n", 0, 1 },
		{ "a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n", 1, 1 },
		{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n", "x\n2\n3\n4\n5\n6\n7\n8\n9\n10\ny\n",
		  "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -8,4 +8,4 @@\n 8\n 9\n 10\n-11\n+y\n", 2,
		  2 },
		{ "1\n2\n3\n4\n5\n6\n7\n8\n", "x\n2\n3\n4\n5\n6\n7\ny\n",
		  "@@ -1,8 +1,8 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n", 2, 2 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cleanup_buf struct buf b = { 0 };
		struct linediff d = { 0 };
		buf_init(&b, 4096);
		ASSERT_EQ(linediff_compare(cases[i].old, strlen(cases[i].old), cases[i].new,
					   strlen(cases[i].new), &d, &b),
			  0);
		ASSERT_STREQ(buf_text(&b), cases[i].want);
		ASSERT_EQ(d.added, cases[i].added);
		ASSERT_EQ(d.removed, cases[i].removed);
		ASSERT(d.is_exact);
	}
}

TEST(linediff_gives_up_on_what_is_all_different)
{
	cleanup_free char *a = malloc(40001), *b = malloc(40001);
	for (int i = 0; i < 5000; i++) {
		snprintf(a + i * 8, 9, "a%06d\n", i);
		snprintf(b + i * 8, 9, "b%06d\n", i);
	}
	struct linediff d = { 0 };
	ASSERT_EQ(linediff_compare(a, 40000, b, 40000, &d, NULL), 0);
	ASSERT(!d.is_exact);
	ASSERT_EQ(d.added, 5000);
}
