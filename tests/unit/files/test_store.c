#include "files/store.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "files/autosave.h"
#include "files/offload.h"
#include "fixture.h"

static char dir[] = "/tmp/cordon-store-XXXXXX";

static void remove_dir(void)
{
	char command[64];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ASSERT_EQ(system(command), 0);
}

static void make_dir(void)
{
	ASSERT(mkdtemp(dir) != NULL);
	atexit(remove_dir);
}

static struct store *open_store(const char *name)
{
	struct cordon_error *e = NULL;
	struct store *s = NULL;
	if (store_open(dir, name, &s, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return s;
}

TEST(store_saves_and_loads_by_name)
{
	make_dir();
	cleanup_fixture struct fixture f = fixture_plain(), g = fixture_plain();
	cleanup_free char *state = NULL, *list = NULL;
	fixture_put(&f, "a", "kept");
	struct store *s = open_store("mine");
	ASSERT_FAILS(store_load(s, g.ws, NULL, &e), CORDON_NOT_FOUND, "open '");
	ASSERT_EQ(store_save(s, f.ws, "{\"cwd\":\"/tmp\"}", NULL), 0);
	s = store_close(s);
	s = open_store("other");
	ASSERT_FAILS(store_load(s, g.ws, NULL, &e), CORDON_NOT_FOUND, "open '");
	s = store_close(s);
	s = open_store("mine");
	ASSERT_EQ(store_load(s, g.ws, &state, NULL), 0);
	ASSERT_STREQ(state, "{\"cwd\":\"/tmp\"}");
	ASSERT_STREQ(fixture_get(&g, "a"), "kept");
	ASSERT_EQ(store_list(dir, &list, NULL), 0);
	ASSERT_HAS(list, "[{\"name\":\"mine\",\"bytes\":");
	struct stat st;
	ASSERT_EQ(stat(store_path(s), &st), 0);
	ASSERT_EQ(st.st_mode & 07777, 0600);
	ASSERT_EQ(store_clear(s, NULL), 0);
	ASSERT_EQ(store_clear(s, NULL), 0);
	ASSERT_EQ(store_load(s, g.ws, NULL, NULL), -CORDON_NOT_FOUND);
	store_close(s);
}

TEST(store_names_never_leave_the_directory_or_meet)
{
	static const char *const names[] = { "../x", "a/b",      "a_b",  ".hidden",
					     "a b",  "\xc3\xa9", "x.cws" };
	cleanup_free char *seen[7] = { NULL };
	make_dir();
	for (size_t i = 0; i < 7; i++) {
		ASSERT_EQ(store_find(dir, names[i], &seen[i], NULL), 0);
		ASSERT(strncmp(seen[i], dir, strlen(dir)) == 0);
		ASSERT(strchr(seen[i] + strlen(dir) + 1, '/') == NULL);
		ASSERT(seen[i][strlen(dir) + 1] != '.');
		for (size_t k = 0; k < i; k++)
			ASSERT(strcmp(seen[i], seen[k]) != 0);
	}
	for (size_t i = 1; i < 7; i++)
		free(seen[i]);
	struct store *s = NULL;
	ASSERT_FAILS(store_open(dir, "", &s, &e), CORDON_INVALID, "a workspace's name");
}

TEST(store_tells_who_holds_a_name)
{
	make_dir();
	struct store *s = open_store("mine"), *t = NULL;
	char want[128];
	snprintf(want, sizeof(want), "the workspace 'mine' is held by process %d", getpid());
	ASSERT_FAILS(store_open(dir, "mine", &t, &e), CORDON_EXISTS, want);
	s = store_close(s);
	pid_t child = fork(); /* who dies lets go */
	if (child == 0) {
		s = open_store("mine");
		raise(SIGKILL);
	}
	ASSERT_EQ(waitpid(child, NULL, 0), child);
	store_close(open_store("mine"));
}

TEST(store_refuses_a_damaged_file_and_keeps_it)
{
	make_dir();
	cleanup_fixture struct fixture f = fixture_plain();
	cleanup_store struct store *s = open_store("mine");
	fixture_put(&f, "a", "kept");
	ASSERT_EQ(store_save(s, f.ws, NULL, NULL), 0);
	int fd = open(store_path(s), O_RDWR);
	ASSERT_EQ(pwrite(fd, "X", 1, 70), 1);
	close(fd);
	ASSERT_FAILS(store_load(s, f.ws, NULL, &e), CORDON_INVALID, "load '");
	ASSERT_EQ(access(store_path(s), F_OK), 0);
}

TEST(store_says_which_limit_a_saved_workspace_does_not_fit)
{
	make_dir();
	cleanup_fixture struct fixture f = fixture_plain(), small = fixture_open(1 << 20, 100);
	cleanup_store struct store *s = open_store("mine");
	static const char block[2 << 20];
	ASSERT_EQ(workspace_write(f.ws, "b", block, sizeof(block), NULL), 0);
	ASSERT_EQ(store_save(s, f.ws, NULL, NULL), 0);
	cleanup_error struct cordon_error *e = NULL;
	ASSERT_EQ(store_load(s, small.ws, NULL, &e), -CORDON_LIMIT);
	ASSERT(strstr(cordon_error_message(e), "fs_bytes=SIZE") != NULL);
}

struct shared {
	volatile unsigned long saved; /* the last number whose save has returned */
};

static void save_forever(struct fixture *f, struct shared *shared, unsigned long from)
{
	struct store *s = open_store("crash");
	for (unsigned long n = from;; n++) {
		char text[64];
		snprintf(text, sizeof(text), "%lu", n);
		fixture_put(f, "/tmp/first", text);
		fixture_put(f, "/workspace/last", text);
		if (store_save(s, f->ws, NULL, NULL) < 0)
			_exit(1);
		shared->saved = n;
	}
}

TEST(store_survives_kill_at_any_moment)
{
	enum { ROUNDS = 200 };
	make_dir();
	cleanup_fixture struct fixture f = fixture_plain(), g = fixture_plain();
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT(shared != MAP_FAILED);
	static char ballast[300 * 1024];
	for (size_t i = 0; i < sizeof(ballast); i++)
		ballast[i] = (char)(i * 2654435761U >> 11);
	ASSERT_EQ(workspace_write(f.ws, "ballast", ballast, sizeof(ballast), NULL), 0);
	unsigned long last = 0;
	for (int round = 0; round < ROUNDS; round++) {
		pid_t child = fork();
		if (child == 0)
			save_forever(&f, shared, last + 1);
		/* A whole save now and then, however busy the machine; then anywhere in the next.
		 */
		for (unsigned long before = shared->saved; round % 40 == 0;) {
			if (shared->saved > before)
				break;
			usleep(1000);
		}
		usleep((useconds_t)(round * 37 % 9000));
		kill(child, SIGKILL);
		ASSERT_EQ(waitpid(child, NULL, 0), child);

		cleanup_store struct store *s = open_store("crash");
		struct cordon_error *e = NULL;
		if (store_load(s, g.ws, NULL, &e) < 0)
			test_fail(__FILE__, __LINE__, "round %d: %s", round,
				  cordon_error_message(e));
		unsigned long first = strtoul(fixture_get(&g, "/tmp/first"), NULL, 10);
		unsigned long now = strtoul(fixture_get(&g, "/workspace/last"), NULL, 10);
		ASSERT_EQ(first, now); /* whole, not half */
		ASSERT(now >= shared->saved && now >= last);
		last = now;
	}
	ASSERT(last > 1);
	fprintf(stderr, "# %d kills, %lu states\n", ROUNDS, last);
	/* And nothing half-written is left. */
	cleanup_store struct store *s = open_store("crash");
	char command[128];
	snprintf(command, sizeof(command), "test $(ls -A %s | wc -l) -eq 2", dir);
	ASSERT_EQ(system(command), 0);
}

struct counted {
	_Atomic int saves;
	bool fails;
};

static int count_save(void *arg, struct cordon_error **reterr)
{
	struct counted *c = arg;
	c->saves++;
	return c->fails ? err_set(reterr, CORDON_OS, "disk on fire") : 0;
}

TEST(autosave_waits_for_a_pause)
{
	struct counted c = { 0 };
	cleanup_autosave struct autosave *a = NULL;
	ASSERT_EQ(autosave_new(50, count_save, &c, &a, NULL), 0);
	for (int i = 0; i < 10; i++) {
		autosave_touch(a);
		usleep(1000);
	}
	for (int i = 0; i < 200 && !c.saves; i++)
		usleep(10000);
	ASSERT_EQ(c.saves, 1); /* ten changes, one save */
	ASSERT_EQ(autosave_flush(a, NULL), 0);
	ASSERT_EQ(c.saves, 1); /* nothing new */
	autosave_touch(a);
	ASSERT_EQ(autosave_flush(a, NULL), 0);
	ASSERT_EQ(c.saves, 2);
	autosave_touch(a);
	a = autosave_free(a);
	ASSERT_EQ(c.saves, 3); /* ending saves */
}

TEST(autosave_does_not_wait_forever_and_tells_failures)
{
	struct counted c = { .fails = true };
	cleanup_autosave struct autosave *a = NULL;
	ASSERT_EQ(autosave_new(20, count_save, &c, &a, NULL), 0);
	for (int i = 0; i < 1000 && !c.saves; i++) {
		autosave_touch(a); /* never a pause */
		usleep(5000);
	}
	ASSERT(c.saves > 0);
	ASSERT_FAILS(autosave_flush(a, &e), CORDON_OS, "disk on fire");
	cleanup_free char *why = autosave_failure(a);
	ASSERT_STREQ(why, "disk on fire");
	/* What failed is not forgotten: it is tried again, also without a further change. */
	int before = c.saves;
	ASSERT_FAILS(autosave_flush(a, &e), CORDON_OS, "disk on fire");
	ASSERT_EQ(c.saves, before + 1);
	c.fails = false;
	ASSERT_EQ(autosave_flush(a, NULL), 0);
	ASSERT_EQ(c.saves, before + 2);
	ASSERT(!autosave_failure(a));
	ASSERT_EQ(autosave_flush(a, NULL), 0);
	ASSERT_EQ(c.saves, before + 2); /* all is saved */
}

struct storage {
	void *bytes;
	size_t len;
	bool fails;
};

static int keep(const char *id, const void *bytes, size_t len, void *arg,
		struct cordon_error **reterr)
{
	struct storage *s = arg;
	ASSERT_STREQ(id, "id-1");
	if (s->fails)
		return err_set(reterr, CORDON_OS, "no storage");
	s->bytes = malloc(len);
	s->len = len;
	memcpy(s->bytes, bytes, len);
	return 0;
}

static int give_back(const char *id, void **ret, size_t *ret_len, void *arg,
		     struct cordon_error **reterr)
{
	struct storage *s = arg;
	(void)id, (void)reterr;
	*ret = s->bytes;
	*ret_len = s->len;
	s->bytes = NULL;
	return 0;
}

TEST(offload_and_back)
{
	cleanup_fixture struct fixture f = fixture_plain();
	struct storage s = { .fails = true };
	cleanup_free char *state = NULL;
	char *bytes;
	size_t len;
	fixture_put(&f, "d/a", "content");
	ASSERT_FAILS(offload_save(f.ws, "id-1", "{}", keep, &s, &e), CORDON_OS, "no storage");
	ASSERT_STREQ(fixture_get(&f, "d/a"), "content"); /* a failing save keeps all */
	s.fails = false;
	struct workspace_usage before, after;
	ASSERT_EQ(workspace_get_usage(f.ws, &before, NULL), 0);
	ASSERT_EQ(offload_save(f.ws, "id-1", "{\"env\":{}}", keep, &s, NULL), 0);
	ASSERT_EQ(offload_save(f.ws, "id-1", NULL, keep, &s, NULL), 0);
	ASSERT_FAILS(workspace_read(f.ws, "d/a", 0, &bytes, &len, &e), CORDON_STATE,
		     "Sandbox is offloaded");
	struct stat st;
	ASSERT_EQ(fstatat(f.root_fd, "user/d", &st, 0), -1); /* and its room is free */
	ASSERT_EQ(offload_load(f.ws, "id-1", give_back, &s, &state, NULL), 0);
	ASSERT_STREQ(state, "{\"env\":{}}");
	ASSERT_STREQ(fixture_get(&f, "d/a"), "content");
	char *none = NULL;
	ASSERT_EQ(offload_load(f.ws, "id-1", give_back, &s, &none, NULL), 0);
	ASSERT(none == NULL);
	ASSERT_EQ(workspace_get_usage(f.ws, &after, NULL), 0);
	ASSERT_EQ(after.files, before.files);
}

enum { CARRIED = 1000 };

/* The first who is let in finds all files. */
static void *come_in(void *arg)
{
	struct fixture *f = arg;
	struct workspace_usage usage;

	while (workspace_get_usage(f->ws, &usage, NULL) < 0)
		;
	return (void *)(uintptr_t)usage.files;
}

TEST(nobody_uses_a_workspace_that_is_being_brought_back)
{
	cleanup_fixture struct fixture f = fixture_plain();
	struct workspace_usage before;
	struct storage s = { 0 };
	pthread_t other;
	void *seen = NULL;
	char name[32];

	for (int i = 0; i < CARRIED; i++) {
		(void)snprintf(name, sizeof(name), "d/%d", i);
		fixture_put(&f, name, "content");
	}
	ASSERT_EQ(workspace_get_usage(f.ws, &before, NULL), 0);
	ASSERT_EQ(offload_save(f.ws, "id-1", NULL, keep, &s, NULL), 0);
	ASSERT_EQ(pthread_create(&other, NULL, come_in, &f), 0);
	ASSERT_EQ(offload_load(f.ws, "id-1", give_back, &s, NULL, NULL), 0);
	ASSERT_EQ(pthread_join(other, &seen), 0);
	ASSERT_EQ((uintptr_t)seen, before.files);
}
