/* bench/phases.c - where a cold launch spends its time: the moments that its processes record on
 * the status page, and each layer alone. Prints medians. On a shared machine two more figures mean
 * more: the fastest launch as a whole, and the least time of each step since the previous step of
 * its process.
 * Usage: phases [ROUNDS] */
#include <cordon/cordon.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "guest/guest.h"
#include "policy/policy.h"
#include "session/engine.h"
#include "session/session.h"
#include "wall/linux/blueprint.h"
#include "wall/linux/kernel.h"
#include "wall/linux/linux_box.h"

enum { MAX_ROUNDS = 1000, ROWS = 32 };

struct row {
	char name[80];
	double us[MAX_ROUNDS];
	size_t count;
	double step; /* the least; 0: it follows nothing */
};

static struct row rows[ROWS];

static void check(int r, const struct cordon_error *e, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, e ? cordon_error_message(e) : "failed");
	exit(1);
}

static void note(size_t i, const char *name, uint64_t from, uint64_t to)
{
	struct row *r = &rows[i];

	snprintf(r->name, sizeof(r->name), "%s", name);
	if (r->count < MAX_ROUNDS)
		r->us[r->count++] = to >= from ? (double)(to - from) / 1000 : 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The round that was over first; what has no last row is no launch. */
static size_t fastest_round(int last_row)
{
	const struct row *r = &rows[last_row < 0 ? 0 : last_row];
	size_t best = 0;

	for (size_t i = 1; i < r->count; i++)
		if (r->us[i] < r->us[best])
			best = i;
	return best;
}

static void print(const char *title, int last_row)
{
	size_t fastest = fastest_round(last_row);

	printf("%-68s%8s%8s%8s\n", title, last_row < 0 ? "least" : "fastest", "median",
	       last_row < 0 ? "" : "step");
	for (size_t i = 0; i < ROWS; i++) {
		struct row *r = &rows[i];
		double one = r->us[fastest];

		if (r->count == 0)
			continue;
		qsort(r->us, r->count, sizeof(*r->us), compare);
		printf("  %-66s%8.0f%8.0f", r->name, last_row < 0 ? r->us[0] : one,
		       r->us[r->count / 2]);
		printf(r->step > 0 ? "%8.0f\n" : "\n", r->step);
	}
	memset(rows, 0, sizeof(rows));
	printf("\n");
}

/* ---- the moments of a launch */

static const char *const moments[MARK_COUNT] = {
	[MARK_SUPERVISOR] = "supervisor: cordon-init runs",
	[MARK_SPACES] = "pid 1: runs in user, pid, mount, ipc and uts namespaces",
	[MARK_NETWORK] = "guest's process: has a network namespace",
	[MARK_BASE] = "pid 1: ids mapped, nesting forbidden, what every root has is there",
	[MARK_PLAN] = "pid 1: has the plan",
	[MARK_ROOT] = "pid 1: binds, proc, pivot_root and workspace are done",
	[MARK_JOINED] = "pid 1: shares the network and cgroup namespaces",
	[MARK_SEALED] = "guest's process: limits, capabilities, Landlock, filter; proven",
	[MARK_LEFT] = "pid 1: host's root unmounted, namespaces proven, groups joined",
	[MARK_EXEC] = "guest's process: becomes the interpreter",
	[MARK_EXITED] = "pid 1: the interpreter has ended",
	[MARK_EMPTY] = "supervisor: pid 1 is reaped, its namespaces are gone",
};

/* What a step follows in its own process; MARK_COUNT: nothing that can be told from waiting. */
static const enum mark before[MARK_COUNT] = {
	[MARK_SUPERVISOR] = MARK_COUNT, [MARK_SPACES] = MARK_SUPERVISOR,
	[MARK_NETWORK] = MARK_SPACES,   [MARK_BASE] = MARK_SPACES,
	[MARK_PLAN] = MARK_COUNT,       [MARK_ROOT] = MARK_PLAN,
	[MARK_JOINED] = MARK_NETWORK,   [MARK_SEALED] = MARK_JOINED,
	[MARK_LEFT] = MARK_JOINED,      [MARK_EXEC] = MARK_COUNT,
	[MARK_EXITED] = MARK_EXEC,      [MARK_EMPTY] = MARK_EXITED,
};

static void note_step(struct row *r, uint64_t from, uint64_t to)
{
	double us = from && to > from ? (double)(to - from) / 1000 : 0;

	if (us > 0 && (r->step <= 0 || us < r->step))
		r->step = us;
}

static void note_marks(const struct status *s, uint64_t start, size_t first)
{
	for (size_t i = 0; i < MARK_COUNT; i++)
		if (s->marks[i] != 0) {
			note(first + i, moments[i], start, s->marks[i]);
			if (before[i] < MARK_COUNT)
				note_step(&rows[first + i], s->marks[before[i]], s->marks[i]);
		}
}

static void launch_shell(const struct policy *p)
{
	struct engine_options o = {
		.policy = p, .kind = GUEST_KIND_SH, .script = ":", .script_len = 1
	};
	struct cordon_error *e = NULL;
	struct engine *engine = NULL;
	uint64_t start = clock_now_ns();

	check(engine_start(&o, &engine, &e), e, "start the shell");
	uint64_t started = clock_now_ns();
	check(box_wait_gone(engine->box, deadline_after_ms(10000)) ? 0 : -1, NULL, "wait for it");
	uint64_t gone = clock_now_ns();
	note(0, "host: view, pipes, supervisor, control groups, plan: handed over", start, started);
	note_marks(linux_box_status(engine->box), start, 1);
	engine_free(engine);
	note(MARK_COUNT + 1, "host: knows of the end", start, gone);
	uint64_t end = clock_now_ns();
	note(MARK_COUNT + 2, "host: control groups removed, supervisor reaped", start, end);
	note_step(&rows[0], start, started);
	note_step(&rows[MARK_COUNT + 2], gone, end);
}

static void launch_python(void)
{
	struct cordon_session_options o = { .guest = "python", .cold = true };
	struct cordon_execute_options x = { .code = "print(1)" };
	struct cordon_result *result = NULL;
	struct cordon_session *s = NULL;
	struct cordon_error *e = NULL;
	uint64_t start = clock_now_ns();

	check(cordon_session_open(&o, &s, &e), e, "open a session");
	uint64_t opened = clock_now_ns();
	check(cordon_session_execute(s, &x, &result, &e), e, "execute");
	uint64_t answered = clock_now_ns();
	box_kill(s->engine->box);
	note_marks(linux_box_status(s->engine->box), start, 0);
	uint64_t exec = linux_box_status(s->engine->box)->marks[MARK_EXEC];
	cordon_result_free(result);
	cordon_session_close(s);
	note(MARK_EXITED, "host: hello has come: interpreter and runtime are up", start, opened);
	note(MARK_COUNT, "host: has the result", start, answered);
	uint64_t end = clock_now_ns();
	note(MARK_COUNT + 1, "host: all is gone", start, end);
	note_step(&rows[MARK_EXITED], exec, opened);
	note_step(&rows[MARK_COUNT], opened, answered);
	note_step(&rows[MARK_COUNT + 1], answered, end);
}

/* ---- each layer by itself */

static void time_host(const struct policy *p)
{
	struct cgroup_options group = { 0 };
	struct guest_options guest = { .kind = GUEST_KIND_PYTHON,
				       .mode = GUEST_SESSION,
				       .policy = p };
	struct launch launch = { 0 };
	struct cordon_error *e = NULL;
	struct policy copy = { 0 };
	struct cgroup c = { 0 };
	struct machine m;
	struct buf plan = { 0 };

	uint64_t t[8] = { clock_now_ns() };
	check(policy_init_level(&copy, LEVEL_STANDARD, &e), e, "policy");
	t[1] = clock_now_ns();
	machine_look_first(&m);
	machine_look_further(&m);
	t[2] = clock_now_ns();
	check(guest_launch(&guest, &launch, &e), e, "guest");
	t[3] = clock_now_ns();
	group.owner_gid = m.is_root ? m.box_uid : (gid_t)-1;
	check(cgroup_make(&m, p, &group, &c, &e), e, "control groups");
	t[4] = clock_now_ns();
	struct blueprint_options b = {
		.policy = p, .launch = &launch, .machine = &m, .cgroup = &c
	};
	check(blueprint_make(&b, &plan, &e), e, "plan");
	t[5] = clock_now_ns();
	cgroup_done(&c);
	t[6] = clock_now_ns();
	static const char *const names[] = { "the policy of a level",
					     "what this machine can enforce",
					     "Python's view: interpreter, libraries, runtime",
					     "control groups made and limited",
					     "Python's plan",
					     "control groups removed" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		note(i, names[i], t[i], t[i + 1]);
	launch_done(&launch);
	policy_done(&copy);
	buf_done(&plan);
}

/* A child in new namespaces that ends at once; the time until it is reaped. */
static void time_namespaces(size_t row, const char *name, uint64_t flags)
{
	struct clone3_args args = { .flags = flags, .exit_signal = SIGCHLD };
	uint64_t start = clock_now_ns();
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return;
	(void)waitpid((pid_t)pid, NULL, 0);
	note(row, name, start, clock_now_ns());
}

static void time_filter(size_t row, uint64_t *shared)
{
	size_t len;
	const void *bytes = blueprint_filter(LAUNCH_SH, false, FILTER_WHOLE, &len);
	struct sock_fprog prog = { .len = (unsigned short)(len / sizeof(struct sock_filter)),
				   .filter = (struct sock_filter *)(uintptr_t)bytes };
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		shared[0] = clock_now_ns();
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			&prog);
		shared[1] = clock_now_ns();
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
	note(row, "the filter loaded", shared[0], shared[1]);
}

static void time_layers(const struct policy *p, uint64_t *shared)
{
	static const struct {
		const char *name;
		uint64_t flags;
	} spaces[] = {
		{ "a process that ends at once: clone, exit, wait", 0 },
		{ "the same in a new user namespace", CLONE_NEWUSER },
		{ "in new user and pid namespaces", CLONE_NEWUSER | CLONE_NEWPID },
		{ "in new user and uts namespaces", CLONE_NEWUSER | CLONE_NEWUTS },
		{ "in new user and cgroup namespaces", CLONE_NEWUSER | CLONE_NEWCGROUP },
		{ "in new user and ipc namespaces", CLONE_NEWUSER | CLONE_NEWIPC },
		{ "in new user and mount namespaces", CLONE_NEWUSER | CLONE_NEWNS },
		{ "in new user and network namespaces", CLONE_NEWUSER | CLONE_NEWNET },
		{ "in all seven", CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWCGROUP |
					  CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWNET },
	};
	enum { HOST_ROWS = 6 };

	time_host(p);
	for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++)
		time_namespaces(HOST_ROWS + i, spaces[i].name, spaces[i].flags);
	time_filter(HOST_ROWS + sizeof(spaces) / sizeof(*spaces), shared);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 60;
	struct cordon_error *e = NULL;
	cleanup_policy struct policy p = { 0 };
	uint64_t *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	check(policy_init_level(&p, LEVEL_STANDARD, &e), e, "policy");
	if (rounds < 1 || rounds > MAX_ROUNDS || shared == MAP_FAILED)
		return 2;
	if (geteuid() == 0 && nice(-10) == -1 && errno != 0)
		fprintf(stderr, "phases: not at a higher priority\n");
	for (int i = 0; i < rounds; i++)
		launch_shell(&p);
	print("bash -c : (us since the host began; several processes at once)", MARK_COUNT + 2);
	for (int i = 0; i < rounds; i++)
		launch_python();
	print("Python print(1) (us since the host began)", MARK_COUNT + 1);
	for (int i = 0; i < rounds; i++)
		time_layers(&p, shared);
	print("each by itself (us)", -1);
	munmap(shared, 4096);
	return 0;
}
