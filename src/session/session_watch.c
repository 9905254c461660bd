/* session/session_watch.c - see session_watch.h. A restart gives the session another workspace with
 * the same files; a watch then begins anew there, and says that changes may be lost. */
#include "session/session_watch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cordon/files.h"
#include "files/file_watch.h"
#include "session/session.h"

/* LOOK_MS: how often a wait looks whether the workspace was replaced or the watch closed. */
enum { WATCHES_MAX = 16, LOOK_MS = 50 };

struct session_watch {
	uint64_t number;
	char *path;
	bool is_recursive, is_used, is_closed; /* guarded by the session's `lock` */
	struct file_watch *files;
	const struct workspace *of; /* only compared */
	struct session_watch *next;
};

static void watch_free(struct session_watch *w)
{
	file_watch_free(w->files);
	free(w->path);
	free(w);
}

void session_watch_end(struct cordon_session *root)
{
	while (root->watches) {
		struct session_watch *w = root->watches;

		root->watches = w->next;
		watch_free(w);
	}
}

/* Adds it to the list, which then owns it. */
static int add_watch(struct cordon_session *root, struct session_watch *w, uint64_t *ret,
		     struct cordon_error **reterr)
{
	unsigned count = 0;
	int r = 0;

	pthread_mutex_lock(&root->lock);
	for (const struct session_watch *other = root->watches; other; other = other->next)
		count++;
	if (root->is_closed)
		r = err_set(reterr, CORDON_STATE, "Session is not running.");
	else if (count >= WATCHES_MAX)
		r = err_set(reterr, CORDON_LIMIT, "the session has %d watches already; close one",
			    WATCHES_MAX);
	if (r == 0) {
		*ret = w->number = ++root->watch_number;
		w->next = root->watches;
		root->watches = w;
	}
	pthread_mutex_unlock(&root->lock);
	return r;
}

int cordon_watch_open(struct cordon_session *s, const char *path, bool recursive, uint64_t *ret,
		      struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	struct session_watch *w = NULL;
	int r = session_workspace_at(s, path, &ws, reterr);

	if (r < 0)
		return r;
	w = mem_alloc(sizeof(*w));
	if (!w || !(w->path = str_dup(path))) {
		free(w);
		return err_errno(reterr, ENOMEM, "watch '%s'", path);
	}
	w->is_recursive = recursive;
	w->of = ws;
	r = file_watch_new(ws, path, recursive, &w->files, reterr);
	if (r == 0)
		r = add_watch(session_root(s), w, ret, reterr);
	if (r < 0)
		watch_free(w);
	return r;
}

/* Under the lock. */
static struct session_watch **find(struct cordon_session *root, uint64_t number)
{
	struct session_watch **p = &root->watches;

	while (*p && (*p)->number != number)
		p = &(*p)->next;
	return p;
}

static int begin(struct cordon_session *root, uint64_t number, struct session_watch **ret,
		 struct cordon_error **reterr)
{
	pthread_mutex_lock(&root->lock);
	struct session_watch *w = *find(root, number);
	int r = !w           ? err_set(reterr, CORDON_NOT_FOUND, "there is no watch %llu",
				       (unsigned long long)number)
		: w->is_used ? err_set(reterr, CORDON_STATE, "another call waits for this watch")
			     : 0;
	if (r == 0) {
		w->is_used = true;
		*ret = w;
	}
	pthread_mutex_unlock(&root->lock);
	return r;
}

static bool is_closed(struct cordon_session *root, const struct session_watch *w)
{
	pthread_mutex_lock(&root->lock);
	bool is = w->is_closed || root->is_closed;
	pthread_mutex_unlock(&root->lock);
	return is;
}

static void end(struct cordon_session *root, struct session_watch *w)
{
	pthread_mutex_lock(&root->lock);
	w->is_used = false;
	bool is_last = w->is_closed; /* it is in no list */
	pthread_mutex_unlock(&root->lock);
	if (is_last)
		watch_free(w);
}

/* Reads once, for at most LOOK_MS. */
static int look(struct cordon_session *s, struct session_watch *w, int wait_ms, json_t *changes,
		struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	int r = session_workspace_at(s, w->path, &ws, reterr);

	if (r < 0)
		return r;
	if (w->of != ws || file_watch_is_over(w->files)) {
		struct file_watch *files = NULL;

		r = file_watch_new(ws, w->path, w->is_recursive, &files, reterr);
		if (r < 0)
			return r;
		file_watch_free(w->files);
		w->files = files;
		w->of = ws;
		file_watch_add_loss(files, changes);
		return 0;
	}
	return file_watch_read(w->files, ws, wait_ms, changes, reterr);
}

int cordon_watch_wait(struct cordon_session *s, uint64_t watch, uint64_t wait_ms, char **ret_json,
		      struct cordon_error **reterr)
{
	struct cordon_session *root = session_root(s);
	deadline_ns deadline = wait_ms == UINT64_MAX ? 0 : deadline_after_ms(wait_ms);
	cleanup_json json_t *changes = json_array();
	struct session_watch *w = NULL;
	int r = begin(root, watch, &w, reterr);

	if (r < 0)
		return r;
	for (;;) {
		bool is_last = deadline_is_over(deadline) || is_closed(root, w);

		r = look(s, w, is_last ? 0 : LOOK_MS, changes, reterr);
		if (r < 0 || is_last || json_array_size(changes) > 0)
			break;
	}
	end(root, w);
	if (r < 0)
		return r;
	*ret_json = json_text(changes, NULL);
	return *ret_json ? 0 : err_errno(reterr, ENOMEM, "wait for changes");
}

int cordon_watch_close(struct cordon_session *s, uint64_t watch, struct cordon_error **reterr)
{
	struct cordon_session *root = session_root(s);

	pthread_mutex_lock(&root->lock);
	struct session_watch **p = find(root, watch), *w = *p;
	bool is_used = w && w->is_used;
	if (w) {
		*p = w->next;
		w->is_closed = true;
	}
	pthread_mutex_unlock(&root->lock);
	if (!w)
		return err_set(reterr, CORDON_NOT_FOUND, "there is no watch %llu",
			       (unsigned long long)watch);
	if (!is_used)
		watch_free(w);
	return 0;
}
