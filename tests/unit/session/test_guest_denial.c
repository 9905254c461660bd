#include "session/guest_denial.h"

#include "base/json.h"
#include "unit/files/fixture.h"

static struct policy policy;

static struct guest_denial_setting setting(struct workspace *ws)
{
	if (!policy.mount_count)
		ASSERT_EQ(policy_init_level(&policy, LEVEL_STANDARD, NULL), 0);
	return (struct guest_denial_setting){ .policy = &policy, .workspace = ws };
}

TEST(claims_of_python_and_node_are_taken_apart)
{
	static const struct {
		const char *message, *path;
		int os_errno;
	} table[] = {
		{ "[Errno 13] Permission denied: '/etc/shadow'", "/etc/shadow", EACCES },
		{ "[Errno 30] Read-only file system: '/usr/x'", "/usr/x", EROFS },
		{ "[Errno 13] Permission denied: \"/it's\"", "/it's", EACCES },
		{ "[Errno 18] Invalid cross-device link: '/a' -> '/b'", "/a", EXDEV },
		{ "[Errno 1] Operation not permitted", NULL, EPERM },
		{ "EACCES: permission denied, open '/etc/shadow'", "/etc/shadow", EACCES },
		{ "EROFS: read-only file system, mkdir '/usr/x'", "/usr/x", EROFS },
		{ "./a.so: failed to map segment from shared object", "./a.so", EACCES },
		{ "unable to load shared object '/tmp/a.so':\n  /tmp/a.so: failed to map segment "
		  "from shared object",
		  "/tmp/a.so", EACCES },
		{ "[Errno 13", NULL, EACCES },
		{ "[Errno 13]: '", NULL, EACCES },
		{ "[Errno 13]: ''", NULL, EACCES },
		{ "EACCES: , '", NULL, EACCES },
		{ "EACCES: ", NULL, EACCES },
		{ "Permission denied: '/x'", NULL, 0 },
		{ "", NULL, 0 },
		{ NULL, NULL, 0 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct guest_denial c;

		guest_denial_parse(&c, table[i].message);
		ASSERT_EQ(c.os_errno, table[i].os_errno);
		ASSERT_STREQ(c.path, table[i].path);
		guest_denial_done(&c);
	}
}

/* The text of its denials after one claim; "": it is none. */
static const char *judged(const struct guest_denial_setting *s, int os_errno, const char *path)
{
	static char text[1024];
	struct guest_denial c = { .os_errno = os_errno, .path = str_dup(path) };
	struct cordon_result *r = result_new();

	text[0] = '\0';
	bool refused = guest_denial_file(&c, s, r);
	cleanup_free char *denials = r->denials ? json_text(r->denials, NULL) : NULL;
	ASSERT_EQ(refused, denials != NULL);
	if (denials)
		snprintf(text, sizeof(text), "%s", denials);
	guest_denial_done(&c);
	cordon_result_free(r);
	return text;
}

TEST(what_the_policy_gives_was_not_refused_by_it)
{
	struct guest_denial_setting s = setting(NULL);
	static const char *const given[] = {
		"/home/user/x",  "/tmp/x", "/workspace/a/b", "x",          "./a/../b",
		"/usr/../tmp/x", "/tmp",   "//tmp//./x/",    "../../tmp/x"
	};
	static const char *const not_given[] = { "/etc/shadow", "/tmp/../etc/shadow",
						 "/home/other", "../../../../x",
						 "/",           "/tmpx" };

	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
		ASSERT_STREQ(judged(&s, EACCES, given[i]), "");
		ASSERT_STREQ(judged(&s, EROFS, given[i]), "");
	}
	for (size_t i = 0; i < sizeof(not_given) / sizeof(*not_given); i++)
		ASSERT_HAS(judged(&s, EACCES, not_given[i]), "\"claimed\":true");
	ASSERT_HAS(judged(&s, EACCES, "/tmp/../etc/shadow"), "\"target\":\"/etc/shadow\"");
	ASSERT_HAS(judged(&s, EACCES, "/etc/shadow"), "landlock");
	ASSERT_HAS(judged(&s, EROFS, "/usr/x"), "\"layer\":\"mount\"");
	ASSERT_STREQ(judged(&s, ENOENT, "/etc/shadow"), "");
	s.cwd = "/usr/lib";
	ASSERT_HAS(judged(&s, EROFS, "x"), "\"target\":\"/usr/lib/x\"");
	ASSERT_STREQ(judged(&s, EROFS, "../../tmp/x"), "");
}

/* What the lines of stderr give, one after the other. */
static const char *read_lines(const struct guest_denial_setting *s, const char *lines)
{
	static char text[2048];
	struct cordon_result *r = result_new();

	text[0] = '\0';
	ASSERT_EQ(guest_denial_lines(lines, s, r), json_array_size(r->denials) > 0);
	cleanup_free char *denials = r->denials ? json_text(r->denials, NULL) : NULL;
	if (denials)
		snprintf(text, sizeof(text), "%s", denials);
	cordon_result_free(r);
	return text;
}

TEST(what_programs_say_about_files_is_read)
{
	struct guest_denial_setting s = setting(NULL);
	static const char *const lines[] = {
		"cat: /etc/shadow: Permission denied\n",
		"/run/cordon/code: line 1: /etc/shadow: Permission denied\n",
		"touch: cannot touch '/etc/shadow': Read-only file system\n",
		"mkdir: \xe2\x80\x98/etc/shadow\xe2\x80\x99: Read-only file system\n",
		"Warning in file(con) :\n  cannot open file '/etc/shadow': Permission denied\n",
		"cat: /tmp/x: Permission denied\ncat: /etc/shadow: Permission denied\n",
	};
	static const char *const none[] = {
		"",
		": Permission denied\n",
		"cat: /tmp/x: Permission denied\n",
		"/etc/shadow: Permission denied",
		"\n': Permission denied\n",
		"\xe2\x80\x99: Permission denied\n",
		"x\xe2\x80\x99: Permission denied\n",
		"xy\xe2\x80\x99: Permission denied\n",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		ASSERT_HAS(read_lines(&s, lines[i]), "\"target\":\"/etc/shadow\"");
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		ASSERT_STREQ(read_lines(&s, none[i]), "");
	ASSERT_STREQ(read_lines(&s, NULL), "");
}

TEST(a_path_too_long_is_no_claim)
{
	struct guest_denial_setting s = setting(NULL);
	char *path = malloc(10000);

	memset(path, 'x', 9999);
	path[0] = '/';
	path[9999] = '\0';
	ASSERT_STREQ(judged(&s, EACCES, path), "");
	for (size_t i = 0; i < 9999; i += 2)
		path[i] = '/';
	ASSERT_STREQ(judged(&s, EACCES, path), "");
	free(path);
}

TEST(mounts_give_what_they_say)
{
	struct policy_mount mounts[] = {
		{ .host = (char[]){ "/srv" }, .guest = (char[]){ "/data" }, .mode = MOUNT_LIVE_RW },
		{ .host = (char[]){ "/srv" },
		  .guest = (char[]){ "/home/user/ro" },
		  .mode = MOUNT_LIVE_RO },
	};
	struct policy p = { .mounts = mounts, .mount_count = 2 };
	struct guest_denial_setting s = { .policy = &p };

	ASSERT_STREQ(judged(&s, EACCES, "/data/x"), "");
	ASSERT_HAS(judged(&s, EACCES, "/database"), "claimed");
	ASSERT_HAS(judged(&s, EROFS, "/home/user/ro/x"), "\"layer\":\"mount\"");
	ASSERT_HAS(judged(&s, EROFS, "/home/user/ro/x"), "give this mount the mode rw");
	ASSERT_STREQ(judged(&s, EROFS, "/home/user/r"), "");
}

TEST(the_workspace_is_looked_into)
{
	cleanup_fixture struct fixture f = fixture_plain();
	struct guest_denial_setting s = setting(f.ws);

	fixture_put(&f, "text", "x");
	fixture_put(&f, "program", "x");
	ASSERT_EQ(workspace_chmod(f.ws, "program", 0755, NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, "/etc/shadow", "/home/user/link", NULL), 0);
	ASSERT_STREQ(judged(&s, EACCES, "text"), "");
	ASSERT_STREQ(judged(&s, EACCES, "nothing"), "");
	ASSERT_STREQ(judged(&s, EACCES, "/home/user"), "");
	ASSERT_HAS(judged(&s, EACCES, "/home/user/program"), "\"operation\":\"execute\"");
	ASSERT_HAS(judged(&s, EACCES, "link"), "\"operation\":\"open\"");
}

TEST(commands_are_claimed_unless_the_policy_names_them)
{
	struct policy p = { 0 };
	struct cordon_result *r = result_new();

	ASSERT_EQ(strlist_add(&p.commands.names, "ls"), 0);
	guest_denial_command(NULL, &p, r);
	guest_denial_command("ls", &p, r);
	ASSERT(!r->denials);
	guest_denial_command("cat", &p, r);
	cleanup_free char *text = json_text(r->denials, NULL);
	ASSERT_HAS(text, "\"target\":\"cat\"");
	ASSERT_HAS(text, "\"claimed\":true");
	strlist_done(&p.commands.names);
	cordon_result_free(r);
}

TEST(missing_certificates_are_a_missing_network)
{
	static const char said[] = "Could not find a suitable TLS CA certificate bundle, invalid "
				   "path: /etc/ssl/certs/ca-certificates.crt";
	struct policy p = { 0 };
	struct cordon_result *r = result_new();

	guest_denial_network(NULL, &p, r);
	guest_denial_network("a certificate", &p, r);
	p.network.allow_count = 1;
	guest_denial_network(said, &p, r);
	ASSERT(!r->denials);
	p.network.allow_count = 0;
	guest_denial_network(said, &p, r);
	guest_denial_network(said, &p, r); /* told once */
	ASSERT_EQ(json_array_size(r->denials), 1);
	cleanup_free char *text = json_text(r->denials, NULL);
	ASSERT_HAS(text, "\"remedy\":\"network.allow");
	ASSERT_HAS(text, "\"claimed\":true");
	cordon_result_free(r);
}

/* Where sockets are refused, pid 1 has seen it. */
TEST(an_unreachable_network_is_told_where_sockets_are_allowed)
{
	static const char said[] = "[Errno 101] Network is unreachable";
	struct policy p = { 0 };
	struct cordon_result *r = result_new();

	guest_denial_network(said, &p, r);
	ASSERT(!r->denials);
	ASSERT_EQ(strlist_add(&p.expose, "8000"), 0);
	guest_denial_network("[Errno 111] Connection refused", &p, r);
	ASSERT(!r->denials);
	guest_denial_network(said, &p, r);
	ASSERT_EQ(json_array_size(r->denials), 1);
	strlist_done(&p.expose);
	cordon_result_free(r);
}

TEST(on_the_rung_without_namespaces_only_the_own_directory_is_given)
{
	struct guest_denial_setting s = setting(NULL);

	s.private_dir = "/tmp//cordon-abc";
	ASSERT_STREQ(judged(&s, EACCES, "/tmp/cordon-abc/w/user/x"), "");
	ASSERT_STREQ(judged(&s, EACCES, "w/x"), "");
	static const char *const others[] = { "/tmp/cordon-abd/w/user/x", "/tmp/cordon-abc",
					      "/tmp/cordon-abcd/x", "/tmp/cordon-abc/../x",
					      "/home/user/x" };
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		ASSERT(strstr(judged(&s, EACCES, others[i]), "\"landlock\"") != NULL);
}
