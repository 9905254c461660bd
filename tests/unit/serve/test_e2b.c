/* Envelopes, multipart bodies, gzip and paths of the E2B API. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "harness/test.h"
#include "serve/e2b/connect_rpc.h"
#include "serve/e2b/e2b_entry.h"
#include "serve/e2b/gzip.h"
#include "serve/e2b/multipart.h"

static int next(const char *bytes, size_t len, size_t *ret_len)
{
	const char *text = NULL;

	return connect_rpc_next(bytes, len, &text, ret_len, NULL);
}

TEST(an_envelope_is_read_and_written)
{
	size_t len = 0, n = 0;
	cleanup_free char *frame = connect_rpc_frame(0, "{}", 2, &len);

	ASSERT(frame);
	ASSERT_EQ(len, 7);
	ASSERT_EQ(next(frame, len, &n), 0);
	ASSERT_EQ(n, 2);
}

TEST(an_envelope_that_is_cut_or_lies_is_refused)
{
	size_t n = 0;

	for (size_t i = 0; i < 7; i++)
		ASSERT_EQ(next("\0\0\0\0\2{}", i, &n), -CORDON_INVALID);
	ASSERT_EQ(next("\0\xff\xff\xff\xff{}", 7, &n), -CORDON_INVALID);
	ASSERT_EQ(next("\2\0\0\0\2{}", 7, &n), -CORDON_INVALID);
	ASSERT_EQ(next("\1\0\0\0\2{}", 7, &n), -CORDON_UNSUPPORTED);
}

TEST(paths_begin_at_home_and_never_above_the_root)
{
	static const struct {
		const char *given, *want;
	} table[] = {
		{ "", "/home/user" },
		{ "a/b", "/home/user/a/b" },
		{ "./a//b/", "/home/user/a/b" },
		{ "~", "/home/user" },
		{ "~/a", "/home/user/a" },
		{ "~a", "/home/user/~a" },
		{ "..", "/home" },
		{ "../../../..", "/" },
		{ "/", "/" },
		{ "/../a", "/a" },
		{ "/tmp/../tmp/x", "/tmp/x" },
		{ "...", "/home/user/..." },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		cleanup_free char *path = e2b_entry_path(table[i].given);

		ASSERT_STREQ(path, table[i].want);
	}
	char *long_one = str_printf("%09000d", 1);
	ASSERT(!e2b_entry_path(long_one));
	free(long_one);
}

#define PART "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22b\"\r\n\r\n"

TEST(parts_of_a_form)
{
	static const char body[] = PART "one\r\n" PART "\r\n--B--\r\n";
	struct multipart m;

	ASSERT_EQ(
		multipart_init(&m, "multipart/form-data; boundary=B", body, sizeof(body) - 1, NULL),
		0);
	for (int i = 0; i < 2; i++) {
		cleanup_multipart_part struct multipart_part p = { 0 };

		ASSERT_EQ(multipart_next(&m, &p, NULL), 1);
		ASSERT_STREQ(p.name, "file");
		ASSERT_STREQ(p.filename, "a\"b");
		ASSERT_EQ(p.len, i == 0 ? 3 : 0);
	}
	struct multipart_part last = { 0 };
	ASSERT_EQ(multipart_next(&m, &last, NULL), 0);
}

TEST(every_cut_form_is_refused)
{
	static const char body[] = PART "one\r\n--B--";

	for (size_t len = 0; len < sizeof(body) - 1; len++) {
		cleanup_multipart_part struct multipart_part p = { 0 }, q = { 0 };
		struct multipart m;
		int r = multipart_init(&m, "multipart/form-data; boundary=\"B\"", body, len, NULL);

		if (r == 0)
			r = multipart_next(&m, &p, NULL);
		if (r == 1)
			r = multipart_next(&m, &q, NULL);
		ASSERT_EQ(r, -CORDON_INVALID);
	}
}

TEST(gzip_there_and_back_and_no_bombs)
{
	cleanup_buf struct buf packed = { 0 };
	static const char zeros[1 << 20];
	cleanup_close int fd = file_scratch();
	uint64_t n = 0;

	buf_init(&packed, 1 << 20);
	ASSERT_EQ(gzip_pack(zeros, sizeof(zeros), &packed, NULL), 0);
	ASSERT(packed.len < 10000);
	ASSERT_EQ(gzip_unpack(packed.data, packed.len, sizeof(zeros), fd, &n, NULL), 0);
	ASSERT_EQ(n, sizeof(zeros));
	ASSERT_EQ(lseek(fd, 0, SEEK_END), (off_t)sizeof(zeros));
	ASSERT_EQ(gzip_unpack(packed.data, packed.len, sizeof(zeros) - 1, fd, &n, NULL),
		  -CORDON_LIMIT);
	for (size_t len = 0; len < packed.len; len += 97)
		ASSERT_EQ(gzip_unpack(packed.data, len, sizeof(zeros), fd, &n, NULL),
			  -CORDON_INVALID);
}
