/* bench/layers.c - where the time of a session goes, layer by layer: opened fresh from a template,
 * used for the first and for another time, taken from a pool, closed. Medians of each layer, in
 * microseconds, from the marks that host and supervisor leave (session/timeline.h,
 * wall/linux/format.h) and from the moment at which the code itself looked at the clock. Usage:
 * layers [ROUNDS [PERCENT]] (another percentile than 50: on a busy machine the lower ones tell
 * more) */
#include <cordon/cordon.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "session/session.h"
#include "wall/linux/linux_box.h"

enum { MAX_ROUNDS = 1000, MAX_LAYERS = 40, MAX_SUBJECTS = 4, POOL_SIZE = 2 };

struct layer {
	const char *name;
	double us[MAX_ROUNDS];
	size_t count;
};

struct subject {
	const char *name, *guest, *code;
	bool is_real; /* its code tells real time in microseconds, not monotonic nanoseconds */
	struct cordon_policy *policy;
	struct cordon_pool *pool;
	struct layer layers[MAX_LAYERS];
	size_t next, count;
};

static void check(int r, const struct cordon_error *e, const char *what)
{
	if (r >= 0)
		return;
	for (; e; e = cordon_error_cause(e))
		fprintf(stderr, "%s: %s\n", what, cordon_error_message(e));
	exit(1);
}

/* The layers come in the same order in every round; the name of a sum begins with a space. */
static void add(struct subject *t, const char *name, double ns)
{
	struct layer *l = &t->layers[t->next++];

	l->name = name;
	if (l->count < MAX_ROUNDS)
		l->us[l->count++] = ns / 1e3;
	if (t->next > t->count)
		t->count = t->next;
}

static void between(struct subject *t, const char *name, uint64_t from, uint64_t to)
{
	add(t, name, (double)to - (double)from);
}

/* When the code ran, on the monotonic clock. */
static uint64_t told_ns(const struct subject *t, struct cordon_result *r)
{
	const char *text = cordon_result_value_json(r);
	struct timespec real, mono;

	if (!text)
		return 0;
	if (!t->is_real)
		return strtoull(text, NULL, 10);
	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	double behind =
		(double)(real.tv_sec - mono.tv_sec) * 1e9 + (double)(real.tv_nsec - mono.tv_nsec);
	return (uint64_t)(strtod(text, NULL) * 1e3 - behind);
}

/* CPU time that a process has used, which tells more than the clock where others work too. */
static double cpu_ns(pid_t pid)
{
	struct timespec ts = { 0 };
	clockid_t clock = 0;

	if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
		return 0;
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* How many page faults a process has had. */
static double faults(pid_t pid)
{
	char path[64], text[1024];
	double count = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	const char *at = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	for (int field = 2; at && field < 10; field++)
		at = strchr(at + 1, ' ');
	if (at)
		count = strtod(at, NULL);
	if (f)
		fclose(f);
	return count;
}

static void used(struct subject *t, struct cordon_session *s)
{
	pid_t guest = linux_box_guest_pid(linux_box(s->engine->box));

	add(t, "(CPU time of the guest so far)", cpu_ns(guest));
	add(t, "(its page faults so far, a number)", faults(guest) * 1e3);
}

static void execute(struct subject *t, struct cordon_session *s)
{
	struct cordon_error *e = NULL;
	struct cordon_result *r = NULL;
	const uint64_t *at = s->timeline.at;

	check(cordon_session_execute(s, &(struct cordon_execute_options){ .code = t->code }, &r,
				     &e),
	      e, "execute");
	if (!cordon_result_success(r)) {
		fprintf(stderr, "%s: %s\n", t->code, cordon_result_error(r));
		exit(1);
	}
	uint64_t ran = told_ns(t, r);
	between(t, "host: checks, streams, message out", at[TIMELINE_EXECUTE], at[TIMELINE_SENT]);
	between(t, "guest: wake-up, message in, compile, run", at[TIMELINE_SENT], ran);
	between(t, "guest: value, message out; host: wake-up", ran, at[TIMELINE_ANSWERED]);
	between(t, "host: evidence, verdict, figures", at[TIMELINE_ANSWERED],
		at[TIMELINE_CONCLUDED]);
	between(t, "  sum", at[TIMELINE_EXECUTE], at[TIMELINE_CONCLUDED]);
	cordon_result_free(r);
}

static struct cordon_session *open_fresh(struct subject *t)
{
	struct cordon_error *e = NULL;
	struct cordon_session *s = NULL;
	struct cordon_session_options o = { .guest = t->guest, .policy = t->policy };

	check(cordon_session_open(&o, &s, &e), e, t->guest);
	const uint64_t *at = s->timeline.at, *in = linux_box_status(s->engine->box)->marks;
	between(t, "host: policy, tool calls, log, welcome", at[TIMELINE_OPEN],
		at[TIMELINE_PREPARED]);
	between(t, "host: the template is found", at[TIMELINE_PREPARED], at[TIMELINE_TEMPLATE]);
	between(t, "host: pipes, sockets, cgroups, status page", at[TIMELINE_TEMPLATE],
		at[TIMELINE_RESOURCES]);
	between(t, "template: wake-up, clone with namespaces", at[TIMELINE_RESOURCES],
		in[MARK_SPACES]);
	between(t, "pid 1: control groups joined", in[MARK_SPACES], in[MARK_GROUPS]);
	between(t, "pid 1: ids, host name, cgroup namespace", in[MARK_GROUPS], in[MARK_MAPPED]);
	between(t, "pid 1: workspace and /proc mounted", in[MARK_MAPPED], in[MARK_ROOT]);
	between(t, "guest: forked (page tables copied)", in[MARK_ROOT], in[MARK_FORKED]);
	between(t, "guest: limits, caps, Landlock, filter", in[MARK_FORKED], in[MARK_FILTERED]);
	between(t, "guest: layers read back", in[MARK_FILTERED], in[MARK_SEALED]);
	between(t, "guest: hello; host: wake-up", in[MARK_SEALED], at[TIMELINE_HELLO]);
	between(t, "host: welcome, workspace, log", at[TIMELINE_HELLO], at[TIMELINE_OPENED]);
	between(t, "  sum", at[TIMELINE_OPEN], at[TIMELINE_OPENED]);
	usleep(20000); /* as if somebody thought about what to execute */
	add(t, "(CPU time of pid 1)", cpu_ns(box_pid(s->engine->box)));
	used(t, s);
	return s;
}

static void close_down(struct subject *t, struct cordon_session *s)
{
	uint64_t a = clock_now_ns();

	box_kill(s->engine->box);
	uint64_t b = clock_now_ns();
	cordon_session_close(s);
	uint64_t c = clock_now_ns();
	between(t, "kernel: killed, everything in it is gone", a, b);
	between(t, "host: descriptors, control groups, memory", b, c);
	between(t, "  sum", a, c);
}

/* What the pool's thread makes and buries meanwhile is not what is measured. */
static void settle(struct cordon_pool *p)
{
	for (int i = 0; i < 200 && cordon_pool_get_status(p).idle < POOL_SIZE; i++)
		usleep(2000);
	usleep(20000);
}

static void use_pool(struct subject *t)
{
	struct cordon_error *e = NULL;
	struct cordon_session *s = NULL;
	uint64_t a = clock_now_ns();

	check(cordon_pool_acquire(t->pool, 10000, &s, &e), e, "acquire");
	uint64_t b = clock_now_ns();
	pid_t guest = linux_box_guest_pid(linux_box(s->engine->box));
	double cpu = cpu_ns(guest), had = faults(guest);
	between(t, "host: taken from the pool", a, b);
	execute(t, s);
	add(t, "(CPU time of the guest for it)", cpu_ns(guest) - cpu);
	add(t, "(its page faults for it, a number)", (faults(guest) - had) * 1e3);
	uint64_t c = clock_now_ns();
	cordon_pool_release(t->pool, s);
	between(t, "host: given back", c, clock_now_ns());
	settle(t->pool);
}

static void measure(struct subject *t)
{
	t->next = 0;
	struct cordon_session *s = open_fresh(t);
	execute(t, s);
	used(t, s);
	execute(t, s);
	close_down(t, s);
	usleep(5000);
	use_pool(t);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print(struct subject *all, size_t count, size_t percent)
{
	static const struct {
		size_t first;
		const char *title;
	} parts[] = { { 0, "opened, fresh from a template" },
		      { 16, "first execution, after a pause" },
		      { 23, "next execution, at once" },
		      { 28, "closed" },
		      { 31, "taken from a pool, executed, given back" } };
	size_t part = 0;

	char title[64];

	snprintf(title, sizeof(title), "%zu%% of the rounds are below, us", percent);
	printf("%-46s", percent == 50 ? "median, microseconds" : title);
	for (size_t k = 0; k < count; k++)
		printf(" %8s", all[k].name);
	printf("\n");
	for (size_t i = 0; i < all[0].count; i++) {
		if (part < sizeof(parts) / sizeof(*parts) && parts[part].first == i)
			printf("%s\n", parts[part++].title);
		printf("  %-44s", all[0].layers[i].name);
		for (size_t k = 0; k < count; k++) {
			struct layer *l = &all[k].layers[i];

			qsort(l->us, l->count, sizeof(double), compare);
			printf(" %8.0f", l->us[l->count * percent / 100]);
		}
		printf("\n");
	}
}

static void start(struct subject *t, const char *preload)
{
	struct cordon_error *e = NULL;

	check(cordon_policy_new(NULL, &t->policy, &e), e, "policy");
	if (preload)
		check(cordon_policy_set(t->policy, preload, &e), e, preload);
	struct cordon_pool_options o = { .session = { .guest = t->guest, .policy = t->policy },
					 .size = POOL_SIZE,
					 .max_size = 2 * POOL_SIZE };
	check(cordon_pool_new(&o, &t->pool, &e), e, "pool");
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
	size_t percent = argc > 2 ? strtoul(argv[2], NULL, 10) % 100 : 50;
	static const char python[] = "__import__('time').monotonic_ns()";
	static struct subject all[MAX_SUBJECTS] = {
		{ .name = "Python", .guest = "python", .code = python },
		{ .name = "pandas", .guest = "python", .code = python },
		{ .name = "R",
		  .guest = "r",
		  .code = "as.numeric(Sys.time()) * 1e6",
		  .is_real = true },
	};
	enum { COUNT = 3 };

	for (int i = 0; i < COUNT; i++)
		start(&all[i], i == 1 ? "preload=pandas,numpy" : NULL);
	for (long round = 0; round < rounds && round < MAX_ROUNDS; round++)
		for (int i = 0; i < COUNT; i++)
			measure(&all[i]);
	print(all, COUNT, percent);
	for (int i = 0; i < COUNT; i++) {
		cordon_pool_free(all[i].pool);
		cordon_policy_free(all[i].policy);
	}
	return 0;
}
