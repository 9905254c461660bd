/* tests/behaviour/places_load.c - guests join and end thousands of times, with random kills; then
 * everything is as it was. CORDON_JOINS sets how many joins each test makes. */
#include "place_fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/test.h"

#define WAITS "echo waits; read line; echo over"

enum { JOINS = 320, THREADS = 8 };

static unsigned joins(void)
{
	const char *n = getenv("CORDON_JOINS");

	return n ? (unsigned)strtoul(n, NULL, 10) : JOINS;
}

static unsigned count_entries(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static unsigned descriptors_of(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	return count_entries(path);
}

/* Of pid 1, in KiB; also its descriptors, where we may look at them. */
static unsigned long memory_of(pid_t pid)
{
	char path[64], line[256];
	unsigned long kib = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmSize:", 7) == 0)
			kib = strtoul(line + 7, NULL, 10);
	if (f)
		fclose(f);
	return kib;
}

/* One guest: it ends by itself, or is killed before, while or after it runs. */
static void one(struct site *s, unsigned *seed)
{
	unsigned how = (unsigned)rand_r(seed) % 8;
	struct tenant t;

	/* What the guest leaves stays if somebody else kills it. So that one starts nothing. */
	const char *code = how < 4    ? "exit 7"
			   : how == 5 ? WAITS
				      : "sleep 7004 & sleep 7004 | sleep 7004 & " WAITS;
	ASSERT_EQ(site_try(s, &t, GUEST_KIND_SH, code), 0);
	if (how < 4) {
		ASSERT_EQ(WEXITSTATUS(tenant_wait(&t)), 7);
	} else if (how == 4) {
		box_end(t.box); /* at once */
		ASSERT(box_wait_gone(t.box, deadline_after_ms(60000)));
	} else if (how == 5) {
		ASSERT_EQ(box_wait_ready(t.box, deadline_after_ms(60000), NULL), 0);
		(void)kill(box_pid(t.box), SIGKILL); /* by somebody else */
		ASSERT(box_wait_gone(t.box, deadline_after_ms(60000)));
	} else if (how == 6) {
		tenant_await(&t, "waits");
	} else {
		tenant_await(&t, "waits");
		box_kill(t.box);
		ASSERT_EQ(WTERMSIG(tenant_wait(&t)), SIGKILL);
	}
	ASSERT(!box_has_ended(s->place));
	tenant_done(&t);
}

struct load {
	struct site *site;
	unsigned joins, seed;
};

static void *run_load(void *arg)
{
	struct load *l = arg;

	for (unsigned i = 0; i < l->joins; i++)
		one(l->site, &l->seed);
	return NULL;
}

/* What a killed guest left in its own session ends with it; what others left is ended here. */
static void must_be_as_before(struct site *s, unsigned fds, unsigned long memory)
{
	pid_t init = box_pid(s->place);

	(void)site_run(s, GUEST_KIND_SH, "kill -9 -1", NULL);
	/* Pid 1 reaps in its own time; the test's limit ends this. */
	while (box_processes(s->place, BOX_PROCESSES_NOW, 64) > 1)
		usleep(1000);
	ASSERT_EQ(descriptors_of(getpid()), fds);
	unsigned long now = memory_of(init);
	if (now > memory + 512)
		test_fail(__FILE__, __LINE__, "pid 1 has grown from %lu to %lu KiB", memory, now);
	(void)site_run(s, GUEST_KIND_SH, "exit 0", NULL);
}

static const char *const settings[] = { "processes=400", NULL };

TEST_WITHIN(thousands_of_guests_in_one_place, 3000)
{
	struct site s;

	site_open(&s, WAITS, settings);
	tenant_await(&s.first, "waits");
	struct load l = { &s, 16, 1 };
	run_load(&l);
	unsigned fds = descriptors_of(getpid());
	unsigned long memory = memory_of(box_pid(s.place));
	l.joins = joins();
	run_load(&l);
	must_be_as_before(&s, fds, memory);
	site_close(&s);
}

TEST_WITHIN(thousands_of_guests_in_a_forked_place, 3000)
{
	struct site s;

	site_fork(&s, settings);
	struct load l = { &s, 16, 1 };
	run_load(&l);
	unsigned fds = descriptors_of(getpid());
	unsigned long memory = memory_of(box_pid(s.place));
	l.joins = joins();
	run_load(&l);
	must_be_as_before(&s, fds, memory);
	site_close(&s);
}

TEST_WITHIN(eight_threads_in_one_place, 3000)
{
	struct load l[THREADS];
	pthread_t threads[THREADS];
	struct site s;

	site_open(&s, WAITS, settings);
	tenant_await(&s.first, "waits");
	struct load warm = { &s, 16, 1 };
	run_load(&warm);
	unsigned fds = descriptors_of(getpid());
	unsigned long memory = memory_of(box_pid(s.place));
	for (unsigned i = 0; i < THREADS; i++) {
		l[i] = (struct load){ &s, joins() / THREADS, i + 2 };
		ASSERT_EQ(pthread_create(&threads[i], NULL, run_load, &l[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	must_be_as_before(&s, fds, memory);
	site_close(&s);
}

static void *run_site(void *arg)
{
	struct load *l = arg;
	struct site s;

	for (unsigned left = l->joins; left > 0;) {
		unsigned part = left < 40 ? left : 40;
		struct load some = { &s, part, l->seed + left };

		site_open(&s, WAITS, settings);
		run_load(&some);
		site_close(&s);
		left -= part;
	}
	return NULL;
}

TEST_WITHIN(eight_threads_with_a_place_each, 3000)
{
	struct load l[THREADS];
	pthread_t threads[THREADS];
	struct load warm = { .joins = 8, .seed = 1 };

	run_site(&warm);
	unsigned fds = descriptors_of(getpid());
	for (unsigned i = 0; i < THREADS; i++) {
		l[i] = (struct load){ .joins = joins() / THREADS, .seed = i + 2 };
		ASSERT_EQ(pthread_create(&threads[i], NULL, run_site, &l[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(descriptors_of(getpid()), fds);
}
