/* tests/soak/sessions.c - sessions opened, used and ended in all ways, with random kills of their
 * processes and of templates. Nothing of them may stay. At most 90 seconds and 1,000 sessions;
 * SOAK=full: 10,000 and half an hour. */
#include <cordon/cordon.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "session/template.h"
#include "soak/resources.h"

enum { WORKERS = 3, FEW = 1000, MANY = 10000, FEW_MS = 90000, MANY_MS = 1800000, WARM = 12 };

/* What may come of each; NULL: anything. */
static const struct {
	const char *guest, *code, *kind;
	unsigned weight;
} kinds[] = {
	{ "python", "1+1", NULL, 30 },
	{ "python", "open('/tmp/f', 'w').write('x' * 100000)", NULL, 10 },
	{ "python", "while True: pass", "timeout", 8 },
	{ "python", "import os; os._exit(3)", NULL, 8 },
	{ "python", "import os; os.kill(os.getpid(), 11)", "crashed", 8 },
	{ "python", "import os, time\nfor i in range(5):\n if os.fork() == 0: time.sleep(100)",
	  NULL, 8 },
	{ "python", "import os; os.write(3, b'no json\\n'); __import__('time').sleep(5)",
	  "protocol", 5 },
	{ "python", "b = bytearray(1 << 30)", NULL, 3 },
	{ "r", "1+1", NULL, 5 },
	{ "r", "repeat {}", "timeout", 2 },
	{ "sh", "sleep 100 & echo on", NULL, 5 },
	{ "sh", "exit 3", NULL, 5 },
	{ "node", "1+1", NULL, 1 },
};

static atomic_uint started, wrong, killed;
static unsigned target;
static uint64_t end_ns;

static void complain(const char *code, const char *what)
{
	if (atomic_fetch_add(&wrong, 1) < 10)
		printf("# %.60s: %s\n", code, what ? what : "?");
}

static long pid_of(struct cordon_session *s)
{
	char *text = cordon_session_describe(s);
	const char *p = text ? strstr(text, "\"pid\": ") : NULL;
	long pid = p ? strtol(p + 7, NULL, 10) : 0;

	free(text);
	return pid;
}

/* Kills pid 1 of the session, as the kernel might. */
static void *kill_soon(void *arg)
{
	long pid = *(long *)arg;

	usleep((useconds_t)(random() % 20000));
	if (pid > 1)
		(void)kill((pid_t)pid, SIGKILL);
	return NULL;
}

static void use(struct cordon_session *s, size_t k, bool kill_it)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_execute_options o = { .code = kinds[k].code,
					    .timeout_ms = kinds[k].kind ? 100 : 20000 };
	struct cordon_result *r = NULL;
	long pid = pid_of(s);
	pthread_t t;

	if (kinds[k].kind && strcmp(kinds[k].kind, "timeout") != 0)
		o.timeout_ms = 20000;
	if (kill_it && pthread_create(&t, NULL, kill_soon, &pid) != 0)
		kill_it = false;
	int got = cordon_session_execute(s, &o, &r, &e);
	if (kill_it) {
		pthread_join(t, NULL);
		atomic_fetch_add(&killed, 1);
	} else if (got < 0) {
		complain(kinds[k].code, cordon_error_message(e));
	} else if (kinds[k].kind && !(cordon_result_error_kind(r) &&
				      strcmp(cordon_result_error_kind(r), kinds[k].kind) == 0)) {
		complain(kinds[k].code, cordon_result_error(r));
	}
	cordon_result_free(r);
}

static size_t pick(void)
{
	unsigned total = 0;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		total += kinds[i].weight;
	unsigned at = (unsigned)random() % total;
	for (i = 0; at >= kinds[i].weight; i++)
		at -= kinds[i].weight;
	return i;
}

static void one(void)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session *s = NULL;
	size_t k = pick();
	struct cordon_session_options o = { .guest = kinds[k].guest };

	if (random() % 200 == 0)
		template_release_all();
	if (cordon_session_open(&o, &s, &e) < 0) {
		complain(kinds[k].guest, cordon_error_message(e));
		return;
	}
	use(s, k, random() % 10 == 0);
	if (random() % 4 == 0)
		use(s, k, false);
	cordon_session_close(s);
}

static void *work(void *arg)
{
	(void)arg;
	while (clock_now_ns() < end_ns && atomic_fetch_add(&started, 1) < target)
		one();
	return NULL;
}

int main(void)
{
	const char *how = getenv("SOAK"), *seed_text = getenv("SOAK_SEED");
	bool full = how && strcmp(how, "full") == 0;
	unsigned seed = seed_text ? (unsigned)strtoul(seed_text, NULL, 10) : (unsigned)getpid();
	pthread_t t[WORKERS];

	srandom(seed);
	end_ns = UINT64_MAX;
	target = WARM;
	work(NULL);
	atomic_store(&started, 0);
	target = full ? MANY : FEW;
	end_ns = clock_now_ns() + (uint64_t)(full ? MANY_MS : FEW_MS) * 1000000;
	struct resources before = resources_look(1);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	struct resources after = resources_look(1);
	unsigned done = atomic_load(&started) < target ? atomic_load(&started) : target;
	printf("# %u sessions, %u of them killed, SOAK_SEED=%u\n", done, atomic_load(&killed),
	       seed);
	resources_check(done >= target / 50, "it gets somewhere", target, done);
	resources_check(atomic_load(&wrong) == 0, "each ended as it should", 0,
			atomic_load(&wrong));
	resources_compare(&before, &after, 16384);
	return resources_end();
}
