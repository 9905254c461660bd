/* tests/soak/places.c - every door of a sandbox with several languages, many times in one process:
 * first one thread, then eight at once with random kills. No wrong result, nothing stuck, nothing
 * left behind. SOAK_ROUNDS: how often each door is used (150). */
#include <cordon/command.h>
#include <cordon/cordon.h>
#include <cordon/expose.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "soak/kills.h"
#include "soak/resources.h"

enum { THREADS = 8, ROUNDS = 150, STUCK_SECONDS = 240, WAIT_MS = 60000, PIECE = 64 << 10 };
enum { PORT = 8000 };
enum { DEPTH = 6 }; /* of kills */

/* Started by a command in the background. */
#define SERVER                                                                                     \
	"exec python3 -c 'import socket\n"                                                         \
	"l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"           \
	"l.bind((\"127.0.0.1\", 8000)); l.listen(64)\n"                                            \
	"while True: c = l.accept()[0]; c.sendall(b\"hello\"); c.close()'"

static struct cordon_session *place;
static struct cordon_policy *policy;
static char *address;
static pthread_mutex_t serving = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint wrong, served_since, names;

struct hand {
	unsigned number, seed;
	struct cordon_session *own; /* a context of this thread; NULL: not made yet */
};

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
	char line[400];
	va_list ap;

	if (atomic_fetch_add(&wrong, 1) >= 20)
		return;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	for (char *c = line; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	printf("# %s\n", line);
}

/* Frees the result. */
static void judge(const char *what, int r, struct cordon_result *result,
		  const struct cordon_error *e, const char *want, unsigned before)
{
	if (r < 0 && kills_spared(before))
		complain("%s: %s", what, cordon_error_message(e));
	else if (r == 0 && want && kills_spared(before) &&
		 strcmp(cordon_result_stdout(result, NULL), want) != 0)
		complain("%s: printed '%.60s', %s", what, cordon_result_stdout(result, NULL),
			 cordon_result_error(result) ? cordon_result_error(result) : "no error");
	cordon_result_free(result);
}

static void run(struct cordon_session *s, const char *code, const char *want)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_execute_options o = { .code = code, .timeout_ms = WAIT_MS };
	struct cordon_result *result = NULL;
	unsigned before = kills_mark();
	int r = cordon_session_execute(s, &o, &result, &e);

	judge(code, r, result, e, want, before);
}

/* ---- the doors */

static void command(struct hand *h)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_command_options o = { .command = h->seed % 3 ? "echo 42" : "read a; echo $a",
					    .stdin_bytes = "42\n",
					    .stdin_len = 3,
					    .timeout_ms = WAIT_MS };
	struct cordon_result *result = NULL;
	unsigned before = kills_mark();
	int r = cordon_session_command(place, &o, &result, &e);

	judge("command", r, result, e, "42\n", before);
}

/* Written to, read, signalled, killed or left alone. */
static void process(struct hand *h)
{
	static const char *const lines[] = { "read a; echo $a", "sleep 7005", "trap '' INT; cat",
					     "setsid -f true; echo 42" };
	cleanup_error struct cordon_error *e = NULL;
	unsigned how = (unsigned)rand_r(&h->seed) % 4, before = kills_mark();
	struct cordon_command_options o = { .command = lines[how], .timeout_ms = WAIT_MS };
	cleanup_free char *out = NULL, *list = NULL;
	struct cordon_result *result = NULL;
	uint64_t id = 0, from;
	size_t len = 0;
	int r = cordon_process_start(place, &o, &id, &e);

	if (r < 0) {
		judge("start", r, NULL, e, NULL, before);
		return;
	}
	list = cordon_process_list(place);
	if (how == 0)
		(void)cordon_process_write(place, id, "42\n", 3, &len, NULL);
	if (how == 2)
		(void)cordon_process_signal(place, id, SIGINT, NULL);
	(void)cordon_process_output(place, id, 1, 0, &out, &len, &from, NULL);
	if (how == 1 || how == 2)
		(void)cordon_process_kill(place, id, NULL);
	r = cordon_process_wait(place, id, WAIT_MS, &result, &e);
	judge(lines[how], r, result, e, how == 0 || how == 3 ? "42\n" : NULL, before);
}

static void terminal(struct hand *h)
{
	static const char *const lines[] = { "stty -echo; read a; echo $a", "cat",
					     "tty; ps; exit" };
	cleanup_error struct cordon_error *e = NULL;
	unsigned how = (unsigned)rand_r(&h->seed) % 3, before = kills_mark();
	struct cordon_command_options o = { .command = lines[how],
					    .pty = true,
					    .timeout_ms = WAIT_MS };
	struct cordon_result *result = NULL;
	uint64_t id = 0;
	size_t len = 0;
	int r = cordon_process_start(place, &o, &id, &e);

	if (r < 0) {
		judge("terminal", r, NULL, e, NULL, before);
		return;
	}
	(void)cordon_process_write(place, id, "42\n", 3, &len, NULL);
	(void)cordon_process_resize(place, id, 10 + h->seed % 50, 80, NULL);
	if (how == 1 && h->seed % 2)
		(void)cordon_process_write(place, id, "", 0, &len, NULL);
	else if (how == 1)
		(void)cordon_process_kill(place, id, NULL);
	r = cordon_process_wait(place, id, WAIT_MS, &result, &e);
	judge(lines[how], r, result, e, NULL, before);
}

/* Opened, used and closed; or kept by this thread and used again. */
static void context(struct hand *h)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session *c = NULL;
	unsigned before = kills_mark();
	bool is_sh = rand_r(&h->seed) % 3 != 0;
	char name[32];

	snprintf(name, sizeof(name), "own-%u", atomic_fetch_add(&names, 1));
	int r = cordon_session_context(place, is_sh ? "sh" : "python", name, &c, &e);
	if (r < 0) {
		judge("context", r, NULL, e, NULL, before);
		return;
	}
	if (rand_r(&h->seed) % 8)
		run(c, is_sh ? "echo 42" : "print(42)", "42\n");
	cordon_session_close(c);
}

static struct cordon_session *own(struct hand *h)
{
	char name[32];

	snprintf(name, sizeof(name), "hand-%u", h->number);
	if (!h->own && cordon_session_context(place, "python", name, &h->own, NULL) < 0)
		h->own = NULL;
	return h->own;
}

static void inspect(struct hand *h)
{
	bool completes = rand_r(&h->seed) % 2;
	struct cordon_inspect_options o = { .question = completes ? CORDON_COMPLETE
								  : CORDON_IS_COMPLETE,
					    .code = completes ? "pri" : "if 1:",
					    .code_len = completes ? 3 : 5 };
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *json = NULL;
	unsigned before = kills_mark();
	struct cordon_session *c = own(h);
	int r = c ? cordon_session_inspect(c, &o, &json, &e) : 0;

	if (r < 0 && kills_spared(before))
		complain("inspect: %s", cordon_error_message(e));
	if (r == 0 && c && kills_spared(before) &&
	    !strstr(json, completes ? "\"print" : "incomplete") && !strstr(json, "restarted"))
		complain("inspect: %.100s", json);
}

static void state(struct hand *h)
{
	if (own(h)) {
		run(h->own, "x = 41", "");
		run(h->own, rand_r(&h->seed) % 16 ? "print(1)" : "import os; os._exit(0)", NULL);
	}
}

static int write_pieces(const char *path, const char *bytes)
{
	int r = cordon_file_write(place, path, bytes, PIECE, NULL);

	for (int i = 0; r == 0 && i < 3; i++)
		r = cordon_file_append(place, path, bytes, PIECE, NULL);
	return r;
}

static void files(struct hand *h)
{
	cleanup_close int fd = memfd_create("tar", MFD_CLOEXEC);
	cleanup_free char *bytes = malloc(PIECE), *back = malloc(4 * PIECE);
	unsigned before = kills_mark();
	char path[64], other[64], dir[32];
	size_t len = 0;
	int r = 0;

	if (!bytes || !back || fd < 0)
		return;
	snprintf(dir, sizeof(dir), "/tmp/d%u", h->number);
	snprintf(path, sizeof(path), "%s/f", dir);
	snprintf(other, sizeof(other), "%s/g", dir);
	memset(bytes, 'a' + h->seed % 26, PIECE);
	r = write_pieces(path, bytes);
	if (r == 0)
		r = cordon_file_move(place, path, other, NULL);
	if (r == 0)
		r = cordon_file_read_at(place, other, 0, back, 4 * PIECE, &len, NULL);
	if (r == 0 && (len != 4 * PIECE || memcmp(back + 3 * PIECE, bytes, PIECE) != 0))
		complain("files: %zu bytes came back", len);
	if (r == 0 && h->seed % 4 == 0 && cordon_file_get_tar(place, dir, fd, NULL, NULL) == 0 &&
	    lseek(fd, 0, SEEK_SET) == 0)
		r = cordon_file_put_tar(place, dir, fd, NULL, NULL);
	(void)cordon_file_remove(place, dir, true, NULL);
	if (r < 0 && kills_spared(before))
		complain("files: %s", cordon_code_name((enum cordon_code) - r));
}

/* What the server says; -1: nothing. */
static ssize_t connect_once(char *ret, size_t size)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", address);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
	    poll(&p, 1, WAIT_MS) != 1)
		return -1;
	return recv(fd, ret, size, 0);
}

static bool is_served(void)
{
	char text[16];

	return connect_once(text, sizeof(text)) == 5 && memcmp(text, "hello", 5) == 0;
}

/* Starts the server anew, if it was killed, and waits until it answers. */
static void serve(void)
{
	struct cordon_command_options o = { .command = SERVER, .timeout_ms = UINT64_MAX };
	deadline_ns end = deadline_after_ms(WAIT_MS);
	uint64_t id;

	pthread_mutex_lock(&serving);
	unsigned before = kills_mark();
	bool is_up = is_served();
	if (!is_up && cordon_process_start(place, &o, &id, NULL) == 0)
		while (!(is_up = is_served()) && !deadline_is_over(end) && kills_spared(before))
			(void)poll(NULL, 0, 20);
	if (is_up)
		atomic_store(&served_since, before);
	else if (kills_spared(before))
		complain("no server can be started");
	pthread_mutex_unlock(&serving);
}

static void port(struct hand *h)
{
	unsigned before = atomic_load(&served_since);
	cleanup_free char *list = cordon_session_exposed(place);

	(void)h;
	if (is_served())
		return;
	if (before == atomic_load(&served_since) && kills_spared(before))
		complain("the server does not answer");
	serve();
}

static void restart(struct hand *h)
{
	struct cordon_session *c = own(h);
	cleanup_error struct cordon_error *e = NULL;
	unsigned before = kills_mark();
	int r = c ? cordon_session_restart(c, &e) : 0;

	if (r < 0 && kills_spared(before))
		complain("restart: %s", cordon_error_message(e));
	if (c)
		run(c, "print(42)", "42\n");
}

static void describe(struct hand *h)
{
	cleanup_free char *text = cordon_session_describe(place), *all = cordon_process_list(place);

	(void)h;
	if (!text || !all)
		complain("describe");
}

static const struct door {
	const char *name;
	void (*fn)(struct hand *h);
	unsigned part; /* of the rounds, one in */
} doors[] = { { "command", command, 1 },  { "process", process, 1 }, { "terminal", terminal, 1 },
	      { "context", context, 1 },  { "inspect", inspect, 1 }, { "state", state, 1 },
	      { "files", files, 1 },      { "port", port, 1 },       { "restart", restart, 4 },
	      { "describe", describe, 1 } };
enum { DOORS = sizeof(doors) / sizeof(*doors) };

/* ---- threads */

static unsigned rounds;
static _Atomic(uint64_t) since[THREADS];
static _Atomic(const char *) doing[THREADS];
static atomic_uint used[DOORS], busy;

static bool pick(unsigned *seed, unsigned *ret)
{
	unsigned first = (unsigned)rand_r(seed) % DOORS;

	for (unsigned i = 0; i < DOORS; i++) {
		unsigned door = (first + i) % DOORS;

		if (atomic_load(&used[door]) < rounds / doors[door].part) {
			*ret = door;
			return true;
		}
	}
	return false;
}

static void *work(void *arg)
{
	struct hand h = { .number = (unsigned)(uintptr_t)arg,
			  .seed = (unsigned)(uintptr_t)arg * 7919 + (unsigned)getpid() };
	unsigned door;

	while (pick(&h.seed, &door)) {
		doing[h.number] = doors[door].name;
		since[h.number] = clock_now_ns();
		doors[door].fn(&h);
		atomic_fetch_add(&used[door], 1);
		if (h.number == 0 && rand_r(&h.seed) % 8 == 0 && !kills_one(&h.seed, DEPTH))
			complain("what ends with a killed process lives on");
	}
	since[h.number] = 0;
	atomic_fetch_sub(&busy, 1);
	return NULL;
}

/* A thread that does not come back is named, and the process ends. */
static void watch(void)
{
	while (atomic_load(&busy) > 0) {
		sleep(1);
		for (unsigned i = 0; i < THREADS; i++) {
			uint64_t start = since[i];

			if (!start || clock_now_ns() - start < STUCK_SECONDS * 1000000000ULL)
				continue;
			printf("not ok 1 - nothing is stuck\n# '%s' does not come back\n1..1\n",
			       doing[i]);
			fflush(stdout);
			abort(); /* a core, or the sanitizer's stacks */
		}
	}
}

static void together(void)
{
	pthread_t t[THREADS];

	for (unsigned i = 0; i < DOORS; i++)
		atomic_store(&used[i], 0);
	atomic_store(&busy, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	watch();
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

/* How long the first and the last tenth took, for whoever reads it. */
static void alone(const struct door *d, unsigned count)
{
	struct hand h = { .number = 0, .seed = 7 };
	uint64_t first = 0, last = 0, tenth = count / 10 ? count / 10 : 1;

	for (unsigned i = 0; i < count; i++) {
		uint64_t start = clock_now_ns();

		(void)rand_r(&h.seed);
		d->fn(&h);
		if (i < tenth)
			first += clock_now_ns() - start;
		if (i >= count - tenth)
			last += clock_now_ns() - start;
	}
	printf("# %s %u times: %.2f ms at first, %.2f ms at last\n", d->name, count,
	       (double)first / (double)tenth / 1e6, (double)last / (double)tenth / 1e6);
}

/* ---- the stage */

static bool begin(void)
{
	static const char *const languages[] = { "python", "sh", NULL };
	static const char *const set[] = { "expose=8000",        "processes=400",
					   "memory_bytes=1G",    "pty=true",
					   "cpu_seconds=86400",  "cpu_percent=200",
					   "workspace_exec=true" };
	struct cordon_session_options o = { .languages = languages };
	cleanup_error struct cordon_error *e = NULL;
	int r = policy ? 0 : cordon_policy_new(NULL, &policy, &e);

	for (size_t i = 0; r == 0 && i < sizeof(set) / sizeof(*set); i++)
		r = cordon_policy_set(policy, set[i], &e);
	o.policy = policy;
	if (r == 0)
		r = cordon_session_open(&o, &place, &e);
	if (r == 0)
		r = cordon_session_expose(place, PORT, NULL, &address, &e);
	if (r < 0)
		printf("# %s\n", cordon_error_message(e));
	return r == 0;
}

static void end(void)
{
	place = cordon_session_close(place);
	free(address);
	address = NULL;
}

int main(void)
{
	const char *n = getenv("SOAK_ROUNDS");

	setvbuf(stdout, NULL, _IOLBF, 0);
	rounds = n ? (unsigned)strtoul(n, NULL, 10) : ROUNDS;
	if (!begin()) {
		printf("1..0 # SKIP no sandbox with several languages can be made here\n");
		return 0;
	}
	serve();
	for (unsigned i = 0; i < DOORS; i++)
		alone(&doors[i], 8);
	end();
	struct resources before = resources_look(1);
	if (!begin())
		return 1;
	serve();
	for (unsigned i = 0; i < DOORS; i++)
		alone(&doors[i], rounds / doors[i].part);
	end();
	struct resources between = resources_look(1);
	resources_check(atomic_load(&wrong) == 0, "one thread: each ended as it should", 0,
			(long)atomic_load(&wrong));
	resources_compare(&before, &between, 32768);
	if (!begin())
		return 1;
	serve();
	together();
	end();
	struct resources after = resources_look(1);
	printf("# %u kills\n", kills_count());
	resources_check(atomic_load(&wrong) == 0, "eight threads: each ended as it should", 0,
			(long)atomic_load(&wrong));
	resources_compare(&before, &after, 32768);
	cordon_policy_free(policy);
	return resources_end();
}
