/* files/snapshot.c - see snapshot.h. */
#include "files/snapshot.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "files/path_lookup.h"
#include "files/tree_image.h"

enum { DEFAULT_COUNT = 64, MAX_NAME = 128, MAX_STATE = 1 << 20 };
#define DEFAULT_BYTES (UINT64_C(1) << 30)

struct snapshot {
	char *name, *state;
	char created[CLOCK_UTC_SIZE];
	struct tree_image *image;
	struct snapshot *next;
};

struct snapshots {
	struct snapshots_options opts;
	pthread_mutex_t lock;
	struct snapshot *first; /* oldest first */
	uint32_t count;
	uint64_t bytes;
	uint64_t next_number;
	struct snapshot *latest; /* borrowed: last created or restored, so the likeliest to share
				    contents with */
};

int snapshots_new(const struct snapshots_options *opts, struct snapshots **ret,
		  struct cordon_error **reterr)
{
	struct snapshots *s = mem_alloc(sizeof(*s));
	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (opts)
		s->opts = *opts;
	if (!s->opts.max_count)
		s->opts.max_count = DEFAULT_COUNT;
	if (!s->opts.max_bytes)
		s->opts.max_bytes = DEFAULT_BYTES;
	s->next_number = 1;
	(void)pthread_mutex_init(&s->lock, NULL);
	*ret = s;
	return 0;
}

static void drop(struct snapshots *s, struct snapshot *one)
{
	uint64_t freed = 0;
	if (!one)
		return;
	(void)tree_image_free(one->image, &freed);
	if (s) {
		s->bytes -= freed < s->bytes ? freed : s->bytes;
		s->latest = s->latest == one ? NULL : s->latest;
	}
	free(one->name);
	free(one->state);
	free(one);
}

struct snapshots *snapshots_free(struct snapshots *s)
{
	if (!s)
		return NULL;
	while (s->first) {
		struct snapshot *next = s->first->next;
		drop(s, s->first);
		s->first = next;
	}
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

static struct snapshot **find(struct snapshots *s, const char *name)
{
	struct snapshot **at = &s->first;
	while (*at && !str_eq((*at)->name, name))
		at = &(*at)->next;
	return at;
}

static void unlock(pthread_mutex_t **lock)
{
	(void)pthread_mutex_unlock(*lock);
}
#define LOCK(s)                                                                                    \
	CLEANUP(unlock) pthread_mutex_t *locked_ = &(s)->lock;                                     \
	(void)pthread_mutex_lock(locked_)

static int fail(const struct snapshots *s, const struct workspace *ws, const char *what, int r,
		struct cordon_error **reterr)
{
	switch (r) {
	case -EDQUOT:
		return err_set(reterr, CORDON_LIMIT,
			       "snapshots hold %llu of %llu bytes: no room for %s",
			       (unsigned long long)(s ? s->bytes : 0),
			       (unsigned long long)(s ? s->opts.max_bytes : 0), what);
	case -E2BIG:
		return err_set(reterr, CORDON_LIMIT, "%s: more than %d files", what,
			       LISTING_MAX_ENTRIES);
	case -ENAMETOOLONG:
		return err_set(reterr, CORDON_LIMIT, "%s: directories nested too deeply", what);
	default:
		return path_lookup_fail(ws, what, r, reterr);
	}
}

static int check_name(const char *name, struct cordon_error **reterr)
{
	size_t n = strlen(name);
	if (!n || n > MAX_NAME || !str_is_utf8(name, n))
		return err_set(reterr, CORDON_INVALID,
			       "a snapshot's name has 1 to %d bytes of UTF-8", MAX_NAME);
	return 0;
}

static struct snapshot *new_snapshot(struct snapshots *s, const char *name, const char *state)
{
	struct snapshot *one = mem_alloc(sizeof(*one));
	if (!one)
		return NULL;
	clock_utc_text(one->created);
	one->name = name ? str_dup(name) : NULL;
	while (!name && !one->name) {
		one->name = str_printf("%llu", (unsigned long long)s->next_number++);
		if (!one->name)
			break;
		if (*find(s, one->name)) {
			free(one->name);
			one->name = NULL;
		}
	}
	one->state = str_dup(state);
	if (!one->name || (state && !one->state)) {
		drop(NULL, one);
		return NULL;
	}
	return one;
}

/* Appends it and removes an older one with the same name. */
static void add(struct snapshots *s, struct snapshot *one)
{
	struct snapshot **at = find(s, one->name), *gone = *at;
	s->bytes += one->image->new_bytes;
	if (gone) {
		*at = gone->next;
		drop(s, gone);
		s->count--;
	}
	while (*at)
		at = &(*at)->next;
	*at = one;
	s->count++;
	s->latest = one;
}

static int take(struct snapshots *s, struct workspace *ws, struct snapshot *one,
		struct cordon_error **reterr)
{
	cleanup_owner struct owner owner = { 0 };
	int r = path_lookup_enter(ws, &owner, reterr);
	if (r < 0)
		return r;
	const struct tree_image *base = s->latest ? s->latest->image : NULL;
	r = tree_image_take(ws, base, s->opts.max_bytes - s->bytes, &one->image);
	return r < 0 ? fail(s, ws, "the snapshot", r, reterr) : 0;
}

int snapshots_create(struct snapshots *s, struct workspace *ws, const char *name, const char *state,
		     char **ret_name, struct cordon_error **reterr)
{
	int r = name ? check_name(name, reterr) : 0;
	if (r < 0)
		return r;
	if (state && strlen(state) > MAX_STATE)
		return err_set(reterr, CORDON_LIMIT, "the environment has more than %d bytes",
			       MAX_STATE);
	LOCK(s);
	if (s->count >= s->opts.max_count && !(name && *find(s, name)))
		return err_set(reterr, CORDON_LIMIT, "there are %u snapshots already", s->count);

	struct snapshot *one = new_snapshot(s, name, state);
	cleanup_free char *copy = one ? str_dup(one->name) : NULL;
	r = copy ? take(s, ws, one, reterr) : err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r < 0) {
		drop(NULL, one);
		return r;
	}
	add(s, one);
	if (ret_name)
		*ret_name = TAKE_PTR(copy);
	return 0;
}

int snapshots_restore(struct snapshots *s, struct workspace *ws, const char *name, char **ret_state,
		      struct cordon_error **reterr)
{
	LOCK(s);
	struct snapshot *one = *find(s, name);
	if (!one)
		return err_set(reterr, CORDON_NOT_FOUND, "no such snapshot: %s", name);
	cleanup_free char *state = str_dup(one->state);
	if (one->state && !state)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	cleanup_owner struct owner owner = { 0 };
	int r = path_lookup_enter(ws, &owner, reterr);
	if (r < 0)
		return r;
	r = tree_image_restore(one->image, NULL, ws);
	if (r < 0)
		return fail(s, ws, name, r, reterr);
	s->latest = one;
	if (ret_state)
		*ret_state = TAKE_PTR(state);
	return 0;
}

int snapshots_remove(struct snapshots *s, const char *name, struct cordon_error **reterr)
{
	LOCK(s);
	struct snapshot **at = find(s, name), *one = *at;
	if (!one)
		return err_set(reterr, CORDON_NOT_FOUND, "no such snapshot: %s", name);
	*at = one->next;
	s->count--;
	drop(s, one);
	return 0;
}

char *snapshots_list(struct snapshots *s)
{
	LOCK(s);
	cleanup_json json_t *list = json_array();
	for (const struct snapshot *one = s->first; one; one = one->next) {
		const struct tree_image *image = one->image;
		json_t *item = json_pack(
			"{s:s, s:s, s:I, s:I, s:I}", "name", one->name, "created", one->created,
			"files", (json_int_t)(image->tree.count - WORKSPACE_TREES), "bytes",
			(json_int_t)image->bytes, "own_bytes", (json_int_t)image->new_bytes);
		if (!item || json_array_append_new(list, item))
			return NULL;
	}
	return json_text(list, NULL);
}

/* Names the directories that an outline leaves out; NULL: no memory. */
static char *name_deep(const struct listing *l)
{
	char path[PATH_MAX];
	if (!listing_path(l, l->deep_above, sizeof(path), path))
		path[0] = '\0';
	size_t home = strlen(path_lookup_tree_name(WORKSPACE_HOME));
	bool is_home = !strncmp(path, path_lookup_tree_name(WORKSPACE_HOME), home) &&
		       (!path[home] || path[home] == '/');
	return str_printf("%zu director%s nested too deeply, the first in '%s%.160s%s'",
			  l->deep_count, l->deep_count == 1 ? "y is" : "ies are",
			  is_home ? "/home/" : "/", path, strlen(path) > 160 ? "..." : "");
}

/* ret_lost NULL: any loss is an error. */
static int carry(struct workspace *from, struct workspace *to, char **ret_lost,
		 struct cordon_error **reterr)
{
	cleanup_tree_image struct tree_image *image = NULL;
	cleanup_owner struct owner owner = { 0 };
	int r = path_lookup_enter(from, &owner, reterr);
	if (r < 0)
		return r;
	r = tree_image_outline(from, &image);
	owner_leave(&owner);
	if (r == 0 && image->tree.deep_count > 0 && !ret_lost)
		r = -ENAMETOOLONG;
	if (r < 0)
		return fail(NULL, from, "the fork", r, reterr);
	if (image->tree.deep_count > 0 && ret_lost && !(*ret_lost = name_deep(&image->tree)))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	r = path_lookup_enter(to, &owner, reterr);
	if (r < 0)
		return r;
	r = tree_image_restore(image, from, to);
	return r < 0 ? fail(NULL, to, "the fork", r, reterr) : 0;
}

int snapshot_fork(struct workspace *from, struct workspace *to, struct cordon_error **reterr)
{
	return carry(from, to, NULL, reterr);
}

int snapshot_carry(struct workspace *from, struct workspace *to, char **ret_lost,
		   struct cordon_error **reterr)
{
	cleanup_free char *lost = NULL;
	int r = carry(from, to, &lost, reterr);
	if (r == 0)
		*ret_lost = TAKE_PTR(lost);
	return r;
}
