/* tests/behaviour/watches.c - directories that the host watches while code works in them. What the
 * code has done before its execution ends is there to be read, so nothing here depends on time. */
#include "dialect.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "harness/test.h"

enum { LONG_MS = 60000 };

static uint64_t watch(struct cordon_session *s, const char *path, bool recursive)
{
	cleanup_error struct cordon_error *e = NULL;
	uint64_t w = 0;

	if (cordon_watch_open(s, path, recursive, &w, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", path, cordon_error_message(e));
	return w;
}

static json_t *wait_for(struct cordon_session *s, uint64_t w, uint64_t wait_ms)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *text = NULL;
	json_t *j = NULL;

	if (cordon_watch_wait(s, w, wait_ms, &text, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	ASSERT_EQ(json_parse(text, strlen(text), 0, &j, NULL), 0);
	return j;
}

/* All that is there, as words: "created d/ modified f". Paths are told without /home/user. */
static const char *told(struct cordon_session *s, uint64_t w)
{
	static char text[4096];
	cleanup_json json_t *changes = wait_for(s, w, 0);
	size_t i, len = 0;
	json_t *c;

	text[0] = '\0';
	json_array_foreach(changes, i, c)
	{
		const char *path = json_string_value(json_object_get(c, "path"));
		bool is_home = str_starts(path, "/home/user/");

		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "%s%s %s%s", i ? " " : "",
			json_string_value(json_object_get(c, "change")),
			path + (is_home ? strlen("/home/user/") : 0),
			str_eq(json_string_value(json_object_get(c, "type")), "directory") ? "/"
											   : "");
		ASSERT(len < sizeof(text));
	}
	return text;
}

static int refused(struct cordon_session *s, const char *path)
{
	uint64_t w;

	return -cordon_watch_open(s, path, true, &w, NULL);
}

TEST(changes_are_told_in_order_once)
{
	struct cordon_session *s = open_with("python", NULL);
	uint64_t w = watch(s, ".", true);

	ASSERT_STREQ(told(s, w), "");
	must(s, "f = open('a', 'w'); f.write('x'); f.flush()");
	ASSERT_STREQ(told(s, w), "created a modified a");
	ASSERT_STREQ(told(s, w), "");
	must(s, "f.write('y'); f.flush(); import os; os.rename('a', 'b'); os.remove('b')");
	ASSERT_STREQ(told(s, w), "modified a removed a created b removed b");
	ASSERT_EQ(cordon_file_write(s, "c", "1", 1, NULL), 0);
	ASSERT_STREQ(told(s, w), "created c");
	ASSERT_EQ(cordon_watch_close(s, w, NULL), 0);
	ASSERT_EQ(-cordon_watch_close(s, w, NULL), CORDON_NOT_FOUND);
	cordon_session_close(s);
}

TEST(directories_below_are_watched_as_they_come_and_go)
{
	struct cordon_session *s = open_with("python", NULL);

	must(s, "import os, shutil\nos.makedirs('old/in')");
	uint64_t all = watch(s, "/home/user", true), one = watch(s, "/home/user/", false);
	must(s, "open('old/in/a', 'x').close()");
	ASSERT_STREQ(told(s, all), "created old/in/a");
	must(s, "os.makedirs('d/e')\nopen('d/e/f', 'x').close()");
	ASSERT_STREQ(told(s, all), "created d/ created d/e/ created d/e/f");
	must(s, "os.rename('d', 'moved')\nopen('moved/e/g', 'x').close()");
	ASSERT_STREQ(told(s, all), "removed d/ created moved/ created moved/e/ created "
				   "moved/e/f created moved/e/g");
	must(s, "open('moved/e/h', 'x').close(); shutil.rmtree('moved')");
	ASSERT(strstr(told(s, all), "created moved/e/h") != NULL);
	ASSERT_STREQ(told(s, one), "created d/ removed d/ created moved/ removed moved/");
	cordon_session_close(s);
}

/* The guest is hostile: no path and no link of its leads outside its workspace. */
TEST(only_directories_of_the_workspace_are_watched)
{
	struct cordon_session *s = open_with("python", NULL);

	must(s, "import os\nos.symlink('/etc', 'etc'); os.symlink('/tmp', 'tmp'); open('f', 'x')");
	ASSERT_EQ(refused(s, "/etc"), CORDON_NOT_FOUND);
	ASSERT_EQ(refused(s, "etc"), CORDON_NOT_FOUND);
	ASSERT_EQ(refused(s, "../../etc"), CORDON_NOT_FOUND);
	ASSERT_EQ(refused(s, "none"), CORDON_NOT_FOUND);
	ASSERT(refused(s, "f") != 0);
	ASSERT(refused(s, "/") != 0);
	ASSERT_EQ(refused(s, NULL), CORDON_INVALID);
	uint64_t w = watch(s, "tmp", true), home = watch(s, ".", true);
	must(s, "open('/tmp/x', 'x').close(); os.mkdir('d')");
	ASSERT_STREQ(told(s, w), "created tmp/x");
	ASSERT_STREQ(told(s, home), "created d/");
	must(s, "os.rmdir('d'); os.symlink('/proc/self', 'd')");
	ASSERT_STREQ(told(s, home), "removed d/ created d");
	cordon_session_close(s);
}

TEST(too_much_is_told_as_lost)
{
	struct cordon_session *s = open_with("python", NULL);
	uint64_t w = watch(s, ".", true);
	size_t seen = 0;

	must(s, "for i in range(3000): open(str(i), 'x').close()");
	for (;;) {
		cleanup_json json_t *changes = wait_for(s, w, 0);

		seen += json_array_size(changes);
		ASSERT(json_array_size(changes) <= 1000);
		if (json_array_size(changes) == 0)
			break;
	}
	ASSERT_EQ(seen, 3000); /* this much is not too much */
	must(s, "import os\nfor i in range(1100): os.mkdir('d%d' % i)");
	bool is_lost = false;
	for (bool more = true; more;) {
		cleanup_json json_t *changes = wait_for(s, w, 0);
		cleanup_free char *text = json_text(changes, NULL);

		more = json_array_size(changes) > 0;
		is_lost |= strstr(text, "\"lost\"") != NULL;
	}
	ASSERT(is_lost); /* more directories than a watch has */
	cordon_session_close(s);
}

/* The host looked at all its files each time: minutes for one answer. */
TEST(a_large_directory_that_moves_is_looked_at_once)
{
	struct cordon_session *s = open_with("python", NULL);
	uint64_t w = watch(s, ".", true);
	bool is_lost = false;

	must(s, "import os\n"
		"os.mkdir('d')\n"
		"for i in range(60000): open('d/%d' % i, 'x').close()\n"
		"for i in range(2500): os.rename('d', 'e'); os.rename('e', 'd')");
	for (bool more = true; more;) {
		cleanup_json json_t *changes = wait_for(s, w, 0);
		cleanup_free char *text = json_text(changes, NULL);

		more = json_array_size(changes) > 0;
		is_lost |= strstr(text, "\"lost\"") != NULL;
	}
	ASSERT(is_lost);
	must(s, "open('d/new', 'x').close()");
	ASSERT_STREQ(told(s, w), "created d/new");
	cordon_session_close(s);
}

TEST(a_watch_outlives_a_restart_but_not_its_directory)
{
	struct cordon_session *s = open_with("python", NULL);
	cleanup_free char *text = NULL;

	must(s, "import os; os.mkdir('d')");
	uint64_t w = watch(s, "d", true);
	ASSERT_EQ(cordon_session_restart(s, NULL), 0);
	must(s, "open('d/before', 'x').close()");
	ASSERT_STREQ(told(s, w), "lost d/");
	must(s, "open('d/a', 'x').close()");
	ASSERT_STREQ(told(s, w), "created d/a");
	must(s, "import shutil; shutil.rmtree('d')");
	(void)told(s, w);
	ASSERT_EQ(-cordon_watch_wait(s, w, 0, &text, NULL), CORDON_NOT_FOUND);
	cordon_session_close(s);
}

TEST(a_session_has_a_bounded_number_of_watches)
{
	struct cordon_session *s = open_with("python", NULL);
	uint64_t w = 0;

	for (int i = 0; i < 16; i++)
		w = watch(s, "/tmp", false);
	ASSERT_EQ(refused(s, "/tmp"), CORDON_LIMIT);
	ASSERT_EQ(cordon_watch_close(s, w, NULL), 0);
	(void)watch(s, "/tmp", false);
	cordon_session_close(s);
}

struct waiter {
	struct cordon_session *session;
	uint64_t watch;
	int r;
	char *text;
};

static void *wait_long(void *arg)
{
	struct waiter *w = arg;

	w->r = cordon_watch_wait(w->session, w->watch, LONG_MS, &w->text, NULL);
	return NULL;
}

TEST(a_wait_ends_with_a_change_or_its_watch)
{
	struct cordon_session *s = open_with("python", NULL);

	for (int closes = 0; closes < 2; closes++) {
		struct waiter w = { .session = s, .watch = watch(s, ".", true) };
		pthread_t thread;

		ASSERT_EQ(pthread_create(&thread, NULL, wait_long, &w), 0);
		if (closes) {
			(void)cordon_watch_close(s, w.watch, NULL);
		} else {
			must(s, "open('x', 'x').close()");
		}
		ASSERT_EQ(pthread_join(thread, NULL), 0);
		/* It may have begun after the end. */
		ASSERT(w.r == 0 || (closes && -w.r == CORDON_NOT_FOUND));
		if (!closes)
			ASSERT(strstr(w.text, "/home/user/x") != NULL);
		free(w.text);
	}
	cordon_session_close(s);
}
