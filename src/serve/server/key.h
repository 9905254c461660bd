/* serve/server/key.h - the keys of the server's clients. A key is shown once; the database has only
 * its hash. */
#pragma once

#include "base/json.h"
#include "serve/server/database.h"

enum { KEY_NAME_BYTES = 48, KEY_HASH_BYTES = 32, KEY_TEXT_BYTES = 64, KEY_OWNER_BYTES = 64 };

/* Of the key that the server gets with CORDON_SERVE_KEY, or makes at its first start. */
#define KEY_ADMIN_NAME "admin"

struct key {
	char name[KEY_NAME_BYTES];
	unsigned char hash[KEY_HASH_BYTES];
	bool is_admin;
	char *policy;                  /* JSON; NULL: the server's */
	unsigned sessions, executions; /* at once; 0: the server's default */
	uint64_t memory_bytes;         /* of all sessions together; 0: no limit */
	double rate;                   /* requests a second; 0: no limit */
	int64_t created, expires;      /* seconds since 1970; expires 0: never */
	bool is_revoked;
	unsigned generation; /* keys that had the name before */
};

struct keys {
	struct key *list;
	size_t count;
};

/* Makes a key from name, is_admin, policy, limits and expires. -CORDON_EXISTS: the name is taken; a
 * revoked one may be used again. */
int key_add(struct database *db, const struct key *k, char ret_text[KEY_TEXT_BYTES],
	    struct cordon_error **reterr);
int key_revoke(struct database *db, const char *name, struct cordon_error **reterr);
int key_load(struct database *db, struct keys *ret, struct cordon_error **reterr);
void keys_done(struct keys *k);
/* The name of what belongs to the key: the key's, with ~1 and so on if others had it before. So
 * nobody inherits anything with a name. No name of a key or a workspace has a '~'. */
void key_owner(const struct key *k, char ret[KEY_OWNER_BYTES]);
/* The same in SQL, of a row of keys. */
#define KEY_OWNER_SQL "name||CASE generation WHEN 0 THEN '' ELSE '~'||generation END"
bool key_is_valid(const struct key *k, int64_t now);
/* As in docs/openapi.json; NULL: out of memory. */
json_t *key_describe(const struct key *k);

/* The hash of a key: hex with or without a name in front, such as "cordon_0123" and "e2b_0123",
 * which are the same key. So clients that insist on a form of their own can use it. */
void key_hash(const char *text, unsigned char ret[KEY_HASH_BYTES]);
/* The key of this hash; NULL: none. Takes the same time wherever it is. */
const struct key *key_find(const struct keys *k, const unsigned char hash[KEY_HASH_BYTES]);
/* Fills the fields from a JSON object as in docs/openapi.json (NewKey). */
int key_read(const json_t *j, struct key *ret, struct cordon_error **reterr);
