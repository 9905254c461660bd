/* serve/e2b/e2b_watch.c - see e2b_watch.h. */
#include "serve/e2b/e2b_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "serve/e2b/connect_rpc.h"
#include "serve/e2b/e2b_entry.h"
#include "serve/e2b/e2b_state.h"

enum { POLLED_MAX = 256 };

struct e2b_watcher {
	uint64_t watch; /* of the library */
	char id[24];
	char *path;
	bool has_entries;
	bool is_busy;             /* a thread uses it; guarded by the sandbox's lock */
	struct httpd_exchange *x; /* of a stream, with a reference; NULL: it is asked */
	uint64_t ping_ms;
	deadline_ns ping, end; /* end: of its stream; 0: never */
	struct e2b_watcher *next;
};

static void watcher_free(struct e2b_sandbox *b, struct e2b_watcher *w)
{
	if (w->watch)
		(void)cordon_watch_close(b->session, w->watch, NULL);
	if (w->x)
		httpd_put(w->x);
	free(w->path);
	free(w);
}

/* Opens the watch that a request asks for. NULL: the answer is given. */
static struct e2b_watcher *open_watcher(struct e2b_sandbox *b, struct httpd_exchange *x)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *m = NULL;
	struct cordon_file_info info;
	struct e2b_watcher *w = mem_alloc(sizeof(*w));
	int r = w ? connect_rpc_read(x, &m, &e) : err_set(&e, CORDON_NOMEM, "out of memory");

	if (r == 0) {
		const char *path = json_string_value(json_object_get(m, "path"));

		w->path = e2b_entry_path(path ? path : "");
		w->has_entries = json_is_true(json_object_get(m, "includeEntry"));
		r = w->path ? cordon_file_stat(b->session, w->path, &info, &e)
			    : err_set(&e, CORDON_LIMIT, "path is too long");
	}
	if (r == 0 && info.type == CORDON_FILE)
		r = err_set(&e, CORDON_INVALID, "'%.200s' is not a directory", w->path);
	if (r == 0)
		r = cordon_watch_open(b->session, w->path,
				      json_is_true(json_object_get(m, "recursive")), &w->watch, &e);
	if (r == 0)
		return w;
	connect_rpc_fail(x, e);
	if (w)
		watcher_free(b, w);
	return NULL;
}

static void add_watcher(struct e2b_sandbox *b, struct e2b_watcher *w)
{
	pthread_mutex_lock(&b->lock);
	snprintf(w->id, sizeof(w->id), "%u", ++b->last_watcher);
	w->next = b->watchers;
	b->watchers = w;
	pthread_mutex_unlock(&b->lock);
}

/* ---- events */

static json_t *event(struct e2b_sandbox *b, const struct e2b_watcher *w, const char *name,
		     const char *type)
{
	json_t *j = json_object(), *entry = NULL;
	cleanup_free char *full = str_printf("%s/%s", w->path, name);

	json_object_set_new(j, "name", json_string(name));
	json_object_set_new(j, "type", json_string(type));
	if (w->has_entries && full && e2b_entry_describe(b->session, full, &entry, NULL) == 0)
		json_object_set_new(j, "entry", entry);
	return j;
}

/* One change of ours is one or two events of theirs: a file that is there anew was created and
 * written. Only the changed path's part below the watched directory is told. */
static void add_events(struct e2b_sandbox *b, const struct e2b_watcher *w, const json_t *change,
		       json_t *ret)
{
	const char *path = json_string_value(json_object_get(change, "path"));
	const char *what = json_string_value(json_object_get(change, "change"));
	const char *type = json_string_value(json_object_get(change, "type"));
	size_t len = strlen(w->path);

	if (!path || !what)
		return;
	if (strncmp(path, w->path, len) == 0 && path[len] == '/')
		path += len + 1;
	if (str_eq(what, "created")) {
		json_array_append_new(ret, event(b, w, path, "EVENT_TYPE_CREATE"));
		if (str_eq(type, "file"))
			json_array_append_new(ret, event(b, w, path, "EVENT_TYPE_WRITE"));
	} else if (str_eq(what, "modified")) {
		json_array_append_new(ret, event(b, w, path, "EVENT_TYPE_WRITE"));
	} else if (str_eq(what, "removed")) {
		json_array_append_new(ret, event(b, w, path, "EVENT_TYPE_REMOVE"));
	}
}

static int read_events(struct e2b_sandbox *b, const struct e2b_watcher *w, json_t *ret,
		       struct cordon_error **reterr)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *changes = NULL;
	const json_t *change;
	size_t i;
	int r = cordon_watch_wait(b->session, w->watch, 0, &text, reterr);

	if (r == 0)
		r = json_parse(text, strlen(text), 0, &changes, reterr);
	json_array_foreach(changes, i, change) add_events(b, w, change, ret);
	return r;
}

/* ---- streams */

void e2b_watch_stream(struct httpd_exchange *x, void *arg)
{
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_target(arg, x);
	const char *ping = httpd_header(x, "Keepalive-Ping-Interval");
	uint64_t ms = connect_rpc_timeout_ms(x);
	long s = ping ? strtol(ping, NULL, 10) : 0;
	struct e2b_watcher *w = b ? open_watcher(b, x) : NULL;

	if (!w)
		return;
	w->x = httpd_ref(x);
	w->ping_ms = s > 0 && s < 3600 ? (uint64_t)s * 1000 : 0;
	w->ping = deadline_after_ms(w->ping_ms);
	w->end = ms ? deadline_after_ms(ms) : 0;
	connect_rpc_begin(x);
	(void)connect_rpc_send(x, json_pack("{s:{}}", "start"));
	add_watcher(b, w);
	pthread_mutex_lock(&b->e2b->lock);
	pthread_cond_broadcast(&b->e2b->changed); /* the ticker begins to poll */
	pthread_mutex_unlock(&b->e2b->lock);
}

/* False: it is over. */
static bool serve_stream(struct e2b_sandbox *b, struct e2b_watcher *w)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *events = json_array();
	json_t *j;
	size_t i;

	if (httpd_is_gone(w->x)) {
		httpd_stream_end(w->x, false);
		return false;
	}
	if (w->end && deadline_is_over(w->end)) {
		connect_rpc_end(w->x, "deadline_exceeded", "the watch has reached its deadline");
		return false;
	}
	if (read_events(b, w, events, &e) < 0) {
		connect_rpc_end(w->x, connect_rpc_code(cordon_error_code(e)),
				cordon_error_message(e));
		return false;
	}
	if (w->ping_ms && deadline_is_over(w->ping) && json_array_size(events) == 0)
		json_array_append_new(events, json_null());
	json_array_foreach(events, i, j)
	{
		size_t len = 0, n = 0;
		cleanup_json json_t *m = json_is_null(j) ? json_pack("{s:{}}", "keepalive")
							 : json_pack("{s:O}", "filesystem", j);
		cleanup_free char *text = json_text(m, &n);
		cleanup_free char *frame = text ? connect_rpc_frame(0, text, n, &len) : NULL;

		/* The ticker waits for nobody: who does not read loses the watch. */
		if (!frame || !httpd_stream_offer(w->x, frame, len)) {
			httpd_stream_end(w->x, false);
			return false;
		}
		w->ping = deadline_after_ms(w->ping_ms);
	}
	return true;
}

/* Takes it out of the list. Called with the lock held. */
static void unlink_watcher(struct e2b_sandbox *b, const struct e2b_watcher *w)
{
	for (struct e2b_watcher **p = &b->watchers; *p; p = &(*p)->next)
		if (*p == w) {
			*p = w->next;
			return;
		}
}

/* Each watcher is marked while it is used without the lock. */
static void poll_sandbox(struct e2b_sandbox *b)
{
	struct e2b_watcher *all[16];
	size_t n = 0;

	pthread_mutex_lock(&b->lock);
	for (struct e2b_watcher *w = b->watchers; w && n < 16; w = w->next)
		if (w->x && !w->is_busy) {
			w->is_busy = true;
			all[n++] = w;
		}
	pthread_mutex_unlock(&b->lock);
	for (size_t i = 0; i < n; i++) {
		bool goes_on = serve_stream(b, all[i]);

		pthread_mutex_lock(&b->lock);
		all[i]->is_busy = false;
		pthread_cond_broadcast(&b->changed);
		if (!goes_on)
			unlink_watcher(b, all[i]);
		pthread_mutex_unlock(&b->lock);
		if (!goes_on)
			watcher_free(b, all[i]);
	}
}

struct polled {
	struct e2b_sandbox *all[POLLED_MAX];
	size_t count;
};

static bool collect(struct e2b_sandbox *b, void *arg)
{
	struct polled *p = arg;

	pthread_mutex_lock(&b->lock);
	for (const struct e2b_watcher *w = b->watchers; w; w = w->next)
		if (w->x && b->state == E2B_RUNNING) {
			b->refs++;
			p->all[p->count++] = b;
			break;
		}
	pthread_mutex_unlock(&b->lock);
	return p->count < POLLED_MAX;
}

bool e2b_watch_poll(struct e2b *e)
{
	struct polled p = { 0 };

	e2b_sandbox_visit(e, collect, &p);
	for (size_t i = 0; i < p.count; i++) {
		poll_sandbox(p.all[i]);
		e2b_sandbox_put(p.all[i]);
	}
	return p.count > 0;
}

void e2b_watch_end_all(struct e2b_sandbox *b)
{
	for (;;) {
		pthread_mutex_lock(&b->lock);
		struct e2b_watcher *w = b->watchers;
		while (w && w->is_busy)
			pthread_cond_wait(&b->changed, &b->lock), w = b->watchers;
		if (w)
			b->watchers = w->next;
		pthread_mutex_unlock(&b->lock);
		if (!w)
			return;
		if (w->x)
			httpd_stream_end(w->x, false);
		watcher_free(b, w);
	}
}

/* ---- watchers that are asked */

void e2b_watch_create(struct httpd_exchange *x, void *arg)
{
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_target(arg, x);
	struct e2b_watcher *w = b ? open_watcher(b, x) : NULL;

	if (!w)
		return;
	add_watcher(b, w);
	connect_rpc_answer(x, json_pack("{s:s}", "watcherId", w->id));
}

/* Marks the one that the request names, so that no other thread uses it. NULL: the answer is
 * given. */
static struct e2b_watcher *take_watcher(struct e2b_sandbox *b, struct httpd_exchange *x)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *m = NULL;
	struct e2b_watcher *w = NULL;

	if (connect_rpc_read(x, &m, &e) < 0) {
		connect_rpc_fail(x, e);
		return NULL;
	}
	const char *id = json_string_value(json_object_get(m, "watcherId"));
	pthread_mutex_lock(&b->lock);
	for (w = b->watchers; w; w = w->next)
		if (!w->x && !w->is_busy && str_eq(w->id, id))
			break;
	if (w)
		w->is_busy = true;
	pthread_mutex_unlock(&b->lock);
	if (!w)
		connect_rpc_fail_as(x, "not_found", "there is no such watcher");
	return w;
}

static void give_back(struct e2b_sandbox *b, struct e2b_watcher *w, bool is_over)
{
	pthread_mutex_lock(&b->lock);
	w->is_busy = false;
	if (is_over)
		unlink_watcher(b, w);
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
	if (is_over)
		watcher_free(b, w);
}

void e2b_watch_events(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_target(arg, x);
	struct e2b_watcher *w = b ? take_watcher(b, x) : NULL;
	json_t *events;

	if (!w)
		return;
	events = json_array();
	int r = read_events(b, w, events, &e);
	give_back(b, w, false);
	if (r < 0) {
		json_decref(events);
		connect_rpc_fail(x, e);
		return;
	}
	connect_rpc_answer(x, json_pack("{s:o}", "events", events));
}

void e2b_watch_remove(struct httpd_exchange *x, void *arg)
{
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_target(arg, x);
	struct e2b_watcher *w = b ? take_watcher(b, x) : NULL;

	if (!w)
		return;
	give_back(b, w, true);
	connect_rpc_answer(x, json_object());
}
