/* tests/behaviour/places_sealed.c - a guest that joins a place is sealed like the first, cannot
 * reach pid 1, and sees nothing of another place. */
#include "place_fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

#define WAITS "echo waits; read line; echo over"

TEST(a_guest_that_joins_has_every_layer_of_the_first)
{
	struct tenant a;
	struct site s;

	site_open(&s, WAITS, NULL);
	tenant_await(&s.first, "waits");
	site_join(&s, &a, GUEST_KIND_SH, WAITS);
	tenant_await(&a, "waits");
	cleanup_json json_t *of_first = box_assurance(s.first.box, &s.policy),
			    *of_a = box_assurance(a.box, &s.policy),
			    *of_place = box_assurance(s.place, &s.policy);
	cleanup_free char *first = json_text(of_first, NULL), *joined = json_text(of_a, NULL),
			  *place = json_text(of_place, NULL);
	ASSERT_STREQ(joined, first);
	ASSERT_STREQ(place, first);
	ASSERT_HAS(joined, "\"no_new_privs\":true");
	ASSERT_HAS(joined, "\"capabilities\":false");
	ASSERT(!strstr(joined, "\"landlock\":null") || strstr(joined, "no Landlock"));
	ASSERT(!strstr(joined, "\"seccomp\":null"));
	/* As the guests themselves see it. */
	static const char look[] = "grep -E '^(Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups)' "
				   "/proc/self/status; ulimit -a; ls -l /proc/self/ns | "
				   "sed 's/.*-> //'; id";
	cleanup_free char *one = strdup(site_run(&s, GUEST_KIND_SH, look, NULL));
	ASSERT_HAS(one, "CapBnd:\t0000000000000000");
	ASSERT_HAS(one, "NoNewPrivs:\t1");
	ASSERT_HAS(one, "uid=1000");
	tenant_done(&a);
	site_close(&s);

	struct site t;
	char code[512];
	snprintf(code, sizeof(code), "(%s) | grep -v ':\\['; echo end", look);
	site_open(&t, code, NULL);
	tenant_await(&t.first, "end\n");
	for (char *line = strtok(t.first.text, "\n"); line; line = strtok(NULL, "\n"))
		if (strcmp(line, "end") != 0)
			ASSERT_HAS(one, line);
	site_close(&t);
}

/* A place that was started, and one that was forked from a template. */
static void each_place(void (*check)(struct site *s))
{
	struct site s;

	site_open(&s, WAITS, NULL);
	check(&s);
	site_close(&s);
	if (!site_has(GUEST_KIND_PYTHON))
		return;
	site_fork(&s, NULL);
	check(&s);
	site_close(&s);
}

static void check_descriptors(struct site *s)
{
	static const char fds[] = "cd /proc/self/fd; echo [0-9]*";
	struct tenant many[5];

	for (int i = 0; i < 5; i++)
		site_join(s, &many[i], GUEST_KIND_SH, WAITS);
	/* 255 is bash's own script; here it has none. */
	ASSERT_STREQ(site_run(s, GUEST_KIND_SH, fds, NULL), "0 1 2 3\n"); /* 3: the glob's own */
	if (site_has(GUEST_KIND_PYTHON))
		ASSERT_STREQ(site_run(s, GUEST_KIND_PYTHON,
				      "import os\n"
				      "for n in range(0, 2000):\n"
				      "    try: os.fstat(n); print(n, end=' ')\n"
				      "    except OSError: pass\n",
				      NULL),
			     "0 1 2 ");
	for (int i = 0; i < 5; i++)
		tenant_done(&many[i]);
}

TEST(a_guest_that_joins_has_its_own_descriptors_and_no_others)
{
	each_place(check_descriptors);
}

/* Each prints what worked. */
static void check_pid_1(struct site *s)
{
	ASSERT_STREQ(site_run(s, GUEST_KIND_SH,
			      "exec 2>/dev/null\n"
			      "for f in mem environ maps fd/4 fd/6 root/etc/passwd cwd/etc/passwd "
			      "exe auxv io stack syscall personality map_files/x ns/user; do "
			      "head -c1 /proc/1/$f >/dev/null && echo read $f; done\n"
			      "ls /proc/1/fd /proc/1/task/1/fd /proc/1/map_files && echo listed\n"
			      "echo 1 >/proc/1/mem && echo wrote\n"
			      "echo 500 >/proc/1/oom_score_adj && echo scored\n"
			      "for n in 0 1 2 9 15 17 18 19; do kill -$n 1 && echo sent $n; done\n"
			      "echo done",
			      NULL),
		     "done\n");
	if (site_has(GUEST_KIND_PYTHON))
		ASSERT_STREQ(site_run(s, GUEST_KIND_PYTHON,
				      "import ctypes, os\n"
				      "c = ctypes.CDLL(None, use_errno=True)\n"
				      "for name, call in dict(\n"
				      "  attach=lambda: c.ptrace(16, 1, 0, 0),\n"
				      "  seize=lambda: c.ptrace(0x4206, 1, 0, 0),\n"
				      "  pidfd=lambda: c.syscall(434, 1, 0),\n"
				      "  getfd=lambda: c.syscall(438, 0, 4, 0),\n"
				      "  limit=lambda: c.prlimit(1, 7, b'\\0'*16, None),\n"
				      "  kill=lambda: c.kill(1, 17),\n"
				      "  queue=lambda: c.sigqueue(1, 17, 0),\n"
				      ").items():\n"
				      "    if call() >= 0: print(name)\n"
				      "print('done')\n",
				      NULL),
			     "done\n");
	ASSERT(!box_has_ended(s->place));
}

TEST(no_guest_reaches_pid_1)
{
	each_place(check_pid_1);
}

/* What stands outside is visible outside: the same looks succeed within one place. */
TEST(two_places_do_not_see_each_other)
{
	static const char mark[] = "echo secret >/workspace/mark; exec -a marked-one sleep 7003";
	static const char look[] = "cat /workspace/mark 2>/dev/null;"
				   "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | "
				   "grep -o marked-on[e]; echo end";
	struct site a, b;
	struct tenant t;

	site_open(&a, WAITS, NULL);
	site_open(&b, WAITS, NULL);
	site_join(&a, &t, GUEST_KIND_SH, mark);
	while (!strstr(site_run(&a, GUEST_KIND_SH, look, NULL), "marked-one"))
		;
	ASSERT_STREQ(site_run(&a, GUEST_KIND_SH, look, NULL), "secret\nmarked-one\nend\n");
	ASSERT_STREQ(site_run(&b, GUEST_KIND_SH, look, NULL), "end\n");
	/* The ids differ too: b has no process of that number, or its own. */
	box_kill(b.place);
	ASSERT(!box_has_ended(t.box) && !box_has_ended(a.place));
	tenant_done(&t);
	site_close(&b);
	site_close(&a);
}
