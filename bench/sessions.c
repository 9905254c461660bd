/* bench/sessions.c - the cost of sessions: live, pooled, fresh from a template, cold; sessions per
 * second; memory; speed of reading output. Rounds are interleaved and figures are medians, because
 * the machine is shared. Usage: sessions [ROUNDS] */
#include <cordon/cordon.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"

enum {
	MAX_ROUNDS = 1000,
	MAX_ROWS = 64,
	RATE_MS = 3000,
	PRINT_MB = 1024,
	POOL_SIZE = 2,
	LIVE_RUNS = 10
};

struct row {
	const char *name;
	double limit_ms; /* the target; 0: none */
	double ms[MAX_ROUNDS * 10];
	size_t count;
};

static struct row rows[MAX_ROWS];
static size_t row_count;

static struct row *row(const char *name, double limit_ms)
{
	struct row *r = &rows[row_count++];

	r->name = name;
	r->limit_ms = limit_ms;
	return r;
}

static void add(struct row *r, double ms)
{
	if (r->count < sizeof(r->ms) / sizeof(*r->ms))
		r->ms[r->count++] = ms;
}

static void must(int r, const struct cordon_error *e, const char *what)
{
	if (r >= 0)
		return;
	for (; e; e = cordon_error_cause(e))
		fprintf(stderr, "%s: %s\n", what, cordon_error_message(e));
	exit(1);
}

/* The call first, then its error. */
#define check(call, e, what)                                                                       \
	do {                                                                                       \
		int r_ = (call);                                                                   \
		must(r_, e, what);                                                                 \
	} while (0)

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double now_ms(void)
{
	return (double)clock_now_ns() / 1e6;
}

static void execute(struct cordon_session *s, const char *code)
{
	struct cordon_error *e = NULL;
	struct cordon_result *r = NULL;

	check(cordon_session_execute(s, &(struct cordon_execute_options){ .code = code }, &r, &e),
	      e, "execute");
	if (!cordon_result_success(r)) {
		fprintf(stderr, "%s: %s\n", code, cordon_result_error(r));
		exit(1);
	}
	cordon_result_free(r);
}

static struct cordon_session *open_session(const char *guest, const struct cordon_policy *p,
					   bool cold)
{
	struct cordon_error *e = NULL;
	struct cordon_session *s = NULL;
	struct cordon_session_options o = { .guest = guest, .policy = p, .cold = cold };

	check(cordon_session_open(&o, &s, &e), e, guest);
	return s;
}

/* One guest: rows for live, pooled and fresh. */
struct subject {
	const char *guest, *code;
	struct cordon_policy *policy;
	struct cordon_session *live;
	struct cordon_pool *pool;
	struct row *live_row, *pool_row, *fresh_row, *fresh_run_row, *cold_row;
};

/* Until the pool has made its next session and buried the last: that is not what is measured. */
static void settle(struct cordon_pool *p)
{
	for (int i = 0; i < 100 && cordon_pool_get_status(p).idle < POOL_SIZE; i++)
		usleep(2000);
	usleep(5000);
}

static void measure(struct subject *t, bool with_cold)
{
	struct cordon_error *e = NULL;
	struct cordon_result *r = NULL;
	double a;

	for (int i = 0; i < LIVE_RUNS; i++) {
		a = now_ms();
		execute(t->live, t->code);
		add(t->live_row, now_ms() - a);
	}
	struct cordon_execute_options o = { .code = t->code };
	a = now_ms();
	check(cordon_pool_execute(t->pool, &o, 10000, &r, &e), e, "pool");
	add(t->pool_row, now_ms() - a);
	cordon_result_free(r);
	settle(t->pool);

	if (t->fresh_row) {
		a = now_ms();
		struct cordon_session *s = open_session(t->guest, t->policy, false);
		add(t->fresh_row, now_ms() - a);
		execute(s, t->code);
		add(t->fresh_run_row, now_ms() - a);
		cordon_session_close(s);
	}
	if (!with_cold)
		return;
	a = now_ms();
	struct cordon_session *s = open_session(t->guest, t->policy, true);
	execute(s, t->code);
	add(t->cold_row, now_ms() - a);
	cordon_session_close(s);
}

/* Behind a gateway: from the template with a gateway that waits, and cold. */
struct gated {
	struct cordon_policy *policy;
	struct row *fresh_row, *fresh_run_row, *cold_row;
};

static void measure_gated(const struct gated *t, bool with_cold)
{
	usleep(40000); /* until the template's next gateway is ready: that is not measured */
	double a = now_ms();
	struct cordon_session *s = open_session("python", t->policy, false);

	add(t->fresh_row, now_ms() - a);
	execute(s, "1+1");
	add(t->fresh_run_row, now_ms() - a);
	cordon_session_close(s);
	if (!with_cold)
		return;
	a = now_ms();
	s = open_session("python", t->policy, true);
	add(t->cold_row, now_ms() - a);
	cordon_session_close(s);
}

/* Python as the second language of an open sandbox; and a second Python beside it. */
struct second {
	struct cordon_policy *policy;
	struct row *open_row, *first_row, *other_row, *python_row, *cold_row;
};

static double first_run(struct cordon_session *s, const char *name)
{
	struct cordon_error *e = NULL;
	struct cordon_session *c = NULL;
	double a = now_ms();

	check(cordon_session_context(s, "python", name, &c, &e), e, "context");
	execute(c, "1+1");
	return now_ms() - a;
}

static void measure_second(const struct second *t, bool with_cold)
{
	static const char *const languages[] = { "sh", "python", NULL };
	struct cordon_session_options o = { .guest = "sh",
					    .policy = t->policy,
					    .languages = languages };
	struct cordon_error *e = NULL;
	struct cordon_session *s = NULL;
	double a = now_ms();

	check(cordon_session_open(&o, &s, &e), e, "sandbox");
	add(t->open_row, now_ms() - a);
	execute(s, ":");
	add(t->first_row, first_run(s, NULL));
	add(t->other_row, first_run(s, "other"));
	cordon_session_close(s);
	o.guest = "python";
	for (int cold = 0; cold < (with_cold ? 2 : 1); cold++) {
		o.cold = cold;
		a = now_ms();
		check(cordon_session_open(&o, &s, &e), e, "sandbox");
		add(cold ? t->cold_row : t->python_row, now_ms() - a);
		cordon_session_close(s);
	}
}

static void bare_python(struct row *r)
{
	double a = now_ms();
	pid_t pid = fork();

	if (pid == 0) {
		execl("/usr/bin/python3", "python3", "-I", "-c", "1+1", (char *)NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	add(r, now_ms() - a);
}

static void print_rows(void)
{
	printf("%-44s %9s %9s %9s  %s\n", "", "median ms", "p10", "p90", "target");
	for (size_t i = 0; i < row_count; i++) {
		struct row *r = &rows[i];

		if (r->count == 0)
			continue;
		qsort(r->ms, r->count, sizeof(double), compare);
		double median = r->ms[r->count / 2];
		printf("%-44s %9.3f %9.3f %9.3f  ", r->name, median, r->ms[r->count / 10],
		       r->ms[r->count * 9 / 10]);
		if (r->limit_ms > 0)
			printf("<= %.2f %s", r->limit_ms, median <= r->limit_ms ? "met" : "MISSED");
		printf("\n");
	}
}

struct worker {
	const struct cordon_policy *policy;
	uint64_t until_ns;
	unsigned done;
};

static void *churn(void *arg)
{
	struct worker *w = arg;

	while (clock_now_ns() < w->until_ns) {
		struct cordon_session *s = open_session("python", w->policy, false);
		execute(s, "1+1");
		cordon_session_close(s);
		w->done++;
	}
	return NULL;
}

static void rate(const struct cordon_policy *p)
{
	enum { WORKERS = 4 };
	struct worker w[WORKERS];
	pthread_t t[WORKERS];
	unsigned total = 0;
	double a = now_ms();

	for (int i = 0; i < WORKERS; i++) {
		w[i] = (struct worker){ .policy = p,
					.until_ns = clock_now_ns() + RATE_MS * 1000000ULL };
		pthread_create(&t[i], NULL, churn, &w[i]);
	}
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(t[i], NULL);
		total += w[i].done;
	}
	double per_second = total / ((now_ms() - a) / 1000);
	printf("%-44s %9.0f                      >= 600 %s\n", "sessions a second, Python",
	       per_second, per_second >= 600 ? "met" : "MISSED");
}

static long first_child(long pid)
{
	char path[64];
	long child = 0;

	snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", pid, pid);
	FILE *f = fopen(path, "re");
	if (!f || fscanf(f, "%ld", &child) != 1)
		child = 0;
	if (f)
		fclose(f);
	return child;
}

static long pss_kb(long pid)
{
	char path[64], line[256];
	long kb = 0;

	snprintf(path, sizeof(path), "/proc/%ld/smaps_rollup", pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

/* Proportional set size of the session's guest and, where there is one, of its shell, in MB. */
static double pss_mb(struct cordon_session *s)
{
	cleanup_free char *text = cordon_session_describe(s);
	cleanup_json json_t *j = NULL;

	if (!text || json_parse(text, strlen(text), 0, &j, NULL) < 0)
		return 0;
	long init = (long)json_integer_value(json_object_get(j, "pid"));
	long guest = first_child(init), shell = guest ? first_child(guest) : 0;
	return (double)(pss_kb(guest ? guest : init) + (shell ? pss_kb(shell) : 0)) / 1024;
}

static void memory(const char *name, const char *guest, const struct cordon_policy *p, double limit)
{
	enum { SESSIONS = 10 };
	struct cordon_session *s[SESSIONS];
	double total = 0;

	for (int i = 0; i < SESSIONS; i++)
		s[i] = open_session(guest, p, false);
	usleep(200000);
	for (int i = 0; i < SESSIONS; i++)
		total += pss_mb(s[i]);
	printf("%-44s %9.2f                      <= %.1f MB %s\n", name, total / SESSIONS, limit,
	       total / SESSIONS <= limit ? "met" : "MISSED");
	for (int i = 0; i < SESSIONS; i++)
		cordon_session_close(s[i]);
}

static void throughput(const struct cordon_policy *p)
{
	struct cordon_session *s = open_session("python", p, false);
	char code[128];

	snprintf(code, sizeof(code), "import os\nb=b'x'*1048576\nfor _ in range(%d): os.write(1,b)",
		 PRINT_MB);
	double a = now_ms();
	execute(s, code);
	double rate_mb = PRINT_MB / ((now_ms() - a) / 1000);
	struct rusage ru;
	getrusage(RUSAGE_SELF, &ru);
	printf("%-44s %9.0f                      >= 300 MB/s %s\n", "stdout through the reader",
	       rate_mb, rate_mb >= 300 ? "met" : "MISSED");
	printf("%-44s %9.1f MB\n", "peak memory of this process", (double)ru.ru_maxrss / 1024);
	cordon_session_close(s);
}

static struct cordon_policy *policy_with(const char *set)
{
	struct cordon_policy *p = NULL;
	struct cordon_error *e = NULL;

	check(cordon_policy_new(NULL, &p, &e), e, "policy");
	if (set)
		check(cordon_policy_set(p, set, &e), e, set);
	return p;
}

static void start(struct subject *t)
{
	struct cordon_error *e = NULL;
	struct cordon_pool_options o = { .session = { .guest = t->guest, .policy = t->policy },
					 .size = POOL_SIZE,
					 .max_size = 2 * POOL_SIZE };

	t->live = open_session(t->guest, t->policy, false);
	check(cordon_pool_new(&o, &t->pool, &e), e, "pool");
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100;
	struct cordon_policy *plain = policy_with(NULL),
			     *pandas = policy_with("preload=pandas,numpy");
	struct row *bare = row("bare python3 -c 1+1", 0);
	struct subject subjects[] = {
		{ "python", "1+1", plain, NULL, NULL, row("Python live: 1+1", 0.15),
		  row("Python pooled: 1+1", 0.3), row("Python fresh from a template: open", 2),
		  row("Python fresh: open and 1+1", 0), row("Python cold: open and 1+1", 0) },
		{ "python", "pandas = __import__('pandas')", pandas, NULL, NULL,
		  row("pandas live: import", 0), row("pandas pooled: import", 0),
		  row("pandas fresh from a template: open", 3),
		  row("pandas fresh: open and import", 0), row("pandas cold: open and import", 0) },
		{ "r", "1+1", plain, NULL, NULL, row("R live: 1+1", 0.15),
		  row("R pooled: 1+1", 0.3), row("R fresh from a template: open", 3),
		  row("R fresh: open and 1+1", 0), row("R cold: open and 1+1", 0) },
		{ "node", "1+1", plain, NULL, NULL, row("Node live: 1+1", 0),
		  row("Node pooled: 1+1", 2), NULL, NULL, row("Node cold: open and 1+1", 0) },
		{ "sh", ":", plain, NULL, NULL, row("sh live: :", 0), row("sh pooled: :", 0), NULL,
		  NULL, row("sh cold: open and :", 0) },
		{ "pod", ":", plain, NULL, NULL, row("pod live: :", 0.15),
		  row("pod pooled: :", 0.5), row("pod fresh from a template: open", 3),
		  row("pod fresh: open and :", 0), row("pod cold: open and :", 12) },
	};
	struct gated gated[] = {
		{ policy_with("network.allow=example.com"), row("Python behind a gateway: open", 3),
		  row("Python behind a gateway: open and 1+1", 0),
		  row("Python behind a gateway, cold: open", 0) },
		{ policy_with("network.allow=[{\"host\":\"example.com\",\"methods\":[\"GET\"]}]"),
		  row("Python, gateway that inspects TLS: open", 3),
		  row("Python, gateway that inspects: open, 1+1", 0),
		  row("Python, gateway that inspects, cold: open", 0) },
		{ policy_with("expose=8000"), row("Python with an exposed port: open", 3),
		  row("Python with an exposed port: open, 1+1", 0),
		  row("Python with an exposed port, cold: open", 0) },
	};
	struct second second = { plain,
				 row("sandbox of sh and Python: open", 0),
				 row("second language, Python: 1+1", 3),
				 row("another Python context: 1+1", 20),
				 row("sandbox of Python and sh: open", 3),
				 row("sandbox of Python and sh, cold: open", 0) };
	/* The pod last: where no image is named, it is not measured. */
	bool has_pod = getenv("CORDON_POD") != NULL;
	size_t count = sizeof(subjects) / sizeof(*subjects) - !has_pod;

	for (size_t i = 0; i < count; i++)
		start(&subjects[i]);
	usleep(500000);
	for (int round = 0; round < rounds && round < MAX_ROUNDS; round++) {
		for (size_t i = 0; i < count; i++)
			measure(&subjects[i], round % 20 == 0);
		for (size_t i = 0; i < sizeof(gated) / sizeof(*gated); i++)
			measure_gated(&gated[i], round % 5 == 0);
		measure_second(&second, round % 5 == 0);
		if (round % 5 == 0)
			bare_python(bare);
		usleep(20000); /* the pools' own threads are not what is measured */
	}
	for (size_t i = 0; i < count; i++) {
		cordon_pool_free(subjects[i].pool);
		cordon_session_close(subjects[i].live);
	}
	print_rows();
	rate(plain);
	memory("idle session, Python (PSS of the guest, MB)", "python", plain, 1.5);
	memory("idle session, pandas (PSS of the guest, MB)", "python", pandas, 6);
	memory("idle session, R (PSS of the guest, MB)", "r", plain, 5);
	if (has_pod)
		memory("idle session, pod (PSS of the guest, MB)", "pod", plain, 2);
	throughput(plain);
	return 0;
}
