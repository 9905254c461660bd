/* bench/sustained.c - speed that lasts: pools under load for as long as it takes to show, with one
 * caller and with eight, and sessions that are opened, used and closed. Beside it, in the same run,
 * a bare Python, because the machine is shared: targets are multiples of that.
 *
 * A pool is measured twice: with all callers as quick as they can (the rate that lasts: each call
 * uses a session up, so it is the rate at which sessions are made and closed), and with calls that
 * come at two fifths of that rate, at irregular moments, for what a call takes (p50, p99).
 * Usage: sustained [SECONDS], for each; 30. */
#include <cordon/cordon.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	CALLERS_MAX = 8,
	CALLS_MAX = 400000,
	PARTS = 5, /* the first and the last of them are compared */
	POOL_SIZE = 8,
	BARE_RUNS = 15,
	WORKERS = 4,
};
static const double WARM_S = 3, LOAD = 0.4;

struct call {
	uint64_t at_ns;
	double ms;
};

struct caller {
	struct cordon_pool *pool; /* NULL: a session of its own each time */
	uint64_t begin_ns, end_ns;
	double pause_ms; /* on average, from one call to the next; 0: none */
	unsigned seed;
	struct call *calls;
	size_t count, max;
};

static double bare_ms[1000];
static size_t bare_count;
static double seconds = 30;

static void check(int r, const struct cordon_error *e, const char *what)
{
	if (r >= 0)
		return;
	for (; e; e = cordon_error_cause(e))
		fprintf(stderr, "%s: %s\n", what, cordon_error_message(e));
	exit(1);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double quantile(double *values, size_t count, double q)
{
	qsort(values, count, sizeof(*values), compare);
	return count ? values[(size_t)((double)(count - 1) * q)] : 0;
}

static void bare_python(void)
{
	for (int i = 0; i < BARE_RUNS && bare_count < sizeof(bare_ms) / sizeof(*bare_ms); i++) {
		uint64_t start = clock_now_ns();
		pid_t pid = fork();

		if (pid == 0) {
			execl("/usr/bin/python3", "python3", "-c", "1", (char *)NULL);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
		bare_ms[bare_count++] = (double)(clock_now_ns() - start) / 1e6;
	}
}

static double bare(void)
{
	return quantile(bare_ms, bare_count, 0.5);
}

static void call_once(struct caller *c)
{
	struct cordon_execute_options o = { .code = "1" };
	struct cordon_session *s = NULL;
	struct cordon_result *r = NULL;
	struct cordon_error *e = NULL;

	if (c->pool) {
		check(cordon_pool_execute(c->pool, &o, 60000, &r, &e), e, "pool");
	} else {
		check(cordon_session_open(&(struct cordon_session_options){ .guest = "python" }, &s,
					  &e),
		      e, "open");
		check(cordon_session_execute(s, &o, &r, &e), e, "execute");
		cordon_session_close(s);
	}
	if (!cordon_result_success(r)) {
		fprintf(stderr, "execute: %s\n", cordon_result_error(r));
		exit(1);
	}
	cordon_result_free(r);
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

static void *call(void *arg)
{
	struct caller *c = arg;
	uint64_t next = clock_now_ns();

	while (clock_now_ns() < c->end_ns) {
		if (c->pause_ms > 0) { /* half to one and a half of it */
			next += (uint64_t)(c->pause_ms * 1e6 *
					   (0.5 + (double)rand_r(&c->seed) / RAND_MAX));
			sleep_until(next);
		}
		uint64_t start = clock_now_ns();
		call_once(c);
		uint64_t end = clock_now_ns();
		if (start >= c->begin_ns && c->count < c->max)
			c->calls[c->count++] = (struct call){ start, (double)(end - start) / 1e6 };
	}
	return NULL;
}

/* What all callers saw together. */
struct outcome {
	double rate, first_rate, last_rate;
	double p50, p99, first_p50, last_p50;
};

static double *times_of(const struct caller *c, unsigned callers, uint64_t from, uint64_t to,
			size_t *ret_count)
{
	double *ms = malloc(sizeof(double) * CALLS_MAX);
	size_t count = 0;

	for (unsigned i = 0; ms && i < callers; i++)
		for (size_t k = 0; k < c[i].count && count < CALLS_MAX; k++)
			if (c[i].calls[k].at_ns >= from && c[i].calls[k].at_ns < to)
				ms[count++] = c[i].calls[k].ms;
	*ret_count = count;
	return ms;
}

static struct outcome load(struct cordon_pool *p, unsigned callers, double pause_ms, double for_s)
{
	struct caller c[CALLERS_MAX];
	pthread_t t[CALLERS_MAX];
	uint64_t begin = clock_now_ns() + (uint64_t)(WARM_S * 1e9),
		 end = begin + (uint64_t)(for_s * 1e9);
	struct outcome o;
	size_t n;

	for (unsigned i = 0; i < callers; i++) {
		c[i] = (struct caller){ .pool = p,
					.begin_ns = begin,
					.end_ns = end,
					.pause_ms = pause_ms * callers,
					.seed = i + 1,
					.max = CALLS_MAX / callers,
					.calls =
						malloc(sizeof(struct call) * CALLS_MAX / callers) };
		pthread_create(&t[i], NULL, call, &c[i]);
	}
	for (unsigned i = 0; i < callers; i++)
		pthread_join(t[i], NULL);
	uint64_t part = (end - begin) / PARTS;
	double *ms = times_of(c, callers, begin, end, &n);
	o.rate = (double)n / for_s;
	o.p50 = quantile(ms, n, 0.5);
	o.p99 = quantile(ms, n, 0.99);
	free(ms);
	ms = times_of(c, callers, begin, begin + part, &n);
	o.first_rate = (double)n / for_s * PARTS;
	o.first_p50 = quantile(ms, n, 0.5);
	free(ms);
	ms = times_of(c, callers, end - part, end, &n);
	o.last_rate = (double)n / for_s * PARTS;
	o.last_p50 = quantile(ms, n, 0.5);
	free(ms);
	for (unsigned i = 0; i < callers; i++)
		free(c[i].calls);
	return o;
}

static const char *met(bool is_met)
{
	return is_met ? "met" : "MISSED";
}

static void pooled(const char *guest, unsigned callers)
{
	struct cordon_pool_options o = { .session = { .guest = guest },
					 .size = POOL_SIZE,
					 .max_size = 2 * POOL_SIZE };
	struct cordon_error *e = NULL;
	struct cordon_pool *p = NULL;

	check(cordon_pool_new(&o, &p, &e), e, guest);
	bare_python();
	struct outcome fast = load(p, callers, 0, seconds);
	bare_python();
	struct outcome calm = load(p, callers, 1000 / (fast.rate * LOAD), seconds);
	bare_python();
	cordon_pool_free(p);
	printf("%s, pooled, %u caller%s\n", guest, callers, callers > 1 ? "s" : "");
	printf("  as quick as can be: %.0f a second (first fifth %.0f, last %.0f: %.2f)\n",
	       fast.rate, fast.first_rate, fast.last_rate, fast.last_rate / fast.first_rate);
	printf("  %.0f calls a second: p50 %.3f ms, %.4f of a bare Python's %.2f ms (<= 0.02 %s); "
	       "p99 %.3f ms, %.1f of p50 (<= 8 %s); p50 of the first fifth %.3f, of the last %.3f: "
	       "%.2f\n",
	       calm.rate, calm.p50, calm.p50 / bare(), bare(), met(calm.p50 / bare() <= 0.02),
	       calm.p99, calm.p99 / calm.p50, met(calm.p99 <= 8 * calm.p50), calm.first_p50,
	       calm.last_p50, calm.last_p50 / calm.first_p50);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = atof(argv[1]);
	if (seconds < 1)
		return 2;
	for (int r = 0; r < 2; r++)
		for (unsigned callers = 1; callers <= CALLERS_MAX; callers += CALLERS_MAX - 1)
			if (r == 0 || access("/usr/bin/R", X_OK) == 0)
				pooled(r ? "r" : "python", callers);
	bare_python();
	struct outcome o = load(NULL, WORKERS, 0, seconds);
	bare_python();
	printf("Python sessions opened, used and closed: %.0f a second (first fifth %.0f, last "
	       "%.0f: "
	       "%.2f), times the %.2f ms of a bare Python: %.1f (>= 12 %s)\n",
	       o.rate, o.first_rate, o.last_rate, o.last_rate / o.first_rate, bare(),
	       o.rate * bare() / 1000, met(o.rate * bare() / 1000 >= 12));
	return 0;
}
