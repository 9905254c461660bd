/* A guest that swaps names while the host uses them, 100,000 rounds. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "fixture.h"

enum { ROUNDS = 100000, SECONDS = 15 };

struct race {
	int tmp_fd;
	atomic_bool is_over;
	atomic_ulong swaps;
};

/* /tmp/d is in turn a directory with our file and a link to the directory outside. */
static void *swap_names(void *arg)
{
	struct race *r = arg;
	while (!atomic_load(&r->is_over)) {
		(void)renameat2(r->tmp_fd, "d", r->tmp_fd, "link", RENAME_EXCHANGE);
		(void)renameat2(r->tmp_fd, "file", r->tmp_fd, "out", RENAME_EXCHANGE);
		atomic_fetch_add(&r->swaps, 1);
	}
	return NULL;
}

static void one_round(struct fixture *f, int i)
{
	char bytes[64] = "", *all = NULL;
	size_t len = 0;
	static const char *const paths[] = { "/tmp/d/secret", "/tmp/file", "/tmp/d/../d/secret" };
	const char *path = paths[i % 3];
	struct cordon_file_info info;
	switch (i % 7) {
	case 0:
	case 1:
	case 2:
		if (workspace_read_at(f->ws, path, 0, bytes, sizeof(bytes) - 1, &len, NULL) == 0)
			ASSERT_STREQ(bytes, "inside");
		break;
	case 3:
		(void)workspace_write(f->ws, path, "inside", 6, NULL);
		break;
	case 4:
		if (workspace_read(f->ws, path, 0, &all, &len, NULL) == 0)
			ASSERT_STREQ(all, "inside");
		free(all);
		break;
	case 5:
		(void)workspace_append(f->ws, "/tmp/d/log", "x", 1, NULL);
		break;
	default:
		if (workspace_stat(f->ws, path, &info, NULL) == 0 && info.type == CORDON_FILE)
			ASSERT_EQ(info.size, 6);
	}
}

TEST(race_never_reaches_outside)
{
	cleanup_fixture struct fixture f = fixture_plain();
	char outside[] = "/tmp/cordon-outside-XXXXXX", secret[64];
	ASSERT(mkdtemp(outside) != NULL);
	ASSERT_EQ(chmod(outside, 0777), 0);
	snprintf(secret, sizeof(secret), "%s/secret", outside);
	FILE *out = fopen(secret, "w");
	ASSERT(out && fputs("outside-secret", out) >= 0 && fclose(out) == 0);
	ASSERT_EQ(chmod(secret, 0666), 0);

	fixture_put(&f, "/tmp/d/secret", "inside");
	fixture_put(&f, "/tmp/file", "inside");
	ASSERT_EQ(workspace_symlink(f.ws, outside, "/tmp/link", NULL), 0);
	ASSERT_EQ(workspace_symlink(f.ws, secret, "/tmp/out", NULL), 0);

	struct race r = { .tmp_fd = openat(f.root_fd, "tmp", O_PATH | O_DIRECTORY) };
	pthread_t guest;
	ASSERT_EQ(pthread_create(&guest, NULL, swap_names, &r), 0);
	time_t end = time(NULL) + SECONDS;
	int i = 0;
	for (; i < ROUNDS && (i % 1024 || time(NULL) < end); i++)
		one_round(&f, i);
	atomic_store(&r.is_over, true);
	ASSERT_EQ(pthread_join(guest, NULL), 0);
	close(r.tmp_fd);

	ASSERT(atomic_load(&r.swaps) > 100);
	ASSERT(i > 1000);
	char back[64] = "";
	out = fopen(secret, "r");
	ASSERT(out && fgets(back, sizeof(back), out));
	fclose(out);
	ASSERT_STREQ(back, "outside-secret");
	ASSERT_EQ(unlink(secret), 0);
	ASSERT_EQ(rmdir(outside), 0); /* nothing was made beside it either */
	fprintf(stderr, "# %d rounds against %lu swaps\n", i, atomic_load(&r.swaps));
}
