/* FS-*, SNP-* and LIM-17..19 for every guest in its own language: all guests see the same
 * workspace. */
#include <cordon/cordon.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/test.h"
#include "workroom.h"

/* Code with a %s for a path, and where it says so a text. */
struct words {
	const char *guest;
	const char *write;     /* path, text */
	const char *read;      /* path; prints */
	const char *variable;  /* name; prints */
	const char *go, *here; /* path; prints */
	const char *fill;      /* path: as many bytes as go, in a file of 2,000,000 */
	const char *crowd;     /* path: up to 100 empty files with this beginning */
	const char *link;      /* path, target */
};

static const struct words all[] = {
	{ "python", "open('%s', 'w').write('%s') and None", "print(open('%s').read(), end='')",
	  "import os\nprint(os.environ.get('%s', ''), end='')", "import os\nos.chdir('%s')",
	  "import os\nprint(os.getcwd(), end='')", "open('%s', 'wb').write(b'x' * 2000000)",
	  "for i in range(100): open(f'%s{i}', 'w').close()",
	  "import os\np, t = '%s', '%s'\nos.symlink(t, p)" },
	{ "r", "p <- '%s'; invisible(cat('%s', file = p))",
	  "cat(readLines('%s', warn = FALSE), sep = '\\n')", "cat(Sys.getenv('%s'))",
	  "invisible(setwd('%s'))", "cat(getwd())",
	  "f <- file('%s', 'wb'); writeBin(as.raw(rep(1, 2000000)), f); close(f)",
	  "for (i in 0:99) stopifnot(file.create(paste0('%s', i)))",
	  "p <- '%s'; t <- '%s'; invisible(file.symlink(t, p))" },
	{ "node", "require('fs').writeFileSync('%s', '%s'); undefined",
	  "process.stdout.write(require('fs').readFileSync('%s', 'utf8')); undefined",
	  "process.stdout.write(process.env['%s'] ?? ''); undefined", "process.chdir('%s')",
	  "process.stdout.write(process.cwd()); undefined",
	  "require('fs').writeFileSync('%s', Buffer.alloc(2000000)); undefined",
	  "for (let i = 0; i < 100; i++) require('fs').writeFileSync('%s' + i, '')",
	  "p = '%s'; t = '%s'; require('fs').symlinkSync(t, p)" },
	{ "sh", "p='%s'; printf %%s '%s' > \"$p\"", "cat '%s'", "n='%s'; printf %%s \"${!n}\"",
	  "cd '%s'", "printf %%s \"$PWD\"", "head -c 2000000 /dev/zero > '%s'",
	  "for i in {0..99}; do : > '%s'$i || exit 1; done", "p='%s'; ln -s '%s' \"$p\"" },
};

/* R ends its lines itself. */
static void expect(const struct words *w, const char *got, const char *want)
{
	size_t n = strcspn(got, "\n");

	if (strlen(want) != n || strncmp(got, want, n) != 0)
		test_fail(__FILE__, __LINE__, "%s: '%s', want '%s'", w->guest, got, want);
}

static void fails(const struct words *w, const char *got)
{
	if (got[0] != '!')
		test_fail(__FILE__, __LINE__, "%s: it worked: '%s'", w->guest, got);
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
#pragma GCC diagnostic ignored "-Wformat-security"

static uint64_t size_of(struct cordon_session *s, const char *path)
{
	struct cordon_file_info info = { 0 };

	return cordon_file_stat(s, path, &info, NULL) < 0 ? 0 : info.size;
}

static void files(const struct words *w)
{
	struct cordon_session *s = open_with(w->guest, NULL, NULL),
			      *other = open_with(w->guest, NULL, NULL);
	unsigned char bytes[256];
	char *text = NULL;
	size_t len = 0;

	/* FS-01, FS-02: any bytes, and the guest's file is the host's. */
	for (int i = 0; i < 256; i++)
		bytes[i] = (unsigned char)i;
	ASSERT_EQ(cordon_file_write(s, "/tmp/bytes", bytes, sizeof(bytes), NULL), 0);
	ASSERT_EQ(cordon_file_read(s, "/tmp/bytes", &text, &len, NULL), 0);
	ASSERT(len == sizeof(bytes) && memcmp(text, bytes, len) == 0);
	free(text);
	expect(w, runf(s, w->write, "/workspace/f", "of the guest"), "");
	ASSERT_EQ(size_of(s, "/workspace/f"), 12);
	ASSERT_EQ(cordon_file_write(s, "/workspace/g", "of the host", 11, NULL), 0);
	expect(w, runf(s, w->read, "/workspace/g"), "of the host");
	/* FS-04, FS-05, FS-06: the rest cannot be written, by no way. */
	fails(w, runf(s, w->write, "/etc/x", "evil"));
	fails(w, runf(s, w->write, "/newtop", "evil"));
	fails(w, runf(s, w->write, "/usr/bin/x", "evil"));
	fails(w, runf(s, w->write, "/tmp/../../../etc/passwd", "evil"));
	expect(w, runf(s, w->link, "/tmp/escape", "/usr/bin"), "");
	fails(w, runf(s, w->write, "/tmp/escape/backdoor", "evil"));
	/* FS-08: a loop of links is an error, not a hang. */
	expect(w, runf(s, w->link, "/tmp/a", "b"), "");
	expect(w, runf(s, w->link, "/tmp/b", "a"), "");
	fails(w, runf(s, w->read, "/tmp/a"));
	/* FS-12: devices. */
	expect(w, runf(s, w->read, "/dev/null"), "");
	expect(w, runf(s, w->write, "/dev/null", "x"), "");
	/* FS-18: another session has its own. */
	fails(w, runf(other, w->read, "/workspace/f"));
	/* FS-19: a write through a link changes its target. */
	expect(w, runf(s, w->link, "/workspace/l", "f"), "");
	expect(w, runf(s, w->write, "/workspace/l", "through"), "");
	expect(w, runf(s, w->read, "/workspace/f"), "through");
	struct cordon_file_info info;
	ASSERT_EQ(cordon_file_stat(s, "/workspace/l", &info, NULL), 0);
	ASSERT_EQ(info.type, CORDON_SYMLINK);
	cordon_session_close(s);
	cordon_session_close(other);
}

static void quotas(const struct words *w)
{
	static const char *const bytes[] = { "fs_bytes=1048576", NULL };
	static const char *const count[] = { "file_count=64", NULL };
	struct cordon_session *s = open_with(w->guest, bytes, NULL);
	struct cordon_error *e = NULL;
	static char block[900000];

	/* LIM-17, LIM-19: the quota is one for both sides, and restores count. */
	(void)runf(s, w->fill, "/tmp/big");
	ASSERT(size_of(s, "/tmp/big") < 2000000);
	ASSERT_EQ(cordon_file_remove(s, "/tmp/big", false, NULL), 0);
	ASSERT_EQ(cordon_file_write(s, "/tmp/fits", block, sizeof(block), NULL), 0);
	ASSERT_EQ(cordon_snapshot_create(s, "full", NULL), 0);
	ASSERT_EQ(cordon_file_remove(s, "/tmp/fits", false, NULL), 0);
	ASSERT_EQ(cordon_snapshot_restore(s, "full", NULL), 0);
	(void)runf(s, w->fill, "/tmp/big");
	ASSERT(size_of(s, "/tmp/big") < 300000);
	cordon_session_close(s);
	/* LIM-18 */
	s = open_with(w->guest, count, NULL);
	fails(w, runf(s, w->crowd, "/tmp/n"));
	ASSERT_EQ(cordon_file_write(s, "/tmp/new", "x", 1, &e), -CORDON_LIMIT);
	ASSERT_HAS(cordon_error_message(e), "ENOSPC: file count limit exceeded");
	cordon_error_free(e);
	expect(w, runf(s, w->write, "/tmp/n0", "overwriting does not count"), "");
	ASSERT_EQ(cordon_file_remove(s, "/tmp/n1", false, NULL), 0);
	expect(w, runf(s, w->write, "/tmp/new", "x"), "");
	cordon_session_close(s);
}

/* SNP-01..05: files, environment and working directory go along. */
static void snapshots(const struct words *w)
{
	struct cordon_session *s = open_with(w->guest, NULL, NULL), *child = NULL;
	int fd = memfd_create("export", MFD_CLOEXEC);
	char *report = NULL;

	ASSERT_EQ(cordon_file_mkdir(s, "/workspace/a b", true, NULL), 0);
	ASSERT_EQ(cordon_session_setenv(s, "WHICH", "original", NULL), 0);
	expect(w, runf(s, w->write, "/workspace/f", "v1"), "");
	(void)runf(s, w->go, "/workspace/a b");
	expect(w, runf(s, w->here), "/workspace/a b");
	ASSERT_EQ(cordon_snapshot_create(s, "one", NULL), 0);
	ASSERT_EQ(cordon_session_fork(s, &child, NULL), 0);
	ASSERT_EQ(cordon_files_export(s, fd, NULL), 0);
	ASSERT_EQ(cordon_session_setenv(s, "WHICH", "changed", NULL), 0);
	for (int twice = 0; twice < 2; twice++) {
		expect(w, runf(s, w->write, "/workspace/f", "v2"), "");
		expect(w, runf(s, w->write, "/workspace/new", "x"), "");
		(void)runf(s, w->go, "/tmp");
		expect(w, runf(s, w->here), "/tmp");
		ASSERT_EQ(cordon_snapshot_restore(s, "one", NULL), 0);
		expect(w, runf(s, w->read, "/workspace/f"), "v1");
		fails(w, runf(s, w->read, "/workspace/new"));
		expect(w, runf(s, w->variable, "WHICH"), "original");
		expect(w, runf(s, w->here), "/workspace/a b");
	}
	expect(w, runf(child, w->here), "/workspace/a b");
	expect(w, runf(child, w->variable, "WHICH"), "original");
	expect(w, runf(child, w->write, "/workspace/f", "child"), "");
	expect(w, runf(s, w->read, "/workspace/f"), "v1");
	expect(w, runf(s, w->write, "/workspace/late", "x"), "");
	fails(w, runf(child, w->read, "/workspace/late"));
	cordon_session_close(child);
	/* Into a fresh one; and a directory that is gone is no obstacle. */
	child = open_with(w->guest, NULL, NULL);
	ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
	ASSERT_EQ(cordon_files_import(child, fd, &report, NULL), 0);
	free(report);
	expect(w, runf(child, w->here), "/workspace/a b");
	expect(w, runf(child, w->variable, "WHICH"), "original");
	(void)runf(child, w->go, "/tmp");
	ASSERT_EQ(cordon_snapshot_restore(s, "one", NULL), 0);
	(void)runf(s, w->go, "/");
	ASSERT_EQ(cordon_snapshot_create(s, "root", NULL), 0);
	(void)runf(s, w->go, "/workspace");
	ASSERT_EQ(cordon_snapshot_restore(s, "root", NULL), 0);
	expect(w, runf(s, w->here), "/");
	cordon_session_close(child);
	cordon_session_close(s);
}

#define FOR_GUEST(n, name)                                                                         \
	TEST(guestfiles_##name##_files)                                                            \
	{                                                                                          \
		files(&all[n]);                                                                    \
	}                                                                                          \
	TEST(guestfiles_##name##_quotas)                                                           \
	{                                                                                          \
		quotas(&all[n]);                                                                   \
	}                                                                                          \
	TEST(guestfiles_##name##_pictures)                                                         \
	{                                                                                          \
		snapshots(&all[n]);                                                                \
	}
FOR_GUEST(0, python)
FOR_GUEST(1, r)
FOR_GUEST(2, node)
FOR_GUEST(3, sh)
