/* files/fixture.h - a workspace to test with: a tmpfs with a quota if the machine lets us mount
 * one, as root under a uid of its own; otherwise an ordinary directory. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/workspace.h"
#include "harness/test.h"

enum { FIXTURE_UID = 65533 };

struct fixture {
	struct workspace *ws;
	int root_fd;
	bool is_tmpfs;
};

/* What a new user namespace gives, but an ordinary user does not have: ways around mode bits. */
__attribute__((unused)) static void fixture_drop_overrides(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];
	ASSERT_EQ(syscall(SYS_capget, &head, caps), 0);
	caps[0].effective &=
		~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH | 1U << CAP_FOWNER);
	ASSERT_EQ(syscall(SYS_capset, &head, caps), 0);
}

__attribute__((unused)) static bool fixture_enter_namespace(void)
{
	static bool is_done, is_good;
	if (is_done)
		return is_good;
	is_done = true;
	uid_t uid = getuid();
	gid_t gid = getgid();
	if (uid == 0) {
		is_good = unshare(CLONE_NEWNS) == 0;
	} else if (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) {
		/* Not to uid 0 inside: a host that is root is another test. */
		FILE *f = fopen("/proc/self/setgroups", "w");
		if (f) {
			fputs("deny", f);
			fclose(f);
		}
		f = fopen("/proc/self/uid_map", "w");
		if (f) {
			fprintf(f, "%u %u 1", uid, uid);
			is_good = fclose(f) == 0;
		}
		f = fopen("/proc/self/gid_map", "w");
		if (f) {
			fprintf(f, "%u %u 1", gid, gid);
			fclose(f);
		}
		fixture_drop_overrides();
	}
	is_good = is_good && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	return is_good;
}

__attribute__((unused)) static struct fixture fixture_open(unsigned long bytes, unsigned long files)
{
	struct fixture f = { .root_fd = -1 };
	uid_t owner = getuid() ? getuid() : FIXTURE_UID;
	char dir[] = "/tmp/cordon-test-XXXXXX", opts[128];
	ASSERT(mkdtemp(dir) != NULL);
	snprintf(opts, sizeof(opts), "size=%lu,nr_inodes=%lu,mode=0755,uid=%u,gid=%u", bytes, files,
		 owner, getuid() ? getgid() : owner);
	f.is_tmpfs = fixture_enter_namespace() && mount("tmpfs", dir, "tmpfs", 0, opts) == 0;
	if (!f.is_tmpfs && getuid() == 0)
		ASSERT_EQ(chown(dir, owner, owner), 0);
	f.root_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ASSERT(f.root_fd >= 0);
	if (f.is_tmpfs) {
		ASSERT_EQ(umount2(dir, MNT_DETACH), 0);
		ASSERT_EQ(rmdir(dir), 0);
	}
	struct cordon_error *e = NULL;
	struct workspace_options o = { .root_fd = f.root_fd,
				       .owner_uid = owner,
				       .owner_gid = getuid() ? getgid() : owner,
				       .max_bytes = bytes,
				       .max_files = files };
	if (workspace_open(&o, &f.ws, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return f;
}

__attribute__((unused)) static void fixture_done(struct fixture *f)
{
	f->ws = workspace_close(f->ws);
	close(f->root_fd);
}
#define cleanup_fixture CLEANUP(fixture_done)

__attribute__((unused)) static struct fixture fixture_plain(void)
{
	return fixture_open(64 << 20, 4096);
}

__attribute__((unused)) static void fixture_put(struct fixture *f, const char *path,
						const char *text)
{
	struct cordon_error *e = NULL;
	if (workspace_write(f->ws, path, text, strlen(text), &e) < 0)
		test_fail(__FILE__, __LINE__, "write %s: %s", path, cordon_error_message(e));
}

/* The content as a string that lives until the next call, or "!" and the error. */
__attribute__((unused)) static const char *fixture_get(struct fixture *f, const char *path)
{
	static char *text;
	static char failure[512];
	struct cordon_error *e = NULL;
	size_t len;
	free(text);
	text = NULL;
	if (workspace_read(f->ws, path, 0, &text, &len, &e) < 0) {
		snprintf(failure, sizeof(failure), "!%s", cordon_error_message(e));
		cordon_error_free(e);
		return failure;
	}
	return text;
}

/* The code must be this, and the message begin so. */
#define ASSERT_FAILS(call, want_code, starts)                                                      \
	do {                                                                                       \
		struct cordon_error *e = NULL;                                                     \
		ASSERT_EQ(call, -(int)(want_code));                                                \
		if (strncmp(cordon_error_message(e), starts, strlen(starts)) != 0)                 \
			test_fail(__FILE__, __LINE__, "message is '%s', want '%s...'",             \
				  cordon_error_message(e), starts);                                \
		cordon_error_free(e);                                                              \
	} while (0)
