/* serve/server/parking.c - see parking.h. */
#include "serve/server/parking.h"

#include <cordon/command.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/condvar.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/server/key.h"
#include "serve/server/server_log.h"

/* END_MS: of one session at the end of the server. */
enum { PIECE = 1 << 20, WAIT_MS = 60000, END_MS = 10000, LOOK_MS = 20 };

static char *path_of(struct database *db, const char *id)
{
	return str_printf("%s/parked/%s", database_folder(db), id);
}

/* The file goes also if the entry cannot: an entry without a file is as good as none. */
static int forget(struct database *db, const char *id)
{
	cleanup_free char *path = path_of(db, id);
	struct database_query q;

	database_begin(db, &q, "DELETE FROM parked WHERE id=?");
	database_bind_text(&q, id);
	int r = database_end(&q, NULL, NULL);
	if (path)
		(void)unlink(path);
	return r;
}

/* Whether it is certain that there is no entry. */
static bool is_unknown(struct database *db, const char *id)
{
	struct database_query q;

	database_begin(db, &q, "SELECT 1 FROM parked WHERE id=?");
	database_bind_text(&q, id);
	bool is = database_next(&q);
	return database_end(&q, NULL, NULL) == 0 && !is;
}

/* Files without an entry: the server died between the two steps. */
static void remove_orphans(struct database *db, const char *folder)
{
	DIR *d = opendir(folder);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && is_unknown(db, e->d_name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		(void)closedir(d);
}

/* Too old, or its key is gone. The administrator from outside has no entry. */
#define IS_OVER                                                                                    \
	"(parked<? OR (tenant<>'" KEY_ADMIN_NAME "' AND tenant NOT IN (SELECT " KEY_OWNER_SQL      \
	" FROM keys WHERE revoked=0)))"

/* Not one that came back meanwhile and was parked anew. */
static bool forget_old(struct database *db, const char *id, int64_t before)
{
	struct database_query q;
	int changes = 0;

	database_begin(db, &q, "DELETE FROM parked WHERE id=? AND " IS_OVER);
	database_bind_text(&q, id);
	database_bind_int(&q, before);
	return database_end(&q, &changes, NULL) == 0 && changes > 0;
}

int parking_expire(struct database *db, uint64_t keep_s, bool (*drop)(const char *id, void *arg),
		   void *arg, struct cordon_error **reterr)
{
	int64_t before = (int64_t)time(NULL) - (int64_t)keep_s;
	cleanup_strlist struct strlist ids = { 0 };
	struct database_query q;

	/* Most often there are none, and reading waits for nobody who writes. */
	database_begin(db, &q, "SELECT id FROM parked WHERE " IS_OVER);
	database_bind_int(&q, before);
	while (database_next(&q))
		(void)strlist_add(&ids, database_text(&q, 0)); /* otherwise the next time */
	int r = database_end(&q, NULL, reterr);
	for (size_t i = 0; i < ids.count; i++) {
		cleanup_free char *path = path_of(db, ids.items[i]);
		if (path && forget_old(db, ids.items[i], before) && drop(ids.items[i], arg))
			(void)unlink(path);
	}
	return r;
}

static bool has_no_session(const char *id, void *arg)
{
	(void)id, (void)arg;
	return true;
}

int parking_init(struct database *db, uint64_t keep_s, struct cordon_error **reterr)
{
	cleanup_free char *folder = path_of(db, "");

	if (!folder)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (mkdir(folder, 0700) != 0 && errno != EEXIST)
		return err_errno(reterr, errno, "make '%s'", folder);
	int r = parking_expire(db, keep_s, has_no_session, NULL, reterr);
	if (r == 0)
		remove_orphans(db, folder);
	return r;
}

static int copy_file(int from, int to)
{
	cleanup_free char *piece = mem_alloc(PIECE);
	ssize_t n;

	if (!piece || lseek(from, 0, SEEK_SET) < 0)
		return -ENOMEM;
	while ((n = file_read_full(from, piece, PIECE)) > 0) {
		int r = file_write_all(to, piece, (size_t)n);
		if (r < 0)
			return r;
	}
	return (int)n;
}

/* The file first, then its entry: an entry always has a file. */
static int save(const char *id, const json_t *params, uint64_t memory, int fd, void *arg,
		struct cordon_error **reterr)
{
	struct tenant *t = arg;
	cleanup_free char *path = path_of(t->db, id), *text = json_text(params, NULL);
	cleanup_file_draft struct file_draft draft = { .fd = -1, .dir_fd = -1 };
	struct database_query q;

	if (!path || !text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = file_draft_open(&draft, path, reterr);
	if (r < 0)
		return r;
	int problem = copy_file(fd, draft.fd);
	if (problem < 0)
		return err_errno(reterr, -problem, "park a session");
	r = file_draft_publish(&draft, 0600, true, reterr);
	if (r < 0)
		return r;
	database_begin(t->db, &q, "INSERT OR REPLACE INTO parked VALUES(?,?,?,?,?)");
	database_bind_text(&q, id);
	database_bind_text(&q, t->name);
	database_bind_text(&q, text);
	database_bind_int(&q, (int64_t)memory);
	database_bind_int(&q, time(NULL));
	r = database_end(&q, NULL, reterr);
	if (r < 0)
		(void)unlink(path);
	return r;
}

static int load(const char *id, int *ret_fd, void *arg, struct cordon_error **reterr)
{
	struct tenant *t = arg;
	cleanup_free char *path = path_of(t->db, id);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;

	if (fd < 0)
		return err_errno(reterr, path ? errno : ENOMEM, "bring back the session '%s'", id);
	*ret_fd = fd;
	return 0;
}

static void forget_one(const char *id, void *arg)
{
	(void)forget(((struct tenant *)arg)->db, id);
}

struct rpc_storage parking_storage(struct tenant *t)
{
	return (struct rpc_storage){ save, load, forget_one, t };
}

/* An entry without a file is one that could not be removed. */
static bool has_file(struct database *db, const char *id)
{
	cleanup_free char *path = path_of(db, id);

	return !path || access(path, F_OK) == 0 || errno != ENOENT;
}

static void restore_row(struct tenant *t, const json_t *row)
{
	const char *id = json_string_value(json_object_get(row, "id"));
	const char *text = json_string_value(json_object_get(row, "params"));
	json_int_t memory = json_integer_value(json_object_get(row, "memory"));
	json_t *params = NULL;

	if (!has_file(t->db, id))
		(void)forget(t->db, id);
	/* One that does not fit the quota any more stays parked. */
	else if (json_parse(text, strlen(text), 0, &params, NULL) == 0)
		(void)client_session_restore(&t->rpc->sessions, id, params, (uint64_t)memory, NULL);
}

int parking_restore(struct tenant *t, struct cordon_error **reterr)
{
	cleanup_json json_t *rows = json_array();
	struct database_query q;
	bool is_short = false;
	json_t *row;
	size_t i;

	database_begin(t->db, &q, "SELECT id, params, memory FROM parked WHERE tenant=?");
	database_bind_text(&q, t->name);
	while (!is_short && database_next(&q))
		is_short = json_array_append_new(
				   rows, json_pack("{s:s,s:s,s:I}", "id", database_text(&q, 0),
						   "params", database_text(&q, 1), "memory",
						   (json_int_t)database_int(&q, 2))) != 0;
	int r = database_end(&q, NULL, reterr);
	if (r == 0 && is_short)
		r = err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r < 0)
		return r;
	json_array_foreach(rows, i, row) restore_row(t, row);
	return 0;
}

/* ---- parking */

struct search {
	const struct client_sessions *all;
	uint64_t before_ns;
	struct strlist found;
};

/* It can be opened again from what is known of it. */
static bool is_kept(const struct client_session *cs)
{
	return cs->kind == CLIENT_SESSION_SESSION && !cs->is_closing && !cs->lender && !cs->owner &&
	       cs->open_params && !json_object_get(cs->open_params, "workspace");
}

static void find_kept(const struct client_session *cs, void *arg)
{
	if (is_kept(cs))
		(void)strlist_add(&((struct search *)arg)->found, cs->id);
}

static void find_idle(const struct client_session *cs, void *arg)
{
	struct search *s = arg;

	/* Parking ends the contexts, so none may run code, however long ago that began. */
	if (is_kept(cs) && cs->session && !cs->is_offloaded && !cs->is_moving &&
	    client_session_is_unused(s->all, cs) && cs->used_ns < s->before_ns)
		(void)strlist_add(&s->found, cs->id);
}

/* Commands in the background would end. */
static bool has_processes(struct tenant *t, json_t *params)
{
	cleanup_buf struct buf result = { 0 };

	buf_init(&result, SIZE_MAX / 2);
	return tenant_call(t, "process.list", params, NULL, &result, NULL) == 0 &&
	       strstr(buf_text(&result), "\"running\"");
}

static int park(struct tenant *t, const char *session, struct cordon_error **reterr)
{
	cleanup_json json_t *params = json_pack("{s:s}", "session", session);
	cleanup_buf struct buf ignored = { 0 };

	buf_init(&ignored, SIZE_MAX / 2);
	if (!params)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (has_processes(t, params))
		return err_set(reterr, CORDON_STATE, "a command runs in it");
	int r = tenant_call(t, "offload", params, NULL, &ignored, reterr);
	if (r == 0)
		t->metrics->parked++;
	return r;
}

/* One line: in the log if there is one, otherwise for people. */
static void tell(const struct tenant *t, const char *event, const char *session,
		 const char *sentence, const struct cordon_error *e)
{
	cleanup_free char *text = err_text(e);
	const char *why = text ? text : "out of memory";

	if (t->logs)
		server_log_write(event,
				 json_pack("{s:s,s:s,s:o*}", "key", t->name, "session", session,
					   "detail", json_string_lossy(why, strlen(why))));
	else
		log_error("the session %s of the key '%s' %s: %s", session, t->name, sentence, why);
}

/* Somebody uses or closes it just now: that is no failure. */
static bool is_in_use(int r)
{
	return r == -CORDON_STATE || r == -CORDON_CANCELLED || r == -CORDON_NOT_FOUND;
}

/* A session that cannot be parked stays as it is. It was just used by the attempt, so the next one
 * comes only when it was unused for as long again. */
static void park_idle(struct tenant *t, const char *session)
{
	cleanup_error struct cordon_error *e = NULL;
	int r = park(t, session, &e);

	if (r == 0 || is_in_use(r))
		return;
	t->metrics->unparked++;
	tell(t, "park_failed", session, "could not be parked and runs on", e);
}

void parking_sweep(struct tenant *t, uint64_t before_ns)
{
	struct search s = { .all = &t->rpc->sessions, .before_ns = before_ns };

	client_sessions_visit(&t->rpc->sessions, find_idle, &s);
	for (size_t i = 0; i < s.found.count; i++)
		park_idle(t, s.found.items[i]);
	strlist_done(&s.found);
}

/* Waits until it is not being moved, without a reference: moving a session waits for all of them.
 * True: it is parked. */
static bool wait_parked(struct tenant *t, const char *session, deadline_ns until)
{
	struct client_sessions *all = &t->rpc->sessions;
	const struct client_session *cs;
	bool is_parked = false;

	pthread_mutex_lock(&all->lock);
	for (;;) {
		for (cs = all->first; cs && !str_eq(cs->id, session); cs = cs->next)
			;
		is_parked = cs && cs->is_offloaded && !cs->is_moving && !cs->is_closing;
		if (!cs || !cs->is_moving || cs->is_closing || deadline_is_over(until))
			break;
		(void)condvar_wait(&all->changed, &all->lock, deadline_after_ms(LOOK_MS));
	}
	pthread_mutex_unlock(&all->lock);
	return is_parked;
}

/* Called with the lock held. NULL: there is none. */
static struct client_session *find(struct client_sessions *all, const char *id)
{
	struct client_session *cs = all->first;

	while (cs && !str_eq(cs->id, id))
		cs = cs->next;
	return cs;
}

static void mark_restored(struct tenant *t, const char *session)
{
	pthread_mutex_lock(&t->rpc->sessions.lock);
	struct client_session *cs = find(&t->rpc->sessions, session);
	if (cs)
		cs->is_restored = true;
	pthread_mutex_unlock(&t->rpc->sessions.lock);
}

bool parking_take_notice(struct tenant *t, const char *session)
{
	pthread_mutex_lock(&t->rpc->sessions.lock);
	struct client_session *cs = find(&t->rpc->sessions, session);
	bool is = cs && cs->is_restored;
	if (is)
		cs->is_restored = false;
	pthread_mutex_unlock(&t->rpc->sessions.lock);
	return is;
}

int parking_wake(struct tenant *t, const char *session, bool *ret_restored,
		 struct cordon_error **reterr)
{
	deadline_ns until = deadline_after_ms(WAIT_MS);
	int r = 0;

	*ret_restored = false;
	while (wait_parked(t, session, until)) {
		cleanup_error struct cordon_error *e = NULL;
		cleanup_buf struct buf ignored = { 0 };
		cleanup_json json_t *params = json_pack("{s:s}", "session", session);

		if (t->is_ending)
			return err_set(reterr, CORDON_STATE,
				       "the server is stopping: try again when it runs again");
		buf_init(&ignored, SIZE_MAX / 2);
		r = rpc_run(t->rpc, &(struct rpc_call){ "rehydrate", params, NULL }, &ignored, &e);
		if (r == 0) {
			*ret_restored = true;
			mark_restored(t, session);
			return 0;
		}
		/* Otherwise another request is bringing it back. */
		if (r != -CORDON_STATE || deadline_is_over(until)) {
			if (reterr)
				*reterr = TAKE_PTR(e);
			return r;
		}
	}
	return 0;
}

/* ---- the end of the server */

/* Commands in the background. They would end anyway, but must not write while files are read. */
static void end_processes(struct cordon_session *session)
{
	cleanup_free char *text = cordon_process_list(session);
	cleanup_json json_t *list = NULL;
	json_t *one;
	size_t i;

	if (text)
		(void)json_parse(text, strlen(text), 0, &list, NULL);
	json_array_foreach(list, i, one)
	{
		uint64_t process = (uint64_t)json_integer_value(json_object_get(one, "process"));
		struct cordon_result *result = NULL;

		(void)cordon_process_kill(session, process, NULL);
		(void)cordon_process_wait(session, process, END_MS, &result, NULL);
		cordon_result_free(result);
	}
}

static void end_work(struct tenant *t, const char *session)
{
	struct client_sessions *all = &t->rpc->sessions;
	struct client_session *cs = client_session_get(all, session, CLIENT_SESSION_SESSION);

	if (!cs)
		return;
	(void)client_session_cancel(all, cs);
	pthread_mutex_lock(&all->lock);
	struct cordon_session *there = cs->is_moving ? NULL : cs->session;
	pthread_mutex_unlock(&all->lock);
	if (there) /* and stays, because of the reference */
		end_processes(there);
	client_session_put(all, cs);
}

static void wait_change(struct client_sessions *all)
{
	pthread_mutex_lock(&all->lock);
	(void)condvar_wait(&all->changed, &all->lock, deadline_after_ms(LOOK_MS));
	pthread_mutex_unlock(&all->lock);
}

/* A request that began before the end may use the session again: then that is ended, too. */
static int park_last(struct tenant *t, const char *session, struct cordon_error **reterr)
{
	deadline_ns until = deadline_after_ms(END_MS);

	while (!wait_parked(t, session, until)) {
		cleanup_error struct cordon_error *e = NULL;

		end_work(t, session);
		int r = park(t, session, &e);
		if (r == -CORDON_NOT_FOUND) /* it was closed */
			return 0;
		if (!is_in_use(r) || deadline_is_over(until)) {
			*reterr = TAKE_PTR(e);
			return r;
		}
		wait_change(&t->rpc->sessions);
	}
	return 0;
}

/* A fork whose parameters are those of something else. */
static void tell_loss(const struct client_session *cs, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;

	if (cs->lender || cs->owner || !cs->is_fork || is_kept(cs))
		return;
	(void)err_set(&e, CORDON_STATE,
		      "a fork of a context, a pool's session or a saved workspace cannot be opened "
		      "again");
	tell(arg, "session_lost", cs->id, "is not kept", e);
}

void parking_end(struct tenant *t)
{
	struct search s = { 0 };

	client_sessions_visit(&t->rpc->sessions, find_kept, &s);
	for (size_t i = 0; i < s.found.count; i++) {
		cleanup_error struct cordon_error *e = NULL;

		if (park_last(t, s.found.items[i], &e) < 0)
			tell(t, "session_lost", s.found.items[i], "is not kept", e);
	}
	strlist_done(&s.found);
	client_sessions_visit(&t->rpc->sessions, tell_loss, t);
}

int parking_forget_tenant(struct database *db, const char *tenant)
{
	cleanup_strlist struct strlist ids = { 0 };
	struct database_query q;

	database_begin(db, &q, "SELECT id FROM parked WHERE tenant=?");
	database_bind_text(&q, tenant);
	bool is_short = false;
	while (!is_short && database_next(&q))
		is_short = strlist_add(&ids, database_text(&q, 0)) < 0;
	int r = database_end(&q, NULL, NULL);
	if (is_short)
		r = -CORDON_NOMEM;
	for (size_t i = 0; i < ids.count; i++) {
		int failed = forget(db, ids.items[i]);
		r = r < 0 ? r : failed;
	}
	return r;
}
