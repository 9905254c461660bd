/* unit/audit/test_audit.c - events, the chain, and files that other processes write to. */
#include "audit/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "audit/chain.h"
#include "audit_fixture.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cordon/audit.h"
#include "harness/test.h"

static void append(const char *p, const char *text)
{
	cleanup_close int fd = open(p, O_WRONLY | O_APPEND);
	ASSERT(fd >= 0);
	ASSERT_EQ(file_write_all(fd, text, strlen(text)), 0);
}

TEST(an_event_has_its_fields)
{
	setup();
	struct audit *a = open_path(path);
	struct audit_event *e = audit_begin(a, "tool_call", "sess_1");
	audit_add_text(e, "tool", "a\"\\\n\x01\xff\xc3\xa9", 8);
	audit_add_json(e, "args", "{\"a\":\n1}", 8);
	audit_add_uint(e, "n", UINT64_MAX / 2);
	audit_add_bool(e, "yes", true);
	audit_add_seconds(e, "elapsed", 1220400000);
	ASSERT_EQ(audit_commit(e, NULL), 0);
	audit_close(a);

	cleanup_json json_t *j = line_of(path, 1);
	static const char *const order[] = { "timestamp", "event", "session_id", "tool", "args",
					     "n",         "yes",   "elapsed",    "prev", "hash" };
	void *it = json_object_iter(j);
	for (size_t i = 0; i < 10; i++, it = json_object_iter_next(j, it))
		ASSERT_STREQ(json_object_iter_key(it), order[i]);
	const char *time = json_string_value(json_object_get(j, "timestamp"));
	ASSERT_EQ(strlen(time), 24);
	ASSERT(time[4] == '-' && time[10] == 'T' && time[19] == '.' && time[23] == 'Z');
	ASSERT_STREQ(json_string_value(json_object_get(j, "tool")),
		     "a\"\\\n\x01\xef\xbf\xbd\xc3\xa9");
	ASSERT_STREQ(json_string_value(json_object_get(j, "prev")), chain_genesis);
	ASSERT(json_real_value(json_object_get(j, "elapsed")) == 1.22);
	struct stat st;
	ASSERT_EQ(stat(path, &st), 0);
	ASSERT_EQ(st.st_mode & 07777, 0600);
	ASSERT(verify(path, NULL).is_whole);
}

TEST(paths_are_refused_with_their_reason)
{
	setup();
	char link[80], fifo[80];
	snprintf(link, sizeof(link), "%s/link", dir);
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	ASSERT_EQ(symlink("/tmp/elsewhere", link), 0);
	ASSERT_EQ(mkfifo(fifo, 0600), 0);
	const struct {
		const char *path, *want;
	} cases[] = {
		{ "", "audit_log path must be a non-empty character string" },
		{ link, "audit_log path must not be a symlink" },
		{ "/dev/null", "audit_log path must not point to a device file" },
		{ "/dev/does-not-exist", "audit_log path must not point to a device file" },
		{ dir, "audit_log path must be a regular file" },
		{ fifo, "audit_log path must be a regular file" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cleanup_error struct cordon_error *e = NULL;
		struct audit *a = NULL;
		ASSERT(audit_open(&(struct audit_options){ .path = cases[i].path }, &a, &e) < 0);
		ASSERT_STREQ(cordon_error_message(e), cases[i].want);
	}
	ASSERT(access("/tmp/elsewhere", F_OK) < 0);
	ASSERT_EQ(file_save(path, 0400, "", 0, NULL), 0);
	struct audit *a = NULL;
	ASSERT_EQ(audit_open(&(struct audit_options){ .path = path }, &a, NULL), -CORDON_DENIED);
}

TEST(parents_are_made)
{
	setup();
	char deep[100];
	snprintf(deep, sizeof(deep), "%s/x/y/z.jsonl", dir);
	struct audit *a = open_path(deep);
	ASSERT_EQ(audit_write(a, "session_start", "s", NULL, NULL, NULL), 0);
	audit_close(a);
	ASSERT_EQ(verify(deep, NULL).lines, 1);
}

TEST(code_and_results_are_cut)
{
	setup();
	cleanup_buf struct buf code;
	buf_init(&code, 1 << 20);
	for (int i = 0; i < 10001; i++)
		ASSERT_EQ(buf_add_str(&code, "\xc3\xa9"), 0);
	struct audit *a = open_path(path);
	struct audit_event *e = audit_begin(a, "execute_start", "s");
	audit_add_text_cut(e, "code", code.data, code.len, AUDIT_CODE_CHARS);
	audit_add_text_cut(e, "exact", code.data, 20000, AUDIT_CODE_CHARS);
	audit_add_text_cut(e, "result", "abcdef", 6, 3);
	ASSERT_EQ(audit_commit(e, NULL), 0);
	audit_close(a);
	cleanup_json json_t *j = line_of(path, 1);
	ASSERT_EQ(json_string_length(json_object_get(j, "code")), 20000 + 15);
	ASSERT(str_ends(json_string_value(json_object_get(j, "code")), "\xc3\xa9... [truncated]"));
	ASSERT_EQ(json_string_length(json_object_get(j, "exact")), 20000);
	ASSERT_STREQ(json_string_value(json_object_get(j, "result")), "abc... [truncated]");
}

static void note(const char *line, size_t len, void *arg)
{
	struct buf *b = arg;
	ASSERT_EQ(strlen(line), len);
	ASSERT_EQ(buf_add(b, line, len) + buf_add_char(b, '\n'), 0);
}

TEST(the_callback_gets_every_line)
{
	setup();
	cleanup_buf struct buf seen, alone;
	buf_init(&seen, 1 << 20);
	buf_init(&alone, 1 << 20);
	struct audit *a = NULL, *b = NULL;
	struct audit_options opts = { .path = path, .fn = note, .arg = &seen };
	ASSERT_EQ(audit_open(&opts, &a, NULL), 0);
	opts = (struct audit_options){ .fn = note, .arg = &alone };
	ASSERT_EQ(audit_open(&opts, &b, NULL), 0);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(audit_write(a, "e", "s", "k", "v", NULL), 0);
		ASSERT_EQ(audit_write(b, "e", "s", "k", "v", NULL), 0);
	}
	audit_close(a);
	audit_close(b);
	cleanup_buf struct buf file = { 0 };
	ASSERT_EQ(file_load(path, 1 << 20, &file, NULL), 0);
	ASSERT_STREQ(buf_text(&seen), buf_text(&file));
	ASSERT_EQ(file_save(path, 0600, alone.data, alone.len, NULL), 0);
	ASSERT_EQ(verify(path, NULL).lines, 3);
}

TEST(nobody_listening_is_fine)
{
	struct audit_event *e = audit_begin(NULL, "e", "s");
	ASSERT(!e);
	audit_add_text(e, "k", "v", 1);
	audit_add_json(e, "k", "1", 1);
	audit_add_uint(e, "k", 1);
	audit_add_bool(e, "k", true);
	audit_add_seconds(e, "k", 1);
	ASSERT_EQ(audit_commit(e, NULL), 0);
	audit_close(NULL);
}

TEST(reopening_goes_on)
{
	setup();
	for (int i = 0; i < 3; i++) {
		struct audit *a = open_path(path);
		ASSERT_EQ(audit_write(a, "e", "s", NULL, NULL, NULL), 0);
		audit_close(a);
	}
	struct cordon_audit_report r = verify(path, NULL);
	ASSERT(r.is_whole && !r.is_continued);
	ASSERT_EQ(r.lines, 3);
}

TEST(a_torn_line_is_told_and_mended)
{
	setup();
	struct audit *a = open_path(path);
	ASSERT_EQ(audit_write(a, "one", "s", NULL, NULL, NULL), 0);
	audit_close(a);
	append(path, "{\"timestamp\":\"2024-01-01T00:00:0");
	struct cordon_audit_report r = verify(path, NULL);
	ASSERT(r.is_whole);
	ASSERT_EQ(r.lines, 1);
	ASSERT_EQ(r.torn_bytes, 32);
	a = open_path(path);
	ASSERT_EQ(audit_write(a, "two", "s", NULL, NULL, NULL), 0);
	ASSERT_EQ(audit_write(a, "three", "s", NULL, NULL, NULL), 0);
	audit_close(a);
	r = verify(path, NULL);
	ASSERT(r.is_whole);
	ASSERT_EQ(r.lines, 4);
	ASSERT_EQ(r.recovered, 1);
	ASSERT_EQ(r.torn_bytes, 0);
	/* The same when nothing but the newline is missing. */
	struct stat st;
	ASSERT_EQ(stat(path, &st), 0);
	ASSERT_EQ(truncate(path, st.st_size - 1), 0);
	a = open_path(path);
	ASSERT_EQ(audit_write(a, "four", "s", NULL, NULL, NULL), 0);
	audit_close(a);
	r = verify(path, NULL);
	ASSERT(r.is_whole);
	ASSERT_EQ(r.recovered, 2);
	/* And when the very first line was torn. */
	ASSERT_EQ(truncate(path, 50), 0);
	a = open_path(path);
	ASSERT_EQ(audit_write(a, "two", "s", NULL, NULL, NULL), 0);
	audit_close(a);
	r = verify(path, NULL);
	ASSERT(r.is_whole);
	ASSERT_EQ(r.lines, 2);
	ASSERT_EQ(r.recovered, 1);
}

TEST(foreign_files_are_left_alone)
{
	setup();
	static const char *const texts[] = { "hello\n", "hello", "{\"a\":1}\n", "\n" };
	for (size_t i = 0; i < 4; i++) {
		cleanup_error struct cordon_error *e = NULL;
		ASSERT_EQ(file_save(path, 0600, texts[i], strlen(texts[i]), NULL), 0);
		struct audit *a = open_path(path);
		ASSERT_EQ(audit_write(a, "e", "s", NULL, NULL, &e), -CORDON_INVALID);
		ASSERT(strstr(cordon_error_message(e), "does not end like an audit log"));
		audit_close(a);
		cleanup_buf struct buf b = { 0 };
		ASSERT_EQ(file_load(path, 100, &b, NULL), 0);
		ASSERT_STREQ(b.data, texts[i]);
	}
}

TEST(a_vanished_file_is_an_error)
{
	setup();
	struct audit *a = open_path(path);
	cleanup_error struct cordon_error *e = NULL;
	ASSERT_EQ(audit_write(a, "e", "s", NULL, NULL, NULL), 0);
	ASSERT_EQ(unlink(path), 0);
	ASSERT_EQ(audit_write(a, "e", "s", NULL, NULL, &e), -CORDON_STATE);
	ASSERT(strstr(cordon_error_message(e), "has vanished"));
	audit_close(a);
}

TEST(a_full_disk_is_an_error_and_leaves_no_half_line)
{
	setup();
	struct audit *a = open_path(path);
	struct rlimit limit = { 700, RLIM_INFINITY }, none = { RLIM_INFINITY, RLIM_INFINITY };
	struct stat st;
	int good = 0, r = 0;
	cleanup_error struct cordon_error *e = NULL;

	signal(SIGXFSZ, SIG_IGN);
	ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	while ((r = audit_write(a, "e", "s", NULL, NULL, &e)) == 0)
		good++;
	ASSERT_EQ(r, -CORDON_LIMIT);
	ASSERT(good > 1);
	ASSERT_EQ(stat(path, &st), 0);
	ASSERT(st.st_size < 700);
	ASSERT_EQ(verify(path, NULL).lines, good);
	ASSERT_EQ(verify(path, NULL).torn_bytes, 0);
	ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
	ASSERT_EQ(audit_write(a, "e", "s", NULL, NULL, NULL), 0);
	ASSERT_EQ(verify(path, NULL).lines, good + 2); /* one tells of the one that is missing */
	audit_close(a);
}

TEST(rotation_keeps_the_chain)
{
	setup();
	struct audit *a = NULL;
	struct audit_options opts = { .path = path,
				      .rotate_bytes = 2000,
				      .sync = AUDIT_SYNC_ALWAYS };
	ASSERT_EQ(audit_open(&opts, &a, NULL), 0);
	for (int i = 0; i < 30; i++)
		ASSERT_EQ(audit_write(a, "e", "s", "k", "v", NULL), 0);
	audit_close(a);
	char name[100], head[CHAIN_HEX + 1];
	uint64_t lines = 0;
	int files = 0;
	memcpy(head, chain_genesis, sizeof(head));
	for (int i = 1;; i++) {
		struct stat st;
		snprintf(name, sizeof(name), "%s.%d", path, i);
		bool is_last = access(name, F_OK) < 0;
		const char *p = is_last ? path : name;
		ASSERT_EQ(stat(p, &st), 0);
		ASSERT(st.st_size <= 2000);
		ASSERT_EQ(st.st_nlink, 1);
		struct cordon_audit_report r = verify(p, head);
		ASSERT(r.is_whole);
		ASSERT_EQ(r.is_continued, files > 0);
		ASSERT(verify(p, NULL).is_whole); /* also on its own */
		memcpy(head, r.head, sizeof(head));
		lines += r.lines;
		files++;
		if (is_last)
			break;
	}
	ASSERT(files > 3);
	ASSERT_EQ(lines, 30 + files - 1);
	ASSERT(!verify(path, chain_genesis).is_whole);
}

static char shown[2000];

static void keep_shown(const char *line, size_t len, void *arg)
{
	(void)arg;
	size_t at = strlen(shown);
	ASSERT(at + len + 2 < sizeof(shown));
	memcpy(shown + at, line, len);
	memcpy(shown + at + len, "\n", 2);
}

TEST(who_watches_sees_no_secrets)
{
	setup();
	struct audit *a = NULL;
	struct audit_options opts = { .log = keep_shown };
	ASSERT_EQ(audit_open(&opts, &a, NULL), 0);
	struct audit_event *e = audit_begin(a, "tool_call", "sess_1");
	audit_add_text(e, "tool", "add\n", 4);
	audit_add_uint(e, "call", 7);
	audit_add_json(e, "args", "{\"key\":\"s3cret\"}", 16);
	audit_add_text(e, "code", "s3cret", 6);
	audit_add_text(e, "error", "s3cret", 6);
	audit_add_text_cut(e, "result_summary", "s3cret", 6, 3);
	audit_add_seconds(e, "elapsed_secs", 220000000);
	ASSERT_EQ(audit_commit(e, NULL), 0);
	audit_close(a);
	ASSERT(str_starts(shown, "{\"timestamp\":\""));
	ASSERT(strstr(shown,
		      "\",\"event\":\"tool_call\",\"session_id\":\"sess_1\",\"tool\":\"add\\n\","
		      "\"call\":7,\"elapsed_secs\":0.220}\n"));
	ASSERT(!strstr(shown, "s3c"));
	ASSERT(!strstr(shown, "hash"));
}

TEST(only_the_last_full_files_stay)
{
	setup();
	struct audit *a = NULL;
	struct audit_options opts = { .path = path, .rotate_bytes = 2000, .keep_files = 2 };
	ASSERT_EQ(audit_open(&opts, &a, NULL), 0);
	char name[100], other[100];
	snprintf(other, sizeof(other), "%s.x1", path); /* not one of ours */
	close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	for (int i = 0; i < 60; i++)
		ASSERT_EQ(audit_write(a, "e", "s", "k", "v", NULL), 0);
	audit_close(a);
	int first = 0, last = 0;
	for (int i = 1; i < 100; i++) {
		snprintf(name, sizeof(name), "%s.%d", path, i);
		if (access(name, F_OK) == 0) {
			first = first ? first : i;
			last = i;
		}
	}
	ASSERT(first > 2);
	ASSERT_EQ(last, first + 1);
	ASSERT_EQ(access(other, F_OK), 0);
	snprintf(name, sizeof(name), "%s.%d", path, first);
	struct cordon_audit_report r = verify(name, NULL);
	ASSERT(r.is_whole && r.is_continued);
	snprintf(name, sizeof(name), "%s.%d", path, last);
	r = verify(name, r.head);
	ASSERT(r.is_whole);
	ASSERT(verify(path, r.head).is_whole);
}

static void *write_many(void *arg)
{
	for (int i = 0; i < 100; i++) {
		cleanup_error struct cordon_error *e = NULL;

		if (audit_write(arg, "e", "s", "k", "some text of some length", &e) != 0)
			test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	}
	return NULL;
}

static void write_from_everywhere(uint64_t rotate_bytes)
{
	pid_t pids[4];
	for (int p = 0; p < 4; p++) {
		pids[p] = fork();
		ASSERT(pids[p] >= 0);
		if (pids[p] > 0)
			continue;
		struct audit_options opts = { .path = path, .rotate_bytes = rotate_bytes };
		struct audit *own = NULL, *other = NULL;
		pthread_t threads[4];
		ASSERT_EQ(audit_open(&opts, &own, NULL) + audit_open(&opts, &other, NULL), 0);
		for (int t = 0; t < 4; t++)
			ASSERT_EQ(
				pthread_create(&threads[t], NULL, write_many, t % 2 ? own : other),
				0);
		for (int t = 0; t < 4; t++)
			pthread_join(threads[t], NULL);
		audit_close(own);
		audit_close(other);
		_exit(0);
	}
	for (int p = 0; p < 4; p++) {
		int status;
		ASSERT_EQ(waitpid(pids[p], &status, 0), pids[p]);
		ASSERT_EQ(status, 0);
	}
}

TEST(many_writers_share_one_chain)
{
	setup();
	write_from_everywhere(0);
	struct cordon_audit_report r = verify(path, NULL);
	ASSERT(r.is_whole);
	ASSERT_EQ(r.lines, 1600);
}

TEST(many_writers_rotate_together)
{
	setup();
	write_from_everywhere(20000);
	char name[100], head[CHAIN_HEX + 1];
	uint64_t lines = 0, files = 0;
	memcpy(head, chain_genesis, sizeof(head));
	for (bool is_last = false; !is_last; files++) {
		snprintf(name, sizeof(name), "%s.%d", path, (int)files + 1);
		is_last = access(name, F_OK) < 0;
		struct cordon_audit_report r = verify(is_last ? path : name, head);
		ASSERT(r.is_whole);
		lines += r.lines;
		memcpy(head, r.head, sizeof(head));
	}
	ASSERT(files > 10);
	ASSERT_EQ(lines, 1600 + files - 1);
}

TEST(a_killed_writer_leaves_a_whole_log)
{
	setup();
	for (useconds_t round = 0; round < 25; round++) {
		pid_t pid = fork();
		ASSERT(pid >= 0);
		if (pid == 0) {
			struct audit_options opts = { .path = path, .rotate_bytes = 1 << 20 };
			struct audit *a = NULL;
			if (audit_open(&opts, &a, NULL) < 0)
				_exit(1);
			while (audit_write(a, "e", "s", "k", "some text", NULL) == 0)
				;
			_exit(1);
		}
		usleep(1000 + round * 397);
		ASSERT_EQ(kill(pid, SIGKILL), 0);
		ASSERT_EQ(waitpid(pid, NULL, 0), pid);
		if (access(path, F_OK) == 0)
			ASSERT(verify(path, NULL).is_whole);
	}
	ASSERT(verify(path, NULL).lines > 0);
}
