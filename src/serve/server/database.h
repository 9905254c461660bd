/* serve/server/database.h - what the server keeps: keys and sessions that were put away. SQLite
 * behind one header. Any thread may call; several processes may have it open. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct database;
struct sqlite3_stmt;

/* folder: made with mode 0700; it must belong to this user and be closed to others. */
int database_open(const char *folder, struct database **ret, struct cordon_error **reterr);
/* Accepts NULL; always returns NULL. */
struct database *database_close(struct database *db);
const char *database_folder(const struct database *db);
/* Whether anything was written since the last call, also by another process. */
int database_has_changed(struct database *db, bool *ret, struct cordon_error **reterr);

/* One statement with its values. Between begin and end no other thread uses the database. */
struct database_query {
	struct database *db;
	struct sqlite3_stmt *statement;
	int result; /* of SQLite */
	int bound;
};
void database_begin(struct database *db, struct database_query *q, const char *sql);
void database_bind_text(struct database_query *q, const char *text); /* NULL: null */
void database_bind_int(struct database_query *q, int64_t n);
void database_bind_real(struct database_query *q, double n);
void database_bind_bytes(struct database_query *q, const void *bytes, size_t len);
bool database_next(struct database_query *q); /* a row is there */
const char *database_text(const struct database_query *q, int column);
int64_t database_int(const struct database_query *q, int column);
double database_real(const struct database_query *q, int column);
const void *database_bytes(const struct database_query *q, int column, size_t *ret_len);
bool database_is_null(const struct database_query *q, int column);
/* -CORDON_EXISTS: a name or id is there already. changes: rows that were written; may be NULL. */
int database_end(struct database_query *q, int *ret_changes, struct cordon_error **reterr);
