/* unit/audit/test_loss.c - lines that cannot be written are counted, reported, and recorded in the
 * chain. */
#include "audit/audit.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "audit_fixture.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "cordon/audit.h"
#include "harness/test.h"

/* The first of two lines stays. */
static void keep_first(const char *line, size_t len, void *arg)
{
	if (!*(char *)arg)
		snprintf(arg, 4096, "%.*s", (int)len, line);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };
	signal(SIGXFSZ, SIG_IGN);
	ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static off_t size_of(const char *p)
{
	struct stat st;
	ASSERT_EQ(stat(p, &st), 0);
	return st.st_size;
}

TEST(lost_lines_are_counted_and_told_in_the_log)
{
	setup();
	struct audit *a = open_path(path);
	char *text = NULL;
	ASSERT_EQ(audit_write(a, "e", "s", NULL, NULL, NULL), 0);
	ASSERT_EQ(audit_take_lost(a, &text), 0);
	limit_files((rlim_t)size_of(path));
	for (int i = 0; i < 5; i++)
		ASSERT(audit_write(a, "e", "s", NULL, NULL, NULL) < 0);
	ASSERT_EQ(audit_take_lost(a, &text), 5);
	ASSERT(strstr(text, "5 lines of the audit log were lost: write to the audit log"));
	free(text);
	ASSERT_EQ(audit_take_lost(a, &text), 0); /* it was told */
	limit_files(RLIM_INFINITY);
	ASSERT_EQ(audit_write(a, "later", "s", NULL, NULL, NULL), 0);
	cleanup_json json_t *told = line_of(path, 2), *later = line_of(path, 3);
	ASSERT_STREQ(json_string_value(json_object_get(told, "event")), "audit_lost");
	ASSERT_EQ(json_integer_value(json_object_get(told, "lines")), 5);
	ASSERT_STREQ(json_string_value(json_object_get(later, "event")), "later");
	struct cordon_audit_report report = verify(path, NULL);
	ASSERT(!report.is_whole && !report.reason);
	ASSERT_EQ(report.lost, 5);
	ASSERT_EQ(report.lost_line, 2);
	ASSERT_EQ(audit_end(a, NULL), 0); /* nothing that was not told */
}

TEST(lines_lost_until_the_end_leave_a_mark_for_the_next_writer)
{
	setup();
	char mark[80];
	snprintf(mark, sizeof(mark), "%s.lost", path);
	for (int round = 1; round <= 2; round++) {
		struct audit *a = open_path(path);
		cleanup_error struct cordon_error *e = NULL;
		if (round == 1)
			ASSERT_EQ(audit_write(a, "e", "s", NULL, NULL, NULL), 0);
		limit_files((rlim_t)size_of(path));
		for (int i = 0; i < 3; i++)
			ASSERT(audit_write(a, "e", "s", NULL, NULL, NULL) < 0);
		ASSERT_EQ(audit_end(a, &e), -CORDON_OS);
		ASSERT(strstr(cordon_error_message(e), "3 lines of the audit log were lost"));
		ASSERT_EQ(verify(path, NULL).lost, 3 * round);
		ASSERT(!verify(path, NULL).is_whole);
		limit_files(RLIM_INFINITY);
	}
	struct audit *a = open_path(path);
	ASSERT_EQ(access(mark, F_OK), -1);
	ASSERT_EQ(audit_write(a, "e", "s", NULL, NULL, NULL), 0);
	ASSERT_EQ(audit_end(a, NULL), 0);
	ASSERT_EQ(verify(path, NULL).lost, 6);
	ASSERT_EQ(verify(path, NULL).lines, 3);
	/* A mark without a count, for want of room, is one line; a directory of that name none. */
	cleanup_close int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ASSERT(fd >= 0);
	ASSERT_EQ(verify(path, NULL).lost, 7);
	ASSERT_EQ(unlink(mark), 0);
	ASSERT_EQ(mkdir(mark, 0700), 0);
	ASSERT_EQ(verify(path, NULL).lost, 6);
	audit_close(open_path(path));
}

TEST(a_vanished_folder_loses_lines_and_says_so)
{
	setup();
	char inner[80], command[120];
	snprintf(inner, sizeof(inner), "%s/inner/a.jsonl", dir);
	struct audit *a = open_path(inner);
	cleanup_error struct cordon_error *e = NULL;
	ASSERT_EQ(audit_write(a, "e", "s", NULL, NULL, NULL), 0);
	snprintf(command, sizeof(command), "rm -rf %s/inner", dir);
	ASSERT_EQ(system(command), 0);
	ASSERT(audit_write(a, "e", "s", NULL, NULL, NULL) < 0);
	ASSERT_EQ(audit_end(a, &e), -CORDON_OS);
	ASSERT(strstr(cordon_error_message(e), "1 line of the audit log was lost"));
}

TEST(a_line_that_is_too_large_is_a_lost_one_for_the_callback_too)
{
	struct audit *a = NULL;
	char first[4096] = "";
	ASSERT_EQ(audit_open(&(struct audit_options){ .fn = keep_first, .arg = first }, &a, NULL),
		  0);
	size_t size = 65 << 20;
	cleanup_free char *huge = malloc(size);
	memset(huge, 'x', size);
	struct audit_event *e = audit_begin(a, "e", "s");
	audit_add_text(e, "t", huge, size);
	ASSERT_EQ(audit_commit(e, NULL), -CORDON_LIMIT);
	ASSERT_STREQ(first, "");
	ASSERT_EQ(audit_write(a, "e", "s", NULL, NULL, NULL), 0);
	ASSERT(strstr(first, "\"audit_lost\""));
	audit_close(a);
}
