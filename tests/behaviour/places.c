/* tests/behaviour/places.c - several guests in one sandbox: what they share, and that each ends
 * alone. */
#include "place_fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

/* A guest that waits for the end of its input. */
#define WAITS "echo waits; read line; echo over"

TEST(all_languages_share_files)
{
	static const struct {
		enum guest_kind kind;
		const char *code;
	} table[] = {
		{ GUEST_KIND_PYTHON, "print(open('/workspace/a').read().strip(), end='');"
				     "open('/workspace/a','w').write('python')" },
		{ GUEST_KIND_R, "cat(readLines('/workspace/a', warn=FALSE));"
				"cat('r', file='/workspace/a')" },
		{ GUEST_KIND_NODE, "const f=require('fs');process.stdout.write("
				   "f.readFileSync('/workspace/a','utf8').trim());"
				   "f.writeFileSync('/workspace/a','node')" },
		{ GUEST_KIND_SH, "printf %s \"$(cat /workspace/a)\"; echo sh >/workspace/a" },
	};
	const char *last = "first";
	struct site s;

	site_open(&s, "echo first >/workspace/a; " WAITS, NULL);
	tenant_await(&s.first, "waits");
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		int status = -1;

		if (!site_has(table[i].kind))
			continue;
		const char *text = site_run(&s, table[i].kind, table[i].code, &status);
		/* R may add that it has no program to clean up with. */
		ASSERT_EQ(strncmp(text, last, strlen(last)), 0);
		ASSERT_EQ(status, 0);
		last = guest_name(table[i].kind);
	}
	site_close(&s);
}

TEST(each_runtime_says_hello_on_its_own_wire)
{
	static const enum guest_kind kinds[] = { GUEST_KIND_PYTHON, GUEST_KIND_R, GUEST_KIND_NODE,
						 GUEST_KIND_SH };
	struct tenant t[4] = { 0 };
	struct site s;

	site_open(&s, WAITS, NULL);
	for (size_t i = 0; i < 4; i++)
		if (site_has(kinds[i]))
			site_join(&s, &t[i], kinds[i], NULL);
	for (size_t i = 0; i < 4; i++) {
		char line[4096] = "";

		if (!t[i].box)
			continue;
		if (guest_reads_token(kinds[i])) {
			char word[128];
			int n = snprintf(word, sizeof(word),
					 "{\"type\":\"token\",\"token\":\"%064d\"}\n", 0);
			ASSERT_EQ(write(t[i].wire, word, (size_t)n), n);
		}
		if (read(t[i].wire, line, sizeof(line) - 1) <= 0) {
			tenant_read(&t[i]);
			test_fail(__FILE__, __LINE__, "%s: %s", guest_name(kinds[i]), t[i].text);
		}
		ASSERT_HAS(line, "hello");
		tenant_done(&t[i]);
	}
	site_close(&s);
}

TEST(guests_see_each_others_processes_and_may_signal_them)
{
	struct tenant t;
	struct site s;
	int status;

	site_open(&s, WAITS, NULL);
	site_join(&s, &t, GUEST_KIND_SH,
		  "trap 'echo told; exit 3' USR1; echo $$ >/workspace/pid;"
		  "echo ready; while :; do read -t 1 line; done");
	tenant_await(&t, "ready");
	const char *text = site_run(&s, GUEST_KIND_SH,
				    "p=$(cat /workspace/pid); test -r /proc/$p/stat && echo seen;"
				    "tr '\\0' ' ' </proc/$p/cmdline | cut -c1-7; kill -USR1 $p",
				    &status);
	ASSERT_HAS(text, "seen\nbash -c");
	ASSERT_EQ(status, 0);
	tenant_await(&t, "told");
	ASSERT_EQ(WEXITSTATUS(tenant_wait(&t)), 3);
	tenant_done(&t);
	site_close(&s);
}

TEST(each_guest_has_its_own_end)
{
	struct tenant a, b, c;
	struct site s;

	site_open(&s, WAITS "; exit 9", NULL);
	site_join(&s, &a, GUEST_KIND_SH, WAITS "; exit 4");
	site_join(&s, &b, GUEST_KIND_SH, WAITS "; kill -SEGV $$");
	site_join(&s, &c, GUEST_KIND_SH, WAITS);
	close_fdp(&a.in);
	ASSERT_EQ(WEXITSTATUS(tenant_wait(&a)), 4);
	close_fdp(&b.in);
	ASSERT_EQ(WTERMSIG(tenant_wait(&b)), SIGSEGV);
	ASSERT(!box_has_ended(c.box) && !box_has_ended(s.place));
	/* The first guest is one among others. */
	close_fdp(&s.first.in);
	ASSERT_EQ(WEXITSTATUS(tenant_wait(&s.first)), 9);
	ASSERT(!box_has_ended(c.box) && !box_has_ended(s.place));
	ASSERT_STREQ(site_run(&s, GUEST_KIND_SH, "echo still", NULL), "still\n");
	tenant_done(&a);
	tenant_done(&b);
	tenant_done(&c);
	site_close(&s);
}

/* Pid 1 reports the end of a guest, and a busy machine may let it wait for long. Code for a guest
 * that is dead must not be sent to it meanwhile. */
TEST(a_guest_has_ended_as_soon_as_its_process_has)
{
	struct tenant t;
	struct site s;

	site_open(&s, WAITS, NULL);
	site_join(&s, &t, GUEST_KIND_SH, WAITS);
	tenant_await(&t, "waits");
	ASSERT(!box_has_ended(t.box));
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, box_pid(t.box), 0),
			    .events = POLLIN };
	ASSERT(p.fd >= 0);
	ASSERT_EQ(kill(box_pid(s.place), SIGSTOP), 0);
	ASSERT_EQ(kill(box_pid(t.box), SIGKILL), 0);
	ASSERT_EQ(poll(&p, 1, -1), 1);
	bool has_ended = box_has_ended(t.box);
	ASSERT_EQ(kill(box_pid(s.place), SIGCONT), 0);
	ASSERT(has_ended);
	ASSERT_EQ(WTERMSIG(tenant_wait(&t)), SIGKILL);
	ASSERT(!box_has_ended(s.place));
	close(p.fd);
	tenant_done(&t);
	site_close(&s);
}

TEST(a_program_that_is_not_there_is_a_failure_of_its_guest_alone)
{
	struct cordon_error *e = NULL;
	struct launch l = { .filter = LAUNCH_SH };
	struct box *b = NULL;
	struct site s;

	site_open(&s, WAITS, NULL);
	l.executable = strdup("/usr/bin/nothing-of-this-name");
	struct box_options o = { .policy = &s.policy,
				 .launch = &l,
				 .stdin_fd = -1,
				 .stdout_fd = -1,
				 .stderr_fd = -1,
				 .wire_fd = -1 };
	ASSERT_EQ(box_join(s.place, &o, &b, NULL), 0);
	ASSERT(box_wait_gone(b, deadline_after_ms(60000)));
	ASSERT_EQ(box_look(b).stage, BOX_FAILED);
	ASSERT(box_failure(b, &e) < 0);
	ASSERT_HAS(cordon_error_message(e), "start the interpreter");
	cordon_error_free(e);
	box_free(b);
	launch_done(&l);
	tenant_await(&s.first, "waits");
	ASSERT_EQ(box_look(s.place).stage, BOX_RUNNING);
	site_close(&s);
}

/* How many processes of the place have this command line. */
static const char *count(struct site *s, const char *word)
{
	char code[512];

	snprintf(code, sizeof(code),
		 "n=0; for f in /proc/[0-9]*/cmdline; do x=$(tr '\\0' ' ' <$f 2>/dev/null);"
		 "case $x in '%s ') n=$((n+1));; esac; done; echo $n",
		 word);
	return site_run(s, GUEST_KIND_SH, code, NULL);
}

TEST(ending_a_guest_ends_what_it_started_and_nothing_else)
{
	struct tenant a, b;
	struct site s;

	site_open(&s, WAITS, NULL);
	site_join(&s, &b, GUEST_KIND_SH, "sleep 7002 & " WAITS);
	site_join(&s, &a, GUEST_KIND_SH,
		  "sleep 7001 & (sleep 7001 & sleep 7001) & (setsid sh -c 'sleep 7001; :') &"
		  /* an orphan of its session */
		  "(sleep 7001 & exit) ; until [ $(grep -lx 'sleep.7001.' -a /proc/[0-9]*/cmdline "
		  "2>/dev/null | wc -l) = 5 ]; do :; done; " WAITS);
	tenant_await(&a, "waits");
	tenant_await(&b, "waits");
	ASSERT_STREQ(count(&s, "sleep 7001"), "5\n");
	box_kill(a.box);
	ASSERT_EQ(WTERMSIG(tenant_wait(&a)), SIGKILL);
	/* When box_kill has returned, all of them are dead. */
	ASSERT_STREQ(count(&s, "sleep 7001"), "0\n");
	ASSERT_STREQ(count(&s, "sleep 7002"), "1\n");
	ASSERT(!box_has_ended(b.box) && !box_has_ended(s.first.box));
	close_fdp(&b.in);
	tenant_await(&b, "over");
	tenant_done(&a);
	tenant_done(&b);
	site_close(&s);
}

TEST(what_a_guest_leaves_behind_lives_on)
{
	struct tenant a;
	struct site s;

	site_open(&s, WAITS, NULL);
	/* It starts programs when its guest is long gone: somebody still answers its filter. */
	site_join(&s, &a, GUEST_KIND_SH,
		  "(trap '' HUP; until [ -e /workspace/go ]; do read -t 0.05 <> <(:); done;"
		  "/usr/bin/uname >/workspace/made) >/dev/null 2>&1 & exit 0");
	ASSERT_EQ(tenant_wait(&a), 0);
	tenant_done(&a);
	ASSERT_STREQ(site_run(&s, GUEST_KIND_SH,
			      "touch /workspace/go; until [ -s /workspace/made ]; do :; done;"
			      "cat /workspace/made",
			      NULL),
		     "Linux\n");
	site_close(&s);
}

TEST(a_fork_bomb_ends_with_its_guest)
{
	static const char *const settings[] = { "processes=200", NULL };
	struct tenant bomb, other;
	struct site s;

	site_open(&s, WAITS, settings);
	site_join(&s, &other, GUEST_KIND_SH, WAITS);
	site_join(&s, &bomb, GUEST_KIND_SH,
		  "exec 2>/dev/null; echo bomb; f() { f | f & }; f; read line");
	tenant_await(&bomb, "bomb");
	box_kill(bomb.box);
	ASSERT(box_has_ended(bomb.box));
	ASSERT(!box_has_ended(s.place) && !box_has_ended(other.box));
	ASSERT_STREQ(site_run(&s, GUEST_KIND_SH, "/usr/bin/uname", NULL), "Linux\n");
	tenant_done(&bomb);
	tenant_done(&other);
	site_close(&s);
}

TEST(one_more_than_the_limit_is_refused)
{
	static const char *const settings[] = { "processes=200", NULL };
	struct tenant t[BOX_GUESTS];
	struct site s;

	site_open(&s, WAITS, settings);
	for (int i = 0; i < BOX_GUESTS - 1; i++)
		site_join(&s, &t[i], GUEST_KIND_SH, WAITS);
	ASSERT_EQ(site_try(&s, &t[BOX_GUESTS - 1], GUEST_KIND_SH, WAITS), -CORDON_LIMIT);
	tenant_done(&t[BOX_GUESTS - 1]);
	/* One that ends makes room. */
	tenant_done(&t[7]);
	site_join(&s, &t[7], GUEST_KIND_SH, WAITS);
	for (int i = 0; i < BOX_GUESTS - 1; i++)
		tenant_await(&t[i], "waits");
	for (int i = 0; i < BOX_GUESTS - 1; i++)
		tenant_done(&t[i]);
	site_close(&s);
}

TEST(an_interrupt_reaches_only_its_guest)
{
	static const char code[] = "trap 'echo interrupted; exit 5' INT; echo ready;"
				   "while :; do read -t 1 line; done";
	struct tenant a, b;
	struct site s;

	site_open(&s, "trap 'echo interrupted' INT; " WAITS, NULL);
	site_join(&s, &a, GUEST_KIND_SH, code);
	site_join(&s, &b, GUEST_KIND_SH, code);
	tenant_await(&a, "ready");
	tenant_await(&b, "ready");
	tenant_await(&s.first, "waits");
	ASSERT_EQ(box_interrupt(a.box, deadline_after_ms(60000)), 0);
	ASSERT_EQ(WEXITSTATUS(tenant_wait(&a)), 5);
	ASSERT(!box_has_ended(b.box) && !box_has_ended(s.first.box));
	ASSERT_EQ(box_interrupt(s.first.box, deadline_after_ms(60000)), 0);
	tenant_await(&s.first, "interrupted");
	ASSERT(!box_has_ended(b.box));
	ASSERT(!strstr(b.text, "interrupted"));
	ASSERT_EQ(box_interrupt(b.box, deadline_after_ms(60000)), 0);
	ASSERT_EQ(WEXITSTATUS(tenant_wait(&b)), 5);
	tenant_done(&a);
	tenant_done(&b);
	site_close(&s);
}

/* The guest ends between the two orders that an interrupt is. */
TEST(an_interrupt_that_ends_its_guest_at_once_succeeds)
{
	struct tenant t;
	struct site s;

	site_open(&s, WAITS, NULL);
	for (int i = 0; i < 100; i++) {
		site_join(&s, &t, GUEST_KIND_SH,
			  "trap 'exit 5' INT; echo ready; while :; do :; done");
		tenant_await(&t, "ready");
		ASSERT_EQ(box_interrupt(t.box, deadline_after_ms(60000)), 0);
		ASSERT_EQ(WEXITSTATUS(tenant_wait(&t)), 5);
		tenant_done(&t);
	}
	site_close(&s);
}

TEST(refused_calls_are_reported_to_their_own_guest)
{
	struct tenant a, b;
	struct site s;

	needs(site_has(GUEST_KIND_PYTHON), "python3");
	site_open(&s, WAITS, NULL);
	site_join(&s, &a, GUEST_KIND_PYTHON,
		  "import socket\ntry: socket.socket()\nexcept OSError as e: print(e)");
	site_join(&s, &b, GUEST_KIND_PYTHON, "print(1)");
	ASSERT_EQ(tenant_wait(&a), 0);
	ASSERT_EQ(tenant_wait(&b), 0);
	if (!box_look(a.box).is_nonotify) {
		cleanup_json json_t *of_a = box_denials(a.box, NULL),
				    *of_b = box_denials(b.box, NULL);
		cleanup_json json_t *of_first = box_denials(s.first.box, NULL);

		ASSERT_EQ(json_array_size(of_a), 1);
		ASSERT_STREQ(
			json_string_value(json_object_get(json_array_get(of_a, 0), "operation")),
			"socket");
		ASSERT_EQ(json_array_size(of_b), 0);
		ASSERT_EQ(json_array_size(of_first), 0);
	}
	tenant_done(&a);
	tenant_done(&b);
	site_close(&s);
}

/* A script may end before the event of its start is written, which names its process. */
TEST(a_sandbox_that_has_ended_has_had_its_process)
{
	struct site s;

	site_open(&s, WAITS, NULL);
	pid_t pid = box_pid(s.place);
	ASSERT(pid > 0);
	box_kill(s.place);
	ASSERT(box_is_gone(s.place));
	ASSERT_EQ(box_pid(s.place), pid);
	site_close(&s);
}

TEST(a_place_ends_all_its_guests)
{
	struct tenant a, b;
	struct site s;

	site_open(&s, WAITS, NULL);
	site_join(&s, &a, GUEST_KIND_SH, WAITS);
	site_join(&s, &b, GUEST_KIND_SH, WAITS);
	tenant_await(&a, "waits");
	pid_t pid = box_pid(a.box);
	ASSERT(pid > 0 && kill(pid, 0) == 0);
	box_kill(s.place);
	ASSERT(box_wait_gone(a.box, deadline_after_ms(60000)));
	ASSERT(box_wait_gone(b.box, deadline_after_ms(60000)));
	ASSERT(kill(pid, 0) != 0);
	struct tenant c;
	ASSERT_EQ(site_try(&s, &c, GUEST_KIND_SH, WAITS), -CORDON_STATE);
	tenant_done(&c);
	tenant_done(&a);
	tenant_done(&b);
	site_close(&s);
}

TEST(the_end_of_the_host_ends_all)
{
	int told[2];
	pid_t pids[3] = { 0 };

	ASSERT_EQ(pipe(told), 0);
	pid_t host = fork();
	if (host == 0) {
		struct tenant a, b;
		struct site s;

		close(told[0]);
		site_open(&s, WAITS, NULL);
		site_join(&s, &a, GUEST_KIND_SH, WAITS);
		site_join(&s, &b, GUEST_KIND_SH, WAITS);
		pids[0] = box_pid(s.place);
		pids[1] = box_pid(a.box);
		pids[2] = box_pid(b.box);
		(void)!write(told[1], pids, sizeof(pids));
		for (;;)
			pause();
	}
	close(told[1]);
	ASSERT_EQ(read(told[0], pids, sizeof(pids)), sizeof(pids));
	for (int i = 0; i < 3; i++)
		ASSERT(pids[i] > 1 && kill(pids[i], 0) == 0);
	kill(host, SIGKILL);
	ASSERT_EQ(waitpid(host, NULL, 0), host);
	/* The test's time limit ends this. */
	for (int i = 0; i < 3; i++)
		while (kill(pids[i], 0) == 0)
			usleep(1000);
}

TEST(only_a_place_can_be_joined)
{
	struct cordon_error *e = NULL;
	struct launch l = { .filter = LAUNCH_SH };
	struct box *b = NULL, *more = NULL;
	struct tenant t;
	struct site s;

	site_open(&s, WAITS, NULL);
	site_join(&s, &t, GUEST_KIND_SH, WAITS);
	struct box_options o = { .policy = &s.policy,
				 .launch = &l,
				 .stdin_fd = -1,
				 .stdout_fd = -1,
				 .stderr_fd = -1,
				 .wire_fd = -1 };
	/* Neither a guest of a place nor an ordinary box is one. */
	ASSERT_EQ(box_join(t.box, &o, &more, &e), -CORDON_UNSUPPORTED);
	cordon_error_free(e);
	e = NULL;
	ASSERT_EQ(box_first(s.place, &more, &e), -CORDON_STATE); /* it has been taken */
	cordon_error_free(e);
	ASSERT_EQ(box_start(&o, &b, NULL), 0);
	ASSERT_EQ(box_join(b, &o, &more, NULL), -CORDON_UNSUPPORTED);
	box_free(b);
	tenant_done(&t);
	site_close(&s);
}
