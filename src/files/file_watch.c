/* files/file_watch.c - see file_watch.h. Directories are looked up by their paths, each time anew,
 * so whatever the guest does to the tree leads to a directory of its workspace, or to none. */
#include "files/file_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dir_events.h"
#include "base/mem.h"
#include "base/str.h"
#include "files/path_lookup.h"

/* ENOUGH: no more is read then. What one read gives fits into an answer besides.
 * READS: events that change nothing would be read for as long as the code makes them.
 * LOOKS: how many entries an answer looks at to find what came with new directories. Code that
 * moves a large directory to and fro would have the host look at it each time. */
enum { MAX_SWAPS = 100, ENOUGH = 450, READS = 64, LOOKS = 20000 };

struct watched {
	int number;
	char *path;
};

struct file_watch {
	int fd;
	bool is_recursive, is_over, is_lost;
	bool is_stale;               /* it may not have all directories */
	struct watched *directories; /* the first is the watch's own */
	size_t count;
};

/* What one call works with. */
struct turn {
	struct file_watch *watch;
	struct workspace *workspace;
	json_t *changes;    /* NULL: nothing is told */
	const char *folder; /* that is being listed */
	size_t looks;       /* at so many entries more */
};

static void note(struct turn *t, const char *path, const char *change, bool is_directory)
{
	size_t count = json_array_size(t->changes);
	const json_t *last = json_array_get(t->changes, count > 0 ? count - 1 : 0);

	if (!t->changes)
		return;
	if (count >= FILE_WATCH_CHANGES) {
		t->watch->is_lost = true;
		return;
	}
	cleanup_json json_t *d =
		json_pack("{s:o, s:s, s:s}", "path", json_string_lossy(path, strlen(path)),
			  "change", change, "type", is_directory ? "directory" : "file");
	if (!last || !json_equal(last, d))
		(void)json_array_append(t->changes, d);
}

void file_watch_add_loss(const struct file_watch *w, json_t *changes)
{
	const char *path = w->directories[0].path;

	(void)json_array_append_new(changes, json_pack("{s:o, s:s, s:s}", "path",
						       json_string_lossy(path, strlen(path)),
						       "change", "lost", "type", "directory"));
}

static int open_directory(struct workspace *ws, const char *path, unsigned flags)
{
	cleanup_owner struct owner o = { 0 };
	int r = owner_enter(&o, ws->opts.owner_uid, ws->opts.owner_gid);

	for (int i = 0; i < MAX_SWAPS && (r == 0 || r == -ELOOP); i++) {
		cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;

		r = path_lookup_find(ws, path, flags, &p);
		if (r == 0)
			r = path_lookup_open(&p, O_RDONLY | O_DIRECTORY, 0);
		if (r >= 0)
			return r;
	}
	return r;
}

static struct watched *find(struct file_watch *w, int number)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->directories[i].number == number)
			return &w->directories[i];
	return NULL;
}

/* Its number, or -errno. */
static int add(struct file_watch *w, struct workspace *ws, const char *path, unsigned flags)
{
	cleanup_close int fd = open_directory(ws, path, flags);
	int number = fd < 0 ? fd : dir_events_add(w->fd, fd);

	if (number < 0)
		return number;
	struct watched *known = find(w, number);
	cleanup_free char *copy = str_dup(path);
	if (!copy)
		return -ENOMEM;
	if (known) { /* it was moved */
		free(known->path);
		known->path = TAKE_PTR(copy);
		return number;
	}
	if (w->count == FILE_WATCH_DIRECTORIES) {
		dir_events_remove(w->fd, number);
		return -ENOSPC;
	}
	w->directories[w->count++] = (struct watched){ .number = number, .path = TAKE_PTR(copy) };
	return number;
}

static void drop(struct file_watch *w, size_t index)
{
	dir_events_remove(w->fd, w->directories[index].number);
	free(w->directories[index].path);
	w->directories[index] = w->directories[--w->count];
}

static bool is_at_or_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	return strncmp(path, folder, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static bool may_look(struct turn *t)
{
	if (t->looks > 0) {
		t->looks--;
		return true;
	}
	t->watch->is_stale = t->watch->is_lost = true;
	return false;
}

static int visit(const char *name, const struct cordon_file_info *info, void *arg)
{
	struct turn *t = arg;
	cleanup_free char *path = str_printf("%s/%s", t->folder, name);
	bool is_directory = info->type == CORDON_DIRECTORY;

	if (!may_look(t))
		return 1;
	if (!path)
		return -CORDON_NOMEM;
	note(t, path, "created", is_directory);
	if (is_directory && t->watch->is_recursive) {
		int r = add(t->watch, t->workspace, path, 0);
		t->watch->is_lost |= r == -ENOSPC || r == -ENOMEM;
	}
	return 0;
}

/* Lists the directories from this one on, to which it adds those that it finds in them. */
static void scan(struct turn *t, size_t first)
{
	for (size_t i = first; i < t->watch->count; i++) {
		cleanup_free char *folder = str_dup(t->watch->directories[i].path);

		t->folder = folder ? folder : "";
		if (folder) /* one that has gone meanwhile has nothing in it */
			(void)workspace_list(t->workspace, folder, visit, t, NULL);
		t->folder = NULL;
	}
}

static void add_below(struct turn *t, const char *path)
{
	size_t before = t->watch->count;
	int r = may_look(t) ? add(t->watch, t->workspace, path, 0) : 0;

	t->watch->is_lost |= r == -ENOSPC || r == -ENOMEM;
	scan(t, before);
}

static void remove_below(struct file_watch *w, const char *path)
{
	for (size_t i = 1; i < w->count;)
		if (is_at_or_below(w->directories[i].path, path))
			drop(w, i);
		else
			i++;
}

static void start_anew(struct turn *t)
{
	json_t *told = t->changes;

	t->watch->is_stale = false;
	t->looks = SIZE_MAX; /* the workspace's number of files limits it */
	while (t->watch->count > 1)
		drop(t->watch, t->watch->count - 1);
	t->changes = NULL;
	scan(t, 0);
	t->changes = told;
}

static const char *change_name(enum dir_event event)
{
	switch (event) {
	case DIR_EVENT_CREATED:
		return "created";
	case DIR_EVENT_REMOVED:
		return "removed";
	default:
		return "modified";
	}
}

static void handle(int number, enum dir_event event, const char *name, bool is_directory, void *arg)
{
	struct turn *t = arg;
	struct file_watch *w = t->watch;
	struct watched *d = find(w, number);

	if (event == DIR_EVENT_LOST) {
		w->is_stale = w->is_lost = true;
		return;
	}
	if (!d || path_lookup_is_stage_name(name)) /* it was dropped; a file that we are making */
		return;
	if (event == DIR_EVENT_GONE || event == DIR_EVENT_MOVED) {
		if (d == w->directories)
			w->is_over = true;
		else if (event == DIR_EVENT_GONE)
			drop(w, (size_t)(d - w->directories));
		return;
	}
	cleanup_free char *path = str_printf("%s/%s", d->path, name);
	if (!path) {
		w->is_lost = true;
		return;
	}
	note(t, path, change_name(event), is_directory);
	if (is_directory && event == DIR_EVENT_REMOVED)
		remove_below(w, path);
	else if (is_directory && event == DIR_EVENT_CREATED && w->is_recursive)
		add_below(t, path);
}

/* Without "." and more than one slash, so that what is told has one name. */
static void tidy(char *path)
{
	char *to = path;

	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");

		if (n > 0 && !(n == 1 && *p == '.')) {
			*to++ = '/';
			memmove(to, p, n);
			to += n;
		}
		p += n + (p[n] == '/');
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
}

int file_watch_new(struct workspace *ws, const char *path, bool is_recursive,
		   struct file_watch **ret, struct cordon_error **reterr)
{
	struct file_watch *w = mem_alloc(sizeof(*w));
	cleanup_free char *full = str_printf("%s%s", *path == '/' ? "" : "/home/user/", path);

	if (!w || !full) {
		free(w);
		return err_errno(reterr, ENOMEM, "watch '%s'", path);
	}
	tidy(full);
	*w = (struct file_watch){ .fd = dir_events_open(), .is_recursive = is_recursive };
	w->directories = mem_alloc(FILE_WATCH_DIRECTORIES * sizeof(*w->directories));
	if (w->fd < 0 || !w->directories) {
		int error = w->fd < 0 ? -w->fd : ENOMEM;

		file_watch_free(w);
		return err_errno(reterr, error, "watch '%s'", path);
	}
	int r = add(w, ws, full, PATH_LOOKUP_FOLLOW);
	if (r < 0) {
		file_watch_free(w);
		return path_lookup_fail(ws, path, r, reterr);
	}
	struct turn t = { .watch = w, .workspace = ws, .looks = SIZE_MAX };
	if (is_recursive)
		scan(&t, 0);
	*ret = w;
	return 0;
}

struct file_watch *file_watch_free(struct file_watch *w)
{
	if (!w)
		return NULL;
	for (size_t i = 0; i < w->count; i++)
		free(w->directories[i].path);
	free(w->directories);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
	return NULL;
}

int file_watch_read(struct file_watch *w, struct workspace *ws, int timeout_ms, json_t *changes,
		    struct cordon_error **reterr)
{
	struct turn t = { .watch = w, .workspace = ws, .changes = changes, .looks = LOOKS };
	struct pollfd p = { .fd = w->fd, .events = POLLIN };
	int r = 1;

	if (!w->is_lost && poll(&p, 1, timeout_ms) < 0 && errno != EINTR)
		return err_errno(reterr, errno, "wait for changes");
	for (int i = 0; r > 0 && i < READS && json_array_size(changes) < ENOUGH; i++)
		r = dir_events_read(w->fd, handle, &t);
	if (r < 0)
		return err_errno(reterr, -r, "read the changes");
	if (w->is_stale)
		start_anew(&t);
	if (w->is_lost)
		file_watch_add_loss(w, changes);
	w->is_lost = false;
	return 0;
}

bool file_watch_is_over(const struct file_watch *w)
{
	return w->is_over;
}
