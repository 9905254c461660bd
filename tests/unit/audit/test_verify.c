/* unit/audit/test_verify.c - every way of tampering with an audit file is detected, with its
 * line. */
#include <fcntl.h>

#include "audit/audit.h"
#include "audit/chain.h"
#include "base/buf.h"
#include "base/file.h"
#include "cordon/audit.h"
#include "harness/test.h"

enum { LINES = 5 };

static char path[] = "/tmp/cordon-verify-XXXXXX";

static void remove_path(void)
{
	(void)unlink(path);
}

/* A good log of five lines; lines[i] points at them, ended by their newline. */
static char *good_log(char *lines[LINES + 1])
{
	int fd = mkstemp(path);
	ASSERT(fd >= 0);
	close(fd);
	atexit(remove_path);
	struct audit *a = NULL;
	ASSERT_EQ(audit_open(&(struct audit_options){ .path = path }, &a, NULL), 0);
	for (int i = 0; i < LINES; i++)
		ASSERT_EQ(audit_write(a, "e", "s", "text", "abc", NULL), 0);
	audit_close(a);
	struct buf b = { 0 };
	ASSERT_EQ(file_load(path, 1 << 20, &b, NULL), 0);
	char *at = b.data;
	for (int i = 0; i < LINES; i++) {
		lines[i] = at;
		at = strchr(at, '\n') + 1;
	}
	lines[LINES] = at;
	return b.data;
}

static struct cordon_audit_report check(const char *text, size_t len)
{
	struct cordon_audit_report r;
	ASSERT_EQ(file_save(path, 0600, text, len, NULL), 0);
	ASSERT_EQ(cordon_audit_verify(path, NULL, &r, NULL), 0);
	ASSERT_EQ(r.is_whole, r.broken_line == 0);
	ASSERT_EQ(r.is_whole, r.reason == NULL);
	return r;
}

TEST(a_good_log_is_whole)
{
	char *lines[LINES + 1], *text = good_log(lines);
	struct cordon_audit_report r = check(text, strlen(text));
	ASSERT(r.is_whole && !r.is_continued);
	ASSERT_EQ(r.lines, LINES);
	ASSERT_STREQ(r.first_prev, chain_genesis);
	ASSERT(strncmp(r.head, lines[LINES] - 3 - CHAIN_HEX, CHAIN_HEX) == 0);
	free(text);
}

TEST(an_empty_log_is_whole)
{
	char *lines[LINES + 1], *text = good_log(lines);
	struct cordon_audit_report r = check("", 0);
	ASSERT(r.is_whole);
	ASSERT_EQ(r.lines, 0);
	ASSERT_STREQ(r.head, chain_genesis);
	free(text);
}

/* Whatever single byte is changed, the line is named. */
TEST(every_changed_byte_is_found)
{
	char *lines[LINES + 1], *text = good_log(lines);
	size_t len = strlen(text);
	for (int line = 0; line < LINES; line++) {
		for (char *p = lines[line]; *p != '\n'; p++) {
			*p ^= 1;
			struct cordon_audit_report r = check(text, len);
			*p ^= 1;
			if (r.broken_line != (uint64_t)line + 1)
				test_fail(__FILE__, __LINE__, "byte %td of line %d: broken is %llu",
					  p - lines[line], line + 1,
					  (unsigned long long)r.broken_line);
			ASSERT_EQ(r.lines, line);
		}
	}
	free(text);
}

TEST(a_missing_line_is_found)
{
	for (int line = 0; line < LINES - 1; line++) {
		strcpy(path, "/tmp/cordon-verify-XXXXXX");
		char *lines[LINES + 1], *text = good_log(lines);
		memmove(lines[line], lines[line + 1], strlen(lines[line + 1]) + 1);
		struct cordon_audit_report r = check(text, strlen(text));
		ASSERT_EQ(r.broken_line, line + 1);
		free(text);
		remove_path();
	}
}

TEST(a_doubled_line_and_an_inserted_line_are_found)
{
	char *lines[LINES + 1], *text = good_log(lines);
	cleanup_buf struct buf b;
	buf_init(&b, 1 << 20);
	ASSERT_EQ(buf_add(&b, text, (size_t)(lines[2] - text)), 0);
	ASSERT_EQ(buf_add_str(&b, lines[1]), 0);
	ASSERT_EQ(check(b.data, b.len).broken_line, 3);
	buf_clear(&b);
	ASSERT_EQ(buf_add(&b, text, (size_t)(lines[2] - text)), 0);
	ASSERT_EQ(buf_add_str(&b, "{\"event\":\"forged\"}\n"), 0);
	ASSERT_EQ(buf_add_str(&b, lines[2]), 0);
	ASSERT_EQ(check(b.data, b.len).broken_line, 3);
	/* An invented torn line, without the note that a real one has. */
	buf_clear(&b);
	ASSERT_EQ(buf_add_str(&b, text), 0);
	ASSERT_EQ(buf_add_str(&b, "garbage\n"), 0);
	ASSERT_EQ(check(b.data, b.len).broken_line, LINES + 1);
	free(text);
}

TEST(every_cut_is_a_torn_line)
{
	char *lines[LINES + 1], *text = good_log(lines);
	size_t from = (size_t)(lines[3] - text);
	for (size_t len = from; len < strlen(text); len += 7) {
		struct cordon_audit_report r = check(text, len);
		uint64_t whole = 0;
		size_t last = 0;
		for (size_t i = 0; i < len; i++)
			if (text[i] == '\n') {
				whole++;
				last = i + 1;
			}
		ASSERT(r.is_whole);
		ASSERT_EQ(r.lines, whole);
		ASSERT_EQ(r.torn_bytes, len - last);
	}
	free(text);
}

TEST(what_cannot_be_read_is_an_error)
{
	struct cordon_audit_report r;
	ASSERT_EQ(cordon_audit_verify("/nonexistent/x", NULL, &r, NULL), -CORDON_NOT_FOUND);
	ASSERT_EQ(cordon_audit_verify("/tmp", NULL, &r, NULL), -CORDON_INVALID);
	ASSERT_EQ(cordon_audit_verify("/dev/zero", NULL, &r, NULL), -CORDON_INVALID);
}
