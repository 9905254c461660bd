/* tests/soak/mixed.c - everything at once in one process: eight threads run scenes.c at random, on
 * shared sessions and pools, while supervisors are killed. No wrong result, nothing stuck, nothing
 * left behind. SOAK_SECONDS: how long (30). */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "soak/kills.h"
#include "soak/resources.h"
#include "soak/scenes.h"

enum { THREADS = 8, STUCK_SECONDS = 240 };

static struct world world;
static uint64_t end_ns;
static _Atomic(uint64_t) since[THREADS]; /* when the scene began; 0: done */
static _Atomic(const char *) doing[THREADS];
static atomic_uint done;

/* "hello" to whoever comes, until the process ends. */
static void *serve_hello(void *arg)
{
	static const char text[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
	int listener = *(int *)arg;

	for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;) {
		char request[4096];
		if (recv(fd, request, sizeof(request), 0) > 0)
			(void)send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
		close(fd);
	}
	return NULL;
}

static int listen_on_loopback(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) != 0 || listen(fd, 64) != 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) != 0)
		return -1;
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static const struct scene *pick(unsigned *seed)
{
	unsigned total = 0;

	for (const struct scene *s = scenes; s->name; s++)
		total += s->weight;
	unsigned at = (unsigned)rand_r(seed) % total;
	const struct scene *s = scenes;
	for (; at >= s->weight; s++)
		at -= s->weight;
	return s;
}

static void *work(void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg, seed = i * 7919 + (unsigned)getpid();

	while (clock_now_ns() < end_ns) {
		const struct scene *s = pick(&seed);
		doing[i] = s->name;
		since[i] = clock_now_ns();
		s->fn(&world, &seed);
		atomic_fetch_add(&done, 1);
	}
	since[i] = 0;
	return NULL;
}

/* Each scene of one thread, so that what is made once is there before it is counted. */
static void warm_up(void)
{
	unsigned seed = 1;

	for (const struct scene *s = scenes; s->name; s++)
		for (int i = 0; i < 8 && strcmp(s->name, "kill_child") != 0; i++)
			s->fn(&world, &seed);
}

/* Whatever waits ends; a thread that does not come back is named, and the process with it. */
static void watch(void)
{
	for (bool busy = true; busy;) {
		sleep(1);
		busy = false;
		for (unsigned i = 0; i < THREADS; i++) {
			uint64_t start = since[i];
			busy = busy || start;
			if (!start || clock_now_ns() - start < STUCK_SECONDS * 1000000000ULL)
				continue;
			printf("not ok 1 - nothing is stuck\n# '%s' does not come back\n1..1\n",
			       doing[i]);
			fflush(stdout);
			abort(); /* a core, or the sanitizer's stacks */
		}
	}
}

int main(void)
{
	const char *seconds = getenv("SOAK_SECONDS"), *pod = getenv("CORDON_POD");
	int listener = listen_on_loopback(&world.port);
	pthread_t server, t[THREADS];

	if (listener < 0 || pthread_create(&server, NULL, serve_hello, &listener) != 0)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	world.has_pod = pod && *pod;
	scenes_open(&world);
	warm_up();
	scenes_close(&world);
	struct resources before = resources_look(2);
	scenes_open(&world);
	end_ns = clock_now_ns() + (seconds ? strtoull(seconds, NULL, 10) : 30) * 1000000000ULL;
	for (uintptr_t i = 0; i < THREADS; i++) {
		since[i] = clock_now_ns();
		doing[i] = "start";
		pthread_create(&t[i], NULL, work, (void *)i);
	}
	watch();
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	scenes_close(&world);
	struct resources after = resources_look(2);
	printf("# %u scenes, %u kills\n", done, kills_count());
	resources_check(done >= THREADS, "it gets somewhere", THREADS, done);
	resources_check(scenes_wrong() == 0, "each ended as it should", 0, scenes_wrong());
	resources_compare(&before, &after, 32768);
	return resources_end();
}
