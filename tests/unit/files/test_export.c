#include "files/export.h"

#include <endian.h>
#include <sodium.h>
#include <sys/mman.h>
#include <zstd.h>

#include "files/blob.h"
#include "files/pack.h"
#include "files/tar.h"
#include "fixture.h"

static int new_file(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	ASSERT(fd >= 0);
	return fd;
}

static void export_to(struct fixture *f, const char *state, int fd)
{
	struct cordon_error *e = NULL;
	if (export_write(f->ws, state, fd, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
}

/* The report, to be freed. */
static char *import_from(struct fixture *f, int fd, char **ret_state)
{
	struct cordon_error *e = NULL;
	char *report = NULL;
	ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
	if (export_read(f->ws, fd, 0, &report, ret_state, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return report;
}

TEST(export_and_import_give_the_same)
{
	cleanup_fixture struct fixture f = fixture_plain(), g = fixture_plain();
	cleanup_free char *report = NULL, *state = NULL, *target = NULL;
	struct cordon_file_info a, b;
	char deep[600] = "d";
	for (int i = 0; i < 40; i++)
		strcat(deep, "/directory-nr");
	strcat(deep, "/file");
	fixture_put(&f, "a b\n\xc3\xa9", "text");
	fixture_put(&f, "/tmp/\xff\xfe", "bytes that are no UTF-8");
	fixture_put(&f, deep, "deep");
	fixture_put(&f, "/workspace/run.sh", "#!/bin/sh\n");
	fixture_put(&f, "closed/in", "x");
	ASSERT_EQ(workspace_chmod(f.ws, "/workspace/run.sh", 0755, NULL), 0);
	ASSERT_EQ(workspace_chmod(f.ws, "closed", 0500, NULL), 0);
	ASSERT_EQ(workspace_mkdir(f.ws, "/workspace/empty", false, NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, "/etc/\xc3\xa9\xff", "/tmp/link", NULL), 0);
	int fd = new_file();
	export_to(&f, "{\"env\":{\"A\":\"1\"},\"cwd\":\"/tmp\"}", fd);
	report = import_from(&g, fd, &state);

	ASSERT_STREQ(state, "{\"env\":{\"A\":\"1\"},\"cwd\":\"/tmp\"}");
	ASSERT_HAS(report, "\"skipped\":[]");
	ASSERT_HAS(report, "\"files\":5");
	ASSERT_STREQ(fixture_get(&g, "a b\n\xc3\xa9"), "text");
	ASSERT_STREQ(fixture_get(&g, "/tmp/\xff\xfe"), "bytes that are no UTF-8");
	ASSERT_STREQ(fixture_get(&g, deep), "deep");
	ASSERT_STREQ(fixture_get(&g, "closed/in"), "x");
	ASSERT_EQ(workspace_readlink(g.ws, "/tmp/link", &target, NULL), 0);
	ASSERT_STREQ(target, "/etc/\xc3\xa9\xff");
	ASSERT_EQ(workspace_stat(f.ws, "/workspace/run.sh", &a, NULL), 0);
	ASSERT_EQ(workspace_stat(g.ws, "/workspace/run.sh", &b, NULL), 0);
	ASSERT_EQ(b.mode, 0755);
	ASSERT_EQ(b.mtime_ns, a.mtime_ns);
	ASSERT_EQ(workspace_stat(g.ws, "closed", &b, NULL), 0);
	ASSERT_EQ(b.mode, 0500);
	ASSERT_EQ(workspace_stat(g.ws, "/workspace/empty", &b, NULL), 0);
	close(fd);
}

/* However many other files with several names lie between the two. */
TEST(every_hard_link_is_found)
{
	enum { OTHERS = 4200 };
	cleanup_fixture struct fixture f = fixture_open(64 << 20, 20000);
	needs(f.is_tmpfs, "tmpfs that a test may mount");
	static char contents[1 << 20];
	memset(contents, 'x', sizeof(contents));
	ASSERT_EQ(workspace_write(f.ws, "/tmp/a", contents, sizeof(contents), NULL), 0);
	int tmp = openat(f.root_fd, "tmp", O_PATH | O_DIRECTORY);
	for (int i = 0; i < OTHERS; i++) {
		char name[16], second[16];
		snprintf(name, sizeof(name), "m%04d", i);
		snprintf(second, sizeof(second), "n%04d", i);
		close(openat(tmp, name, O_CREAT | O_WRONLY, 0644));
		ASSERT_EQ(linkat(tmp, name, tmp, second, 0), 0);
	}
	int before = new_file(), after = new_file();
	ASSERT_EQ(pack_to_fd(f.ws, "/tmp", before, NULL, NULL), 0);
	ASSERT_EQ(linkat(tmp, "a", tmp, "z", 0), 0);
	ASSERT_EQ(pack_to_fd(f.ws, "/tmp", after, NULL, NULL), 0);
	ASSERT(lseek(after, 0, SEEK_END) - lseek(before, 0, SEEK_END) < (off_t)sizeof(contents));
	close(before);
	close(after);
	close(tmp);
}

TEST(export_import_merges_and_keeps_holes_and_hard_links)
{
	cleanup_fixture struct fixture f = fixture_open(1 << 20, 100),
				       g = fixture_open(1 << 20, 100);
	needs(f.is_tmpfs, "tmpfs that a test may mount");
	fixture_put(&f, "/tmp/one", "new");
	fixture_put(&f, "/tmp/sparse", "");
	int tmp = openat(f.root_fd, "tmp", O_PATH | O_DIRECTORY);
	ASSERT_EQ(linkat(tmp, "one", tmp, "two", 0), 0);
	int sparse = openat(tmp, "sparse", O_RDWR);
	ASSERT_EQ(ftruncate(sparse, 100 << 20), 0);
	ASSERT_EQ(pwrite(sparse, "end", 3, 50 << 20), 3);
	fixture_put(&g, "/tmp/one", "old");
	fixture_put(&g, "/tmp/kept", "kept");
	int fd = new_file();
	export_to(&f, NULL, fd);
	free(import_from(&g, fd, NULL));
	int to = openat(g.root_fd, "tmp", O_PATH | O_DIRECTORY);
	struct stat one, two, sp;
	ASSERT_EQ(fstatat(to, "one", &one, 0), 0);
	ASSERT_EQ(fstatat(to, "two", &two, 0), 0);
	ASSERT_EQ(one.st_ino, two.st_ino);
	ASSERT_EQ(fstatat(to, "sparse", &sp, 0), 0);
	ASSERT_EQ(sp.st_size, 100 << 20);
	ASSERT(sp.st_blocks <= 16);
	ASSERT_STREQ(fixture_get(&g, "/tmp/two"), "new");
	ASSERT_STREQ(fixture_get(&g, "/tmp/kept"), "kept");
	char end[4] = "";
	size_t len;
	ASSERT_EQ(workspace_read_at(g.ws, "/tmp/sparse", 50 << 20, end, 3, &len, NULL), 0);
	ASSERT_STREQ(end, "end");
}

TEST(export_leaves_mounts_out)
{
	cleanup_fixture struct fixture f = fixture_plain(), g = fixture_plain();
	fixture_put(&f, "/workspace/data/secret", "x");
	fixture_put(&f, "/workspace/database", "y");
	ASSERT_EQ(workspace_add_mount(f.ws, "/workspace/data", true, NULL), 0);
	int fd = new_file();
	export_to(&f, NULL, fd);
	free(import_from(&g, fd, NULL));
	ASSERT(fixture_get(&g, "/workspace/data/secret")[0] == '!');
	ASSERT_STREQ(fixture_get(&g, "/workspace/database"), "y");
}

TEST(export_goes_through_a_pipe)
{
	cleanup_fixture struct fixture f = fixture_plain(), g = fixture_plain();
	int p[2];
	fixture_put(&f, "a", "through a pipe");
	ASSERT_EQ(pipe(p), 0);
	ASSERT_EQ(export_write(f.ws, NULL, p[1], NULL), 0);
	close(p[1]);
	ASSERT_EQ(export_read(g.ws, p[0], 0, NULL, NULL, NULL), 0);
	ASSERT_STREQ(fixture_get(&g, "a"), "through a pipe");
}

TEST(export_of_what_compresses_well_is_no_bomb)
{
	cleanup_fixture struct fixture f = fixture_plain(), g = fixture_plain();
	cleanup_free char *same = malloc(48 << 20);
	memset(same, 'a', 48 << 20);
	ASSERT_EQ(workspace_write(f.ws, "same", same, 48 << 20, NULL), 0);
	int fd = new_file();
	export_to(&f, NULL, fd);
	struct stat st;
	ASSERT_EQ(fstat(fd, &st), 0);
	ASSERT(st.st_size < 100 * 1024);
	free(import_from(&g, fd, NULL));
	struct cordon_file_info info;
	ASSERT_EQ(workspace_stat(g.ws, "same", &info, NULL), 0);
	ASSERT_EQ(info.size, 48 << 20);
}

static void fails(struct fixture *f, int fd, enum cordon_code code, const char *message)
{
	ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
	ASSERT_FAILS(export_read(f->ws, fd, 0, NULL, NULL, &e), code, message);
	ASSERT(fixture_get(f, "a")[0] == '!'); /* nothing came in */
}

TEST(export_damaged_is_refused_as_a_whole)
{
	cleanup_fixture struct fixture f = fixture_plain(), g = fixture_plain();
	fixture_put(&f, "a", "content");
	int fd = new_file();
	export_to(&f, NULL, fd);
	struct stat st;
	ASSERT_EQ(fstat(fd, &st), 0);
	for (off_t at = 0; at < st.st_size; at++) { /* every single byte */
		char c;
		ASSERT_EQ(pread(fd, &c, 1, at), 1);
		c ^= 0x10;
		ASSERT_EQ(pwrite(fd, &c, 1, at), 1);
		ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
		ASSERT(export_read(g.ws, fd, 0, NULL, NULL, NULL) < 0);
		if (at > 64 || (at >= 32 && at < 64))
			fails(&g, fd, CORDON_INVALID,
			      "State blob checksum mismatch: data may be corrupted");
		c ^= 0x10;
		ASSERT_EQ(pwrite(fd, &c, 1, at), 1);
	}
	ASSERT_EQ(pwrite(fd, "WSND", 4, 0), 4);
	fails(&g, fd, CORDON_INVALID, "Invalid state blob: bad magic bytes");
	ASSERT_EQ(pwrite(fd, "CORDONWS\x63", 9, 0), 9);
	fails(&g, fd, CORDON_UNSUPPORTED, "Unsupported state version: 99");
	ASSERT_EQ(pwrite(fd, "CORDONWS\x01", 9, 0), 9);
	for (off_t len = st.st_size - 1; len >= 0; len -= 7) {
		ASSERT_EQ(ftruncate(fd, len), 0);
		fails(&g, fd, CORDON_INVALID,
		      len < BLOB_HEADER_SIZE ? "Invalid state blob: too short"
					     : "Invalid state blob: truncated");
	}
}

/* A blob whose checksum is right and whose content is not what we would write. */
struct forge {
	int fd;
	struct blob_writer *w;
	struct tar t;
};

static int forge_put(void *arg, const void *bytes, size_t len)
{
	return blob_writer_put(arg, bytes, len);
}

static struct forge forge_open(void)
{
	struct forge g = { .fd = new_file() };
	ASSERT_EQ(blob_writer_open(g.fd, &g.w, NULL), 0);
	g.t = (struct tar){ .write = forge_put, .arg = g.w };
	return g;
}

static void forge_add(struct forge *g, const char *name, uint32_t mode, const char *link,
		      const char *text)
{
	struct tar_entry e = { .name = name, .mode = mode, .link = link, .size = strlen(text) };
	ASSERT_EQ(tar_begin(&g->t, &e), 0);
	ASSERT_EQ(tar_data(&g->t, text, strlen(text)), 0);
	ASSERT_EQ(tar_end(&g->t), 0);
}

static void forge_device(struct forge *g, const char *name)
{
	char h[512] = "";
	snprintf(h, sizeof(h), "%s", name);
	memcpy(h + 100, "0000666\0000001750\0000001750\00000000000000\00000000000000\0        3",
	       57);
	memcpy(h + 257, "ustar\00000", 8);
	memcpy(h + 329, "0000001\0000000003\0", 16);
	unsigned sum = 0;
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	h[155] = ' ';
	ASSERT_EQ(forge_put(g->w, h, sizeof(h)), 0);
}

static int forge_close(struct forge *g)
{
	ASSERT_EQ(tar_finish(&g->t), 0);
	ASSERT_EQ(blob_writer_finish(g->w, NULL), 0);
	g->w = blob_writer_free(g->w);
	ASSERT_EQ(lseek(g->fd, 0, SEEK_SET), 0);
	return g->fd;
}

TEST(export_forged_entries_are_skipped_and_named)
{
	cleanup_fixture struct fixture f = fixture_plain();
	struct forge g = forge_open();
	enum { FILE_MODE = S_IFREG | 0644 };
	fixture_put(&f, "here", "before");
	forge_add(&g, "home/user/good", FILE_MODE, NULL, "good");
	forge_add(&g, "etc/cordon/policy", FILE_MODE, NULL, "evil");
	forge_add(&g, "tmp/../etc/x", FILE_MODE, NULL, "evil");
	forge_add(&g, "/tmp/absolute", FILE_MODE, NULL, "evil");
	forge_add(&g, "home/other/x", FILE_MODE, NULL, "evil");
	forge_add(&g, "tmp/out", S_IFLNK | 0777, "/etc", "");
	forge_add(&g, "tmp/out/x", FILE_MODE, NULL, "evil");
	forge_add(&g, "tmp/passwd", FILE_MODE, "../../etc/passwd", "");
	forge_add(&g, "tmp/shadow", FILE_MODE, "/etc/shadow", "");
	forge_add(&g, "tmp/hard", FILE_MODE, "home/user/here", "");
	forge_add(&g, "tmp/hardlink-to-link", FILE_MODE, "tmp/out", "");
	forge_add(&g, "home/user/good", FILE_MODE, NULL, "twice");
	forge_add(&g, "./home//user/./good/", S_IFDIR | 0755, NULL, "");
	forge_add(&g, "home/user/good/below", FILE_MODE, NULL, "evil");
	forge_add(&g, "tmp", S_IFLNK | 0777, "/etc", "");
	forge_device(&g, "tmp/device");
	forge_add(&g, "tmp/setuid", S_IFREG | 06755, NULL, "x");
	forge_add(&g, "tmp/last", FILE_MODE, NULL, "last");
	cleanup_free char *report = import_from(&f, forge_close(&g), NULL);

	static const char *const lines[] = {
		"\"path\":\"etc/cordon/policy\",\"reason\":\"outside the workspace\"",
		"\"path\":\"tmp/../etc/x\",\"reason\":\"leads upwards (..)\"",
		"\"path\":\"/tmp/absolute\",\"reason\":\"absolute path\"",
		"\"path\":\"home/other/x\",\"reason\":\"outside the workspace\"",
		"\"path\":\"tmp/out/x\",\"reason\":\"through a link or a file\"",
		"\"path\":\"tmp/passwd\",\"reason\":\"hard link to what is not a file of this "
		"archive\"",
		"\"path\":\"tmp/shadow\",\"reason\":\"hard link to",
		"\"path\":\"tmp/hard\",\"reason\":\"hard link to",
		"\"path\":\"tmp/hardlink-to-link\",\"reason\":\"hard link to",
		"\"path\":\"home/user/good\",\"reason\":\"duplicate\"",
		"good/\",\"reason\":\"duplicate\"",
		"\"path\":\"home/user/good/below\",\"reason\":\"through a link or a file\"",
		"\"path\":\"tmp\",\"reason\":\"in place of a directory of the layout\"",
		"\"path\":\"tmp/device\",\"reason\":\"device\"",
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		ASSERT_HAS(report, lines[i]);
	ASSERT_HAS(report,
		   "\"files\":3,\"directories\":0,\"links\":1,\"bytes\":9,\"skipped_count\":14");
	ASSERT_STREQ(fixture_get(&f, "good"), "good");
	ASSERT_STREQ(fixture_get(&f, "here"), "before");
	ASSERT_STREQ(fixture_get(&f, "/tmp/last"), "last");
	struct cordon_file_info info;
	ASSERT_EQ(workspace_stat(f.ws, "/tmp/setuid", &info, NULL), 0);
	ASSERT_EQ(info.mode, 0755);
	ASSERT_EQ(access("/etc/x", F_OK), -1);
}

TEST(export_too_much_is_refused_before_anything_changes)
{
	cleanup_fixture struct fixture f = fixture_plain(), g = fixture_open(1 << 20, 100);
	static char block[2 << 20];
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(i * 2654435761U >> 13);
	fixture_put(&f, "a", "first");
	ASSERT_EQ(workspace_write(f.ws, "b", block, sizeof(block), NULL), 0);
	int fd = new_file();
	export_to(&f, NULL, fd);
	fails(&g, fd, CORDON_LIMIT, "'home/user/b' is larger than 1048576 bytes");
}

static void seal(int fd, uint64_t payload, uint64_t content)
{
	unsigned char head[64] = BLOB_MAGIC, sum[32];
	crypto_hash_sha256_state s;
	uint32_t numbers[2] = { htole32(1), htole32(64) };
	uint64_t sizes[2] = { htole64(payload), htole64(content) };
	memcpy(head + 8, numbers, 8);
	memcpy(head + 16, sizes, 16);
	cleanup_free unsigned char *bytes = malloc(payload);
	ASSERT_EQ(pread(fd, bytes, payload, 64), (ssize_t)payload);
	crypto_hash_sha256(sum, bytes, payload);
	crypto_hash_sha256_init(&s);
	crypto_hash_sha256_update(&s, head, 32);
	crypto_hash_sha256_update(&s, sum, 32);
	crypto_hash_sha256_final(&s, head + 32);
	ASSERT_EQ(pwrite(fd, head, 64, 0), 64);
}

TEST(export_bombs_are_refused)
{
	cleanup_fixture struct fixture f = fixture_plain();
	enum { BIG = 32 << 20 };
	cleanup_free char *zeros = calloc(1, BIG), *packed = malloc(BIG);
	size_t n = ZSTD_compress(packed, BIG, zeros, BIG, 1);
	int fd = new_file();
	ASSERT_EQ(pwrite(fd, packed, n, 64), (ssize_t)n);
	seal(fd, n, BIG); /* tells the truth about what it is */
	fails(&f, fd, CORDON_LIMIT, "State blob expands like a bomb");
	seal(fd, n, 1024); /* lies */
	fails(&f, fd, CORDON_LIMIT, "State blob holds more than the 1024 bytes it announces");
	seal(fd, n, (uint64_t)1 << 50);
	fails(&f, fd, CORDON_LIMIT, "State blob holds 1125899906842624 bytes, more than");
}

TEST(export_state_must_be_json)
{
	cleanup_fixture struct fixture f = fixture_plain();
	struct forge g = forge_open();
	forge_add(&g, ".cordon/state.json", S_IFREG | 0600, NULL, "{not json");
	forge_add(&g, "home/user/a", S_IFREG | 0600, NULL, "x");
	fails(&f, forge_close(&g), CORDON_INVALID, "malformed archive: its state");
}

TEST(export_tar_streams_of_directories)
{
	cleanup_fixture struct fixture f = fixture_plain(), g = fixture_plain();
	cleanup_free char *report = NULL;
	fixture_put(&f, "/workspace/src/a", "A");
	fixture_put(&f, "/workspace/src/b/c", "C");
	ASSERT_EQ(workspace_symlink(f.ws, "a", "/workspace/src/l", NULL), 0);
	int fd = new_file();
	ASSERT_EQ(pack_to_fd(f.ws, "/workspace/src", fd, NULL, NULL), 0);
	ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
	ASSERT_EQ(unpack_from_fd(g.ws, "/tmp/new/dir", fd, &report, NULL), 0);
	ASSERT_STREQ(fixture_get(&g, "/tmp/new/dir/b/c"), "C");
	ASSERT_STREQ(fixture_get(&g, "/tmp/new/dir/l"), "A");
	ASSERT_HAS(report, "\"skipped\":[]");
	ASSERT_EQ(ftruncate(fd, 0), 0);
	ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
	ASSERT_EQ(pack_to_fd(f.ws, "/workspace/src/a", fd, NULL, NULL), 0); /* one file */
	ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
	ASSERT_EQ(unpack_from_fd(g.ws, "/tmp/one", fd, NULL, NULL), 0);
	ASSERT_STREQ(fixture_get(&g, "/tmp/one/a"), "A");
	ASSERT_FAILS(pack_to_fd(f.ws, "/nowhere", fd, NULL, &e), CORDON_NOT_FOUND, "ENOENT: ");
	ASSERT_FAILS(unpack_from_fd(g.ws, "/etc", fd, NULL, &e), CORDON_DENIED, "EROFS: ");
	ASSERT_EQ(ftruncate(fd, 700), 0);
	ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
	ASSERT_EQ(unpack_from_fd(g.ws, "/tmp/cut", fd, NULL, NULL), -CORDON_INVALID);
}

static int show(const struct unpack_entry *e, void *arg)
{
	char *text = arg, data[64];
	ssize_t n = unpack_entry_data(e, data, sizeof(data) - 1);
	data[n > 0 ? n : 0] = '\0';
	strcat(strcat(strcat(strcat(text, e->name), "="), e->link ? e->link : data), ";");
	return 0;
}

TEST(export_can_be_looked_into)
{
	cleanup_fixture struct fixture f = fixture_plain();
	char text[512] = "";
	fixture_put(&f, "a", "A");
	ASSERT_EQ(workspace_symlink(f.ws, "/x", "/tmp/l", NULL), 0);
	int fd = new_file();
	export_to(&f, "{}", fd);
	ASSERT_EQ(export_each(fd, show, text, NULL), 0);
	ASSERT_STREQ(text, "/home/user=;/tmp=;/workspace=;/home/user/a=A;/tmp/l=/x;");
}
