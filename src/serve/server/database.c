/* serve/server/database.c - see database.h. */
#include "serve/server/database.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"

enum { BUSY_MS = 5000 };

struct database {
	sqlite3 *handle;
	sqlite3_stmt *version;
	char *folder;
	int64_t seen, changes; /* data_version of others, and own changes */
	pthread_mutex_t lock;  /* held from begin to end */
};

static const char schema[] =
	"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
	"CREATE TABLE IF NOT EXISTS keys(name TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE,"
	" is_admin INTEGER NOT NULL, policy TEXT, sessions INTEGER NOT NULL,"
	" executions INTEGER NOT NULL, memory_bytes INTEGER NOT NULL, rate REAL NOT NULL,"
	" created INTEGER NOT NULL, expires INTEGER NOT NULL, revoked INTEGER NOT NULL,"
	" generation INTEGER NOT NULL DEFAULT 0);"
	"CREATE TABLE IF NOT EXISTS parked(id TEXT PRIMARY KEY, tenant TEXT NOT NULL,"
	" params TEXT NOT NULL, memory INTEGER NOT NULL, parked INTEGER NOT NULL);";

static int fail(const struct database *db, int result, struct cordon_error **reterr)
{
	const char *why = db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(result);

	if (result == SQLITE_CONSTRAINT)
		return err_set(reterr, CORDON_EXISTS, "there is one of that name already");
	if (result == SQLITE_FULL)
		return err_errno(reterr, ENOSPC, "write the server's database");
	return err_set(reterr, CORDON_OS, "the server's database: %s", why);
}

/* The column that older databases do not have. */
static int add_generation(sqlite3 *handle)
{
	sqlite3_stmt *probe = NULL;
	int result = sqlite3_prepare_v2(handle, "SELECT generation FROM keys", -1, &probe, NULL);

	(void)sqlite3_finalize(probe);
	return result == SQLITE_OK ? result
				   : sqlite3_exec(handle,
						  "ALTER TABLE keys ADD COLUMN"
						  " generation INTEGER NOT NULL DEFAULT 0",
						  NULL, NULL, NULL);
}

static int make_folder(const char *folder, struct cordon_error **reterr)
{
	cleanup_free char *path = str_dup(folder);
	struct stat st;

	if (!path)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(path, 0700);
		*at = '/';
	}
	if (mkdir(folder, 0700) != 0 && errno != EEXIST)
		return err_errno(reterr, errno, "make the directory '%s'", folder);
	if (stat(folder, &st) != 0)
		return err_errno(reterr, errno, "check the directory '%s'", folder);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 0077))
		return err_set(
			reterr, CORDON_DENIED,
			"the directory '%s' must belong to you and be closed to others (mode 0700)",
			folder);
	return 0;
}

int database_open(const char *folder, struct database **ret, struct cordon_error **reterr)
{
	struct database *db = mem_alloc(sizeof(*db));
	cleanup_free char *path = str_printf("%s/serve.db", folder);

	if (!db || !path || !(db->folder = str_dup(folder))) {
		free(db);
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	pthread_mutex_init(&db->lock, NULL);
	int r = make_folder(folder, reterr);
	if (r == 0) {
		mode_t mask = umask(0077);
		int result = sqlite3_open_v2(path, &db->handle,
					     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
						     SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
					     NULL);
		if (result == SQLITE_OK)
			result = sqlite3_busy_timeout(db->handle, BUSY_MS);
		if (result == SQLITE_OK)
			result = sqlite3_exec(db->handle, schema, NULL, NULL, NULL);
		if (result == SQLITE_OK)
			result = add_generation(db->handle);
		if (result == SQLITE_OK)
			result = sqlite3_prepare_v2(db->handle, "PRAGMA data_version", -1,
						    &db->version, NULL);
		(void)umask(mask);
		if (result != SQLITE_OK)
			r = fail(db, result, reterr);
	}
	if (r < 0) {
		(void)database_close(db);
		return r;
	}
	db->seen = -1;
	*ret = db;
	return 0;
}

struct database *database_close(struct database *db)
{
	if (!db)
		return NULL;
	(void)sqlite3_finalize(db->version);
	(void)sqlite3_close(db->handle);
	pthread_mutex_destroy(&db->lock);
	free(db->folder);
	free(db);
	return NULL;
}

const char *database_folder(const struct database *db)
{
	return db->folder;
}

int database_has_changed(struct database *db, bool *ret, struct cordon_error **reterr)
{
	pthread_mutex_lock(&db->lock);
	int result = sqlite3_step(db->version), r = 0;
	if (result == SQLITE_ROW) {
		int64_t now = sqlite3_column_int64(db->version, 0);
		int64_t own = sqlite3_total_changes(db->handle);
		*ret = now != db->seen || own != db->changes;
		db->seen = now;
		db->changes = own;
	} else {
		r = fail(db, result & 0xff, reterr);
	}
	(void)sqlite3_reset(db->version);
	pthread_mutex_unlock(&db->lock);
	return r;
}

void database_begin(struct database *db, struct database_query *q, const char *sql)
{
	pthread_mutex_lock(&db->lock);
	*q = (struct database_query){ .db = db };
	q->result = sqlite3_prepare_v2(db->handle, sql, -1, &q->statement, NULL);
}

static void note(struct database_query *q, int result)
{
	if (q->result == SQLITE_OK)
		q->result = result;
}

void database_bind_text(struct database_query *q, const char *text)
{
	note(q, text ? sqlite3_bind_text(q->statement, ++q->bound, text, -1, SQLITE_TRANSIENT)
		     : sqlite3_bind_null(q->statement, ++q->bound));
}

void database_bind_int(struct database_query *q, int64_t n)
{
	note(q, sqlite3_bind_int64(q->statement, ++q->bound, n));
}

void database_bind_real(struct database_query *q, double n)
{
	note(q, sqlite3_bind_double(q->statement, ++q->bound, n));
}

void database_bind_bytes(struct database_query *q, const void *bytes, size_t len)
{
	note(q, sqlite3_bind_blob(q->statement, ++q->bound, bytes, (int)len, SQLITE_TRANSIENT));
}

bool database_next(struct database_query *q)
{
	if (q->result != SQLITE_OK && q->result != SQLITE_ROW)
		return false;
	q->result = sqlite3_step(q->statement);
	return q->result == SQLITE_ROW;
}

const char *database_text(const struct database_query *q, int column)
{
	return (const char *)sqlite3_column_text(q->statement, column);
}

int64_t database_int(const struct database_query *q, int column)
{
	return sqlite3_column_int64(q->statement, column);
}

double database_real(const struct database_query *q, int column)
{
	return sqlite3_column_double(q->statement, column);
}

const void *database_bytes(const struct database_query *q, int column, size_t *ret_len)
{
	*ret_len = (size_t)sqlite3_column_bytes(q->statement, column);
	return sqlite3_column_blob(q->statement, column);
}

bool database_is_null(const struct database_query *q, int column)
{
	return sqlite3_column_type(q->statement, column) == SQLITE_NULL;
}

int database_end(struct database_query *q, int *ret_changes, struct cordon_error **reterr)
{
	while (database_next(q))
		;
	int r = q->result == SQLITE_DONE ? 0 : fail(q->db, q->result & 0xff, reterr);
	if (r == 0 && ret_changes)
		*ret_changes = sqlite3_changes(q->db->handle);
	(void)sqlite3_finalize(q->statement);
	pthread_mutex_unlock(&q->db->lock);
	return r;
}
