/* tests/behaviour/pools.c - pools, templates and what they leave behind. */
#include "dialect.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "harness/test.h"
#include "session/template.h"

TEST(pools_hand_out_clean_sessions)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_pool_options o = { .session = { .guest = "python" },
					 .size = 2,
					 .max_size = 2 };
	struct cordon_pool *p = NULL;
	struct cordon_session *a = NULL, *b = NULL, *c = NULL;
	struct cordon_result *r = NULL;

	ASSERT_EQ(cordon_pool_new(&o, &p, NULL), 0);
	struct cordon_pool_status st = cordon_pool_get_status(p);
	ASSERT_EQ(st.total, 2);
	ASSERT_EQ(st.idle, 2);
	ASSERT_EQ(cordon_pool_execute(p, &(struct cordon_execute_options){ .code = "x = 1" }, 5000,
				      &r, NULL),
		  0);
	cordon_result_free(r);
	ASSERT_EQ(cordon_pool_execute(p, &(struct cordon_execute_options){ .code = "x" }, 5000, &r,
				      NULL),
		  0);
	ASSERT(!cordon_result_success(r)); /* another session, or a clean one */
	cordon_result_free(r);
	ASSERT_EQ(cordon_pool_acquire(p, 5000, &a, NULL), 0);
	ASSERT_EQ(cordon_pool_acquire(p, 5000, &b, NULL), 0);
	ASSERT_EQ(cordon_pool_acquire(p, 0, &c, &e), -CORDON_LIMIT);
	ASSERT_STREQ(cordon_error_message(e), "All sessions are busy.");
	ASSERT_EQ(cordon_pool_get_status(p).busy, 2);
	cordon_pool_release(p, a);
	cordon_pool_release(p, b);
	cordon_pool_free(p);
}

/* The control groups of a session that is over serve the next: its figures must not. */
TEST(a_used_control_group_bears_no_marks)
{
	struct cordon_session *s = open_with("python", NULL);

	must(s, "b = bytearray(100 << 20)");
	cordon_session_close(s);
	for (int i = 0; i < 4; i++) {
		s = open_with("python", NULL);
		struct cordon_result *r = run(s, "1");
		const char *mb = strstr(cordon_result_json(r), "\"memory_used_mb\": ");
		ASSERT(mb && strtod(mb + 18, NULL) < 50);
		cordon_result_free(r);
		must_fail(s, "b = bytearray(1 << 30)", 0, "memory", NULL);
		cordon_session_close(s);
		s = open_with("python", "processes=5");
		must_fail(s,
			  "import os, time\nfor i in range(20):\n if os.fork() == 0: time.sleep(9)",
			  0, "processes", NULL);
		cordon_session_close(s);
	}
}

/* As a supervisor in another pid namespace might, which takes us for dead. */
static unsigned remove_idle_groups(const char *dir)
{
	char prefix[32];
	unsigned count = 0;
	DIR *d = opendir(dir);

	snprintf(prefix, sizeof(prefix), "%d-", (int)getpid());
	for (struct dirent *e; d && (e = readdir(d));)
		if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 && strchr(e->d_name, '.'))
			count += unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) == 0;
	if (d)
		closedir(d);
	return count;
}

TEST(a_control_group_that_somebody_removed_is_not_used_again)
{
	struct cordon_session *s = open_with("python", NULL), *t = open_with("python", NULL);

	must(s, "1");
	cordon_session_close(s); /* its groups wait for the next; the other keeps the template */
	(void)remove_idle_groups("/sys/fs/cgroup/pids/cordon");
	s = open_with("python", NULL);
	must(s, "1");
	cordon_session_close(s);
	cordon_session_close(t);
}

TEST(pool_sizes_are_bounded)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_pool *p = NULL;

	ASSERT_EQ(cordon_pool_new(&(struct cordon_pool_options){ .size = 101 }, &p, &e),
		  -CORDON_INVALID);
	ASSERT(strstr(cordon_error_message(e), "must not exceed 100"));
}

/* Its sessions are inside a template's namespaces: it may go only after the last of them. */
TEST(a_retired_template_outlives_its_sessions)
{
	EACH_DIALECT(d)
	{
		struct cordon_session *old = open_with(d->guest, NULL);

		must(old, d->set_x);
		template_release_all(); /* as by count and by age */
		struct cordon_session *new = open_with(d->guest, NULL);
		must_be(old, d, d->get_x, d->x_value);
		cordon_session_close(old);
		template_release_all();
		must(new, d->set_x);
		must_be(new, d, d->get_x, d->x_value);
		cordon_session_close(new);
	}
}

/* Sessions opened, used and ended in all ways; nothing of them may stay. */
TEST(many_sessions_leave_nothing)
{
	enum { ROUNDS = 120 };
	int fds_before = 0, fds_after = 0;
	char path[64];

	template_release_all();
	for (int i = 0; i < 1024; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
		fds_before += access(path, F_OK) == 0;
	}
	for (int i = 0; i < ROUNDS; i++) {
		struct cordon_session *s = open_with("python", NULL);
		struct cordon_result *r = run_for(s,
						  i % 3 == 0   ? "while True: pass"
						  : i % 3 == 1 ? "1+1"
							       : "import os; os._exit(3)",
						  i % 3 == 0 ? 20 : 0);

		cordon_result_free(r);
		cordon_session_close(s);
	}
	template_release_all(); /* and the control groups it keeps for the next ones */
	for (int i = 0; i < 1024; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
		fds_after += access(path, F_OK) == 0;
	}
	ASSERT_EQ(fds_after, fds_before);
}
