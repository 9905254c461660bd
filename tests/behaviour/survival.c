/* tests/behaviour/survival.c - sessions survive the loss of their template, of the host's
 * descriptors or of a mount's source; and a template that does not start affects no other. */
#include "dialect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "harness/test.h"
#include "wall/linux/format.h"

#define CRASH "import os; os.kill(os.getpid(), 9)"
#define KEEP "open('/home/user/kept', 'w').write('kept')"
#define KEPT "open('/home/user/kept').read()"

/* The first child of any thread of a process; 0: none. */
static pid_t child_of(pid_t pid)
{
	char path[64], text[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	FILE *f = fopen(path, "re");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	return (pid_t)strtol(text, NULL, 10);
}

/* Of the only template that there is: its supervisor (0), its pid 1 (1), its guest (2). */
static pid_t template_pid(int depth)
{
	pid_t pid = child_of(getpid());

	while (depth-- > 0 && pid > 0)
		pid = child_of(pid);
	ASSERT(pid > 0);
	return pid;
}

/* The state letter of /proc, or '-'. */
static char state_of(pid_t pid)
{
	char path[64], text[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	const char *end = strrchr(text, ')');
	return end && end[1] ? end[2] : '-';
}

static void must_have_kept(struct cordon_session *s)
{
	must_be(s, &dialects[0], KEPT, "\"kept\"");
}

static bool is_gone(pid_t pid)
{
	char path[64], text[512] = "";

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return true;
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	const char *state = strrchr(text, ')');
	return !state || state[2] == 'Z' || state[2] == 'X';
}

static void use_while_it_dies(struct cordon_session *s)
{
	struct cordon_result *r = run(s, KEPT);

	if (!cordon_result_success(r))
		ASSERT_STREQ(cordon_result_error_kind(r), "crashed");
	cordon_result_free(r);
}

/* The session dies with its template sooner or later, never without an answer. */
static void kill_the_template(int depth)
{
	struct cordon_session *s = open_with("python", NULL);
	pid_t old = template_pid(3);

	must(s, KEEP);
	ASSERT_EQ(kill(template_pid(depth), SIGKILL), 0);
	while (!is_gone(old))
		use_while_it_dies(s);
	use_while_it_dies(s); /* who used it last may not have noticed */
	must_have_kept(s);
	cleanup_error struct cordon_error *e = NULL;
	if (cordon_session_restart(s, &e) < 0)
		test_fail(__FILE__, __LINE__, "restart: %s", cordon_error_message(e));
	must_have_kept(s);
	cordon_session_close(s);
}

TEST(files_stay_when_the_supervisor_of_the_template_is_killed)
{
	kill_the_template(0);
}

TEST(files_stay_when_pid_1_of_the_template_is_killed)
{
	kill_the_template(1);
}

TEST(files_stay_when_the_template_itself_is_killed)
{
	kill_the_template(2);
}

enum { CROWD = 8, ROUNDS = 25 };

struct member {
	struct cordon_session *session;
	pthread_t thread;
	_Atomic int rounds, errors, losses;
};

static void *work(void *arg)
{
	struct member *m = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct cordon_execute_options o = { .code = KEPT };
		struct cordon_result *r = NULL;

		if (cordon_session_execute(m->session, &o, &r, NULL) < 0)
			m->errors++;
		else if (!cordon_result_success(r) &&
			 strcmp(cordon_result_error_kind(r), "crashed") != 0)
			m->losses++; /* an exception: the file is not there */
		cordon_result_free(r);
		m->rounds++;
	}
	return NULL;
}

TEST(many_sessions_keep_their_files_when_templates_are_killed)
{
	struct member all[CROWD] = { 0 };

	for (int i = 0; i < CROWD; i++) {
		all[i].session = open_with("python", NULL);
		must(all[i].session, KEEP);
	}
	for (int i = 0; i < CROWD; i++)
		ASSERT_EQ(pthread_create(&all[i].thread, NULL, work, &all[i]), 0);
	for (int killed = 0; killed < 4; killed++) {
		while (all[0].rounds < (killed + 1) * 4)
			usleep(1000);
		pid_t supervisor = child_of(getpid()), init = supervisor ? child_of(supervisor) : 0;
		if (init > 0)
			kill(init, SIGKILL);
		while (init > 0 && kill(init, 0) == 0) /* gone when all below it is */
			usleep(1000);
	}
	for (int i = 0; i < CROWD; i++) {
		pthread_join(all[i].thread, NULL);
		ASSERT_EQ(all[i].losses, 0);
		ASSERT_EQ(all[i].errors, 0);
		struct cordon_result *r = run(all[i].session, "1");
		cordon_result_free(r);
		must_have_kept(all[i].session);
		cordon_session_close(all[i].session);
	}
}

/* From here on nothing can be opened; to be given back with enough(). */
static void take_all_descriptors(struct rlimit *before)
{
	struct rlimit less = { .rlim_cur = 400 };
	int fd;

	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, before), 0);
	while ((fd = dup(0)) >= 0 && fd < 400)
		;
	close(fd);
	less.rlim_max = before->rlim_max;
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &less), 0);
	ASSERT(dup(0) < 0 && errno == EMFILE);
}

static void enough(const struct rlimit *before)
{
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, before), 0);
}

TEST(files_stay_when_there_are_no_descriptors)
{
	struct cordon_session *s = open_with("python", NULL);
	struct rlimit before;

	must(s, KEEP);
	take_all_descriptors(&before);
	/* The answer is there, and says what could not be done. */
	struct cordon_result *r = run_for(s,
					  "import time\n"
					  "while True:\n"
					  "    try: time.sleep(60)\n"
					  "    except BaseException: pass",
					  300);
	ASSERT_STREQ(cordon_result_error_kind(r), "timeout");
	cleanup_free char *warnings = cordon_result_warnings_text(r);
	ASSERT_HAS(warnings, "could not be replaced");
	ASSERT_HAS(warnings, "Too many open files");
	cordon_result_free(r);
	ASSERT(!cordon_session_is_alive(s));
	cleanup_error struct cordon_error *e = NULL, *again = NULL;
	struct cordon_execute_options o = { .code = "1" };
	ASSERT(cordon_session_execute(s, &o, &r, &e) < 0);
	ASSERT(cordon_session_restart(s, &again) < 0);
	enough(&before);
	cleanup_free char *bytes = NULL;
	size_t len;
	ASSERT_EQ(cordon_file_read(s, "/home/user/kept", &bytes, &len, NULL), 0);
	must_have_kept(s);
	cordon_session_close(s);
}

/* poll(2) refuses more descriptors than the limit has; nobody may wait for ever then. */
TEST(an_execution_ends_where_the_host_cannot_wait)
{
	struct cordon_session *s = open_with("python", NULL);
	struct rlimit before, less;

	must(s, KEEP);
	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	less = before;
	less.rlim_cur = 4;
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &less), 0);
	struct cordon_result *r = run_for(s, "while True: pass", 300);
	enough(&before);
	ASSERT_STREQ(cordon_result_error_kind(r), "internal");
	ASSERT_HAS(cordon_result_error(r), "cannot wait");
	cordon_result_free(r);
	must_have_kept(s);
	cordon_session_close(s);
}

/* A child that lifts its own limit, after the execution has ended and with no other to come. */
TEST(what_runs_on_between_executions_is_counted)
{
	struct cordon_session *s = open_with("python", "cpu_seconds=1");

	must(s, KEEP);
	must(s, "import os, resource\n"
		"if os.fork() == 0:\n"
		"    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]\n"
		"    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))\n"
		"    while True: pass");
	ASSERT(cordon_session_is_alive(s));
	while (cordon_session_is_alive(s))
		usleep(10000);
	struct cordon_result *r = run(s, KEPT);
	cleanup_free char *warnings = cordon_result_warnings_text(r);
	ASSERT_HAS(warnings, "used up the CPU time");
	ASSERT_STREQ(cordon_result_value_json(r), "\"kept\"");
	cordon_result_free(r);
	cordon_session_close(s);
}

TEST(a_gateway_that_was_killed_is_replaced)
{
	struct cordon_session *s = open_with("python", "network.allow=localhost");
	char path[64], name[32] = "";
	pid_t gateway = child_of(getpid()); /* the first that is started */

	snprintf(path, sizeof(path), "/proc/%d/comm", gateway);
	FILE *f = fopen(path, "re");
	ASSERT(f && fgets(name, sizeof(name), f));
	fclose(f);
	ASSERT_HAS(name, "cordon-gateway");
	must(s, KEEP);
	ASSERT_EQ(kill(gateway, SIGKILL), 0);
	while (state_of(gateway) != 'Z')
		usleep(1000);
	struct cordon_result *r = run(s, KEPT);
	cleanup_free char *warnings = cordon_result_warnings_text(r);
	ASSERT_HAS(warnings, "the gateway had ended");
	ASSERT_STREQ(cordon_result_value_json(r), "\"kept\"");
	cordon_result_free(r);
	ASSERT(child_of(getpid()) != gateway);
	r = run(s, KEPT);
	cleanup_free char *none = cordon_result_warnings_text(r);
	ASSERT_STREQ(none, "");
	cordon_result_free(r);
	cordon_session_close(s);
}

TEST(files_stay_when_the_source_of_a_mount_is_gone)
{
	char dir[] = "/tmp/survival-XXXXXX", path[64], set[128];

	ASSERT(mkdtemp(dir) != NULL);
	ASSERT_EQ(chmod(dir, 0755), 0);
	snprintf(path, sizeof(path), "%s/file", dir);
	FILE *f = fopen(path, "we");
	ASSERT(f != NULL);
	fputs("mounted", f);
	fclose(f);
	snprintf(set, sizeof(set), "mounts=%s:/home/user/data:snapshot", dir);
	struct cordon_session *s = open_with("python", set);
	must(s, KEEP);
	ASSERT_EQ(unlink(path), 0);
	ASSERT_EQ(rmdir(dir), 0);
	must_fail(s, CRASH, 0, "crashed", NULL);
	must_have_kept(s);
	must_be(s, &dialects[0], "open('/home/user/data/file').read()", "\"mounted\"");
	ASSERT_EQ(cordon_session_restart(s, NULL), 0);
	must_have_kept(s);
	must_be(s, &dialects[0], "open('/home/user/data/file').read()", "\"mounted\"");
	cordon_session_close(s);
}

TEST(what_is_too_deep_to_copy_is_named_and_the_rest_is_kept)
{
	static const char deep[] = "import os\nos.chdir('/home/user')\n"
				   "for i in range(30):\n    os.mkdir('d' * 200)\n"
				   "    os.chdir('d' * 200)";
	struct cordon_session *s = open_with("python", NULL);

	must(s, KEEP);
	must(s, deep);
	struct cordon_result *r = run(s, CRASH);
	cleanup_free char *warnings = cordon_result_warnings_text(r);
	ASSERT_HAS(warnings, "not all files could be kept: ");
	ASSERT_HAS(warnings, "nested too deeply, the first in '/home/user/ddd");
	cordon_result_free(r);
	must_have_kept(s);
	must(s, "import os; assert os.path.isdir('/home/user/' + ('d' * 200 + '/') * 10)");
	must(s, "import shutil; shutil.rmtree('/home/user/' + 'd' * 200)");
	must(s, deep);
	cleanup_error struct cordon_error *e = NULL;
	ASSERT_EQ(cordon_session_restart(s, &e), -CORDON_LIMIT);
	ASSERT_HAS(cordon_error_message(e), "nested too deeply");
	must_have_kept(s);
	cordon_session_close(s);
}

static void stop(pid_t pid)
{
	ASSERT_EQ(kill(pid, SIGSTOP), 0);
	while (state_of(pid) != 'T')
		usleep(1000);
}

TEST(a_stopped_template_is_retired)
{
	struct cordon_session *s = open_with("python", NULL);
	pid_t guest = template_pid(2);

	must(s, KEEP);
	stop(guest);
	struct cordon_session *other = open_with("python", NULL);
	must(other, "1");
	must_have_kept(s); /* which lives in the stopped one */
	must_fail(s, CRASH, 0, "crashed", NULL);
	must_have_kept(s);
	cordon_session_close(s);
	cordon_session_close(other);
}

/* A copy of another's descriptor, which only root may have of what is in a sandbox. */
static int copy_of(pid_t pid, int fd)
{
	cleanup_close int process = (int)syscall(SYS_pidfd_open, pid, 0);
	int copy = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, fd, 0);

	if (copy < 0 && errno == EPERM)
		test_skip("needs the right to copy descriptors of a guest");
	ASSERT(copy >= 0);
	return copy;
}

/* As one has them that was stopped while it forked: neither socket tells of the session's end. */
TEST(a_crash_is_told_while_the_template_holds_the_sessions_sockets)
{
	struct cordon_session *s = open_with("python", NULL);
	pid_t init = template_pid(3), guest = template_pid(4);

	must(s, KEEP);
	int control = copy_of(init, INIT_FD_CONTROL), wire = copy_of(guest, INIT_FD_WIRE);
	must_fail(s, CRASH, 20000, "crashed", NULL);
	must_have_kept(s);
	close(control);
	close(wire);
	cordon_session_close(s);
}

struct transfer {
	struct cordon_session *session;
	int tar, code;
};

static void *put_tar(void *arg)
{
	struct transfer *t = arg;

	t->code = cordon_file_put_tar(t->session, "/home/user", t->tar, NULL, NULL);
	return NULL;
}

/* An empty file as an archive has it. */
static void write_entry(int fd, const char *name)
{
	char head[512] = "";
	unsigned sum = 0;

	snprintf(head, 100, "%s", name);
	strcpy(head + 100, "0000644");
	strcpy(head + 108, "0000000");
	strcpy(head + 116, "0000000");
	strcpy(head + 124, "00000000000");
	strcpy(head + 136, "00000000000");
	memset(head + 148, ' ', 8);
	head[156] = '0';
	memcpy(head + 257, "ustar\00000", 8);
	for (size_t i = 0; i < sizeof(head); i++)
		sum += (unsigned char)head[i];
	snprintf(head + 148, 8, "%06o", sum);
	ASSERT_EQ(write(fd, head, sizeof(head)), (ssize_t)sizeof(head));
}

static bool is_there(struct cordon_session *s, const char *path)
{
	struct cordon_file_info info;

	return cordon_file_stat(s, path, &info, NULL) == 0;
}

/* What goes on in the old workspace while the session gets a new one is not called done. */
TEST(a_change_that_a_restart_overtakes_is_told)
{
	static const char end[1024];
	struct transfer t = { .session = open_with("python", NULL) };
	pthread_t thread;
	int tar[2];

	ASSERT_EQ(pipe(tar), 0);
	t.tar = tar[0];
	ASSERT_EQ(pthread_create(&thread, NULL, put_tar, &t), 0);
	write_entry(tar[1], "early");
	while (!is_there(t.session, "/home/user/early"))
		usleep(1000);
	ASSERT_EQ(cordon_session_restart(t.session, NULL), 0);
	write_entry(tar[1], "late");
	ASSERT_EQ(write(tar[1], end, sizeof(end)), (ssize_t)sizeof(end));
	close(tar[1]);
	pthread_join(thread, NULL);
	ASSERT(is_there(t.session, "/home/user/early"));
	ASSERT(is_there(t.session, "/home/user/late") || t.code == -CORDON_STATE);
	close(tar[0]);
	cordon_session_close(t.session);
}

struct opening {
	struct cordon_policy *policy;
	struct cordon_session *session;
	_Atomic bool is_over;
};

static void *open_slowly(void *arg)
{
	struct opening *o = arg;
	struct cordon_session_options options = { .guest = "python", .policy = o->policy };

	(void)cordon_session_open(&options, &o->session, NULL);
	o->is_over = true;
	return NULL;
}

/* The supervisor that was started last: a child of the thread that has started it. */
static pid_t last_child(void)
{
	DIR *d = opendir("/proc/self/task");
	pid_t last = 0;

	ASSERT(d != NULL);
	for (struct dirent *e; (e = readdir(d));) {
		char path[300], text[1024] = "";

		snprintf(path, sizeof(path), "/proc/self/task/%s/children", e->d_name);
		FILE *f = fopen(path, "re");
		if (f && !fgets(text, sizeof(text), f))
			text[0] = '\0';
		if (f)
			fclose(f);
		char *at = text;
		for (long one; (one = strtol(at, &at, 10)) > 0;)
			last = one > last ? (pid_t)one : last;
	}
	closedir(d);
	return last;
}

/* Stops every supervisor that is not the known one, until told to end. */
struct stopper {
	pid_t known;
	_Atomic bool is_over;
	_Atomic int stopped;
};

static void *stop_all(void *arg)
{
	struct stopper *p = arg;

	while (!p->is_over) {
		pid_t pid = last_child();

		if (pid > 0 && pid != p->known && state_of(pid) != 'T' && kill(pid, SIGSTOP) == 0)
			p->stopped++;
	}
	return NULL;
}

TEST_WITHIN(a_template_that_does_not_start_is_nobody_elses_matter, 110)
{
	struct cordon_session *s = open_with("python", NULL);
	struct stopper stopper = { .known = template_pid(0) };
	struct opening slow = { .policy = new_policy("timeout_ms=12345") };
	pthread_t opener, stops;

	must(s, KEEP);
	ASSERT_EQ(pthread_create(&stops, NULL, stop_all, &stopper), 0);
	ASSERT_EQ(pthread_create(&opener, NULL, open_slowly, &slow), 0);
	while (stopper.stopped == 0 && !slow.is_over)
		usleep(1000);
	/* As long as the other one does not come up: what needs no template, or another. */
	struct cordon_session *other = open_with("python", NULL);
	must(other, "1");
	cordon_session_close(other);
	must_fail(s, "while True: pass", 300, "timeout", NULL);
	must_have_kept(s);
	stopper.is_over = true;
	pthread_join(stops, NULL);
	ASSERT(stopper.stopped > 0);
	/* One that was stopped before its exec has stopped the thread that waits for that. */
	for (; !slow.is_over; usleep(1000))
		if (last_child() > 0)
			(void)kill(last_child(), SIGCONT);
	pthread_join(opener, NULL);
	cordon_session_close(slow.session);
	cordon_session_close(s);
	cordon_policy_free(slow.policy);
}
