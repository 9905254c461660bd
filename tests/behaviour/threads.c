/* tests/behaviour/threads.c - calls every public function of one session from eight threads while
 * its guest crashes. Return values do not matter here: some calls are refused, because the session
 * is busy or has no guest. The sanitizers check memory, descriptors and threads. */
#include "dialect.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/test.h"

#define CRASH "import os; os.kill(os.getpid(), 9)"

struct stage {
	struct cordon_session *s;
	const char *dir; /* of the host, for projects */
	_Atomic bool is_over;
	_Atomic unsigned turns[8];
	_Atomic unsigned crashes, successes;
};

static void execute(struct stage *g, const char *code)
{
	struct cordon_execute_options o = { .code = code, .timeout_ms = 20000 };
	struct cordon_result *r = NULL;

	if (cordon_session_execute(g->s, &o, &r, NULL) == 0) {
		(void)cordon_result_json(r);
		g->crashes += str_eq(cordon_result_error_kind(r), "crashed");
		g->successes += cordon_result_success(r);
	}
	cordon_result_free(r);
}

static void crash(struct stage *g)
{
	execute(g, CRASH);
}

static void compute(struct stage *g)
{
	execute(g, "open('/tmp/f', 'w').write('x' * 1000); sum(range(1000))");
	if (g->turns[1] % 7 == 0)
		(void)cordon_session_restart(g->s, NULL);
}

static void look(struct stage *g)
{
	cleanup_free char *text = cordon_session_describe(g->s);

	ASSERT_HAS(text, cordon_session_id(g->s));
	(void)cordon_session_is_alive(g->s);
}

static void disturb(struct stage *g)
{
	static const char id[] = "net-00000000000000000000000000000000-1";

	(void)cordon_session_interrupt(g->s, NULL);
	if (g->turns[3] % 16 == 0)
		(void)cordon_session_cancel(g->s, NULL);
	if (g->turns[3] % 32 == 0)
		(void)cordon_session_kill(g->s, NULL);
	(void)cordon_session_resolve(g->s, id, true, NULL, NULL, NULL);
	(void)cordon_session_resolve(g->s, "no such id", false, NULL, "no", NULL);
	(void)cordon_session_is_alive(g->s);
}

static int count(const char *name, const struct cordon_file_info *info, void *arg)
{
	(void)name, (void)info;
	(*(unsigned *)arg)++;
	return 0;
}

static void use_files(struct stage *g)
{
	cleanup_free char *bytes = NULL;
	struct cordon_file_info info;
	char some[16];
	unsigned names = 0;
	size_t len;

	(void)cordon_file_mkdir(g->s, "/workspace/a/b", true, NULL);
	(void)cordon_file_write(g->s, "/workspace/a/x", "abc", 3, NULL);
	(void)cordon_file_append(g->s, "/workspace/a/x", "def", 3, NULL);
	(void)cordon_file_read(g->s, "/workspace/a/x", &bytes, &len, NULL);
	(void)cordon_file_read_at(g->s, "/workspace/a/x", 1, some, sizeof(some), &len, NULL);
	(void)cordon_file_stat(g->s, "/workspace/a/x", &info, NULL);
	(void)cordon_file_list(g->s, "/workspace", count, &names, NULL);
	(void)cordon_file_move(g->s, "/workspace/a/x", "/workspace/a/y", NULL);
	(void)cordon_file_remove(g->s, "/workspace/a", true, NULL);
}

static void use_snapshots(struct stage *g)
{
	(void)cordon_snapshot_create(g->s, "one", NULL);
	cleanup_free char *all = cordon_snapshot_list(g->s);
	(void)cordon_snapshot_restore(g->s, "one", NULL);
	if (g->turns[5] % 3 == 0)
		(void)cordon_snapshot_remove(g->s, "one", NULL);
	cleanup_free char *value = cordon_session_getenv(g->s, "NAME");
	(void)cordon_session_setenv(g->s, "NAME", g->turns[5] % 2 ? "value" : NULL, NULL);
}

struct store {
	void *bytes;
	size_t len;
};

static int save(const char *id, const void *bytes, size_t len, void *arg)
{
	struct store *st = arg;

	(void)id;
	st->bytes = realloc(st->bytes, len);
	st->len = len;
	memcpy(st->bytes, bytes, len);
	return 0;
}

static int load(const char *id, void **ret, size_t *ret_len, void *arg)
{
	struct store *st = arg;

	(void)id;
	*ret = malloc(st->len);
	memcpy(*ret, st->bytes, st->len);
	*ret_len = st->len;
	return 0;
}

/* The session may be busy: again, until it has its files. */
static void bring_back(struct stage *g, struct store *st)
{
	cleanup_error struct cordon_error *e = NULL;
	int r;

	while ((r = cordon_session_rehydrate(g->s, load, st, &e)) == -CORDON_STATE) {
		e = cordon_error_free(e);
		usleep(1000);
	}
	if (r < 0)
		printf("# rehydrate: %d %s\n", r, cordon_error_message(e));
	ASSERT_EQ(r, 0);
}

static void carry_away(struct stage *g)
{
	cleanup_close int fd = memfd_create("export", MFD_CLOEXEC);
	cleanup_free char *report = NULL;
	struct store st = { 0 };

	if (cordon_files_export(g->s, fd, NULL) == 0 && lseek(fd, 0, SEEK_SET) == 0)
		(void)cordon_files_import(g->s, fd, &report, NULL);
	if (cordon_session_offload(g->s, save, &st, NULL) == 0)
		bring_back(g, &st);
	free(st.bytes);
	struct cordon_session *child = NULL;
	if (cordon_session_fork(g->s, &child, NULL) == 0)
		cordon_session_close(child);
}

static void use_archives(struct stage *g)
{
	cleanup_close int fd = memfd_create("tar", MFD_CLOEXEC);
	cleanup_free char *diff = NULL;
	struct cordon_project *p = NULL;

	if (cordon_file_get_tar(g->s, "/tmp", fd, NULL, NULL) == 0 && lseek(fd, 0, SEEK_SET) == 0)
		(void)cordon_file_put_tar(g->s, "/workspace/t", fd, NULL, NULL);
	if (cordon_project_open(g->s, g->dir, &p, NULL) == 0)
		(void)cordon_project_diff(p, &diff, NULL);
	cordon_project_close(p);
}

static void (*const jobs[8])(struct stage *) = {
	crash, compute, look, disturb, use_files, use_snapshots, carry_away, use_archives
};

struct actor {
	struct stage *stage;
	int job;
	pthread_t thread;
};

static void *act(void *arg)
{
	struct actor *a = arg;

	while (!a->stage->is_over) {
		jobs[a->job](a->stage);
		a->stage->turns[a->job]++;
	}
	return NULL;
}

static unsigned descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Until it has crashed so often and everybody had a turn, or for so long. */
static void play(const char *set, unsigned crashes)
{
	char dir[] = "/tmp/threads-XXXXXX";
	struct stage g = { .s = open_with("python", set), .dir = mkdtemp(dir) };
	struct actor all[8];

	must(g.s, "1");
	unsigned before = descriptors();
	for (int i = 0; i < 8; i++) {
		all[i] = (struct actor){ .stage = &g, .job = i };
		ASSERT_EQ(pthread_create(&all[i].thread, NULL, act, &all[i]), 0);
	}
	for (int ms = 0; ms < 60000; ms += 10) {
		bool is_done = g.crashes >= crashes;
		for (int i = 0; i < 8; i++)
			is_done = is_done && g.turns[i] >= 3;
		if (is_done)
			break;
		usleep(10000);
	}
	g.is_over = true;
	for (int i = 0; i < 8; i++)
		pthread_join(all[i].thread, NULL);
	ASSERT(g.crashes > 0);
	must(g.s, "1");
	ASSERT(descriptors() <= before + 16); /* of control groups that wait for the next session */
	cordon_session_close(g.s);
	rmdir(dir);
}

TEST(a_session_that_crashes_is_used_from_eight_threads)
{
	play(NULL, 100);
}

TEST(and_one_with_a_gateway)
{
	play("network.allow=localhost", 20);
}
