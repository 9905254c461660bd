/* serve/server/key.c - see key.h. */
#include "serve/server/key.h"

#include <cordon/policy.h>
#include <ctype.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"

enum { KEY_HEX = 48 };

void key_hash(const char *text, unsigned char ret[KEY_HASH_BYTES])
{
	const char *bar = strrchr(text, '_');
	const char *digits = bar ? bar + 1 : text;

	(void)crypto_generichash(ret, KEY_HASH_BYTES, (const unsigned char *)digits, strlen(digits),
				 NULL, 0);
}

static bool is_name(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len >= KEY_NAME_BYTES || !isalnum((unsigned char)name[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_-", name[i]))
			return false;
	return true;
}

/* A policy with secrets would be written without them. */
static int check_policy(const char *text, struct cordon_error **reterr)
{
	struct cordon_policy *p = NULL;
	cleanup_json json_t *j = NULL;

	if (!text)
		return 0;
	int r = cordon_policy_new(NULL, &p, reterr);
	if (r == 0)
		r = cordon_policy_apply_json(p, text, reterr);
	if (r == 0)
		r = cordon_policy_check(p, reterr);
	if (r == 0)
		r = json_parse(text, strlen(text), 0, &j, reterr);
	if (r == 0 && json_array_size(json_object_get(j, "secrets")) > 0)
		r = err_set(reterr, CORDON_INVALID,
			    "the policy of a key cannot have secrets: give them to the server "
			    "(cordon serve --policy FILE)");
	p = cordon_policy_free(p);
	return r;
}

int key_add(struct database *db, const struct key *k, char ret_text[KEY_TEXT_BYTES],
	    struct cordon_error **reterr)
{
	struct database_query q;
	unsigned char hash[KEY_HASH_BYTES];
	int changes = 0;

	if (!is_name(k->name))
		return err_set(reterr, CORDON_INVALID,
			       "the name of a key has letters, digits, '_' and '-', at most %d",
			       KEY_NAME_BYTES - 1);
	/* CORDON_SERVE_KEY has this name, and what belongs to the first key of a name. */
	if (str_eq(k->name, KEY_ADMIN_NAME) && !k->is_admin)
		return err_set(reterr, CORDON_INVALID,
			       "'%s' is the name of the administrator: choose another one, or use "
			       "--admin",
			       k->name);
	int r = check_policy(k->policy, reterr);
	if (r < 0)
		return r;
	(void)snprintf(ret_text, KEY_TEXT_BYTES, "cordon_");
	random_hex(ret_text + strlen(ret_text), KEY_HEX);
	key_hash(ret_text, hash);
	database_begin(
		db, &q,
		"INSERT INTO keys VALUES(?,?,?,?,?,?,?,?,?,?,0,0) ON CONFLICT(name) DO UPDATE"
		" SET hash=excluded.hash, is_admin=excluded.is_admin,"
		" policy=excluded.policy, sessions=excluded.sessions,"
		" executions=excluded.executions, memory_bytes=excluded.memory_bytes,"
		" rate=excluded.rate, created=excluded.created, expires=excluded.expires,"
		" revoked=0, generation=keys.generation+1 WHERE keys.revoked=1");
	database_bind_text(&q, k->name);
	database_bind_bytes(&q, hash, sizeof(hash));
	database_bind_int(&q, k->is_admin);
	database_bind_text(&q, k->policy);
	database_bind_int(&q, k->sessions);
	database_bind_int(&q, k->executions);
	database_bind_int(&q, (int64_t)k->memory_bytes);
	database_bind_real(&q, k->rate);
	database_bind_int(&q, time(NULL));
	database_bind_int(&q, k->expires);
	r = database_end(&q, &changes, reterr);
	if (r == 0 && changes == 0)
		r = err_set(reterr, CORDON_EXISTS,
			    "there is a key '%s' already; revoke it first, or choose another name",
			    k->name);
	return r;
}

int key_revoke(struct database *db, const char *name, struct cordon_error **reterr)
{
	struct database_query q;
	int changes = 0;

	database_begin(db, &q, "UPDATE keys SET revoked=1 WHERE name=? AND revoked=0");
	database_bind_text(&q, name);
	int r = database_end(&q, &changes, reterr);
	if (r == 0 && changes == 0)
		return err_set(reterr, CORDON_NOT_FOUND, "there is no key '%.60s'", name);
	return r;
}

static int read_row(const struct database_query *q, struct key *k)
{
	size_t len;
	const void *hash = database_bytes(q, 1, &len);

	if (len == sizeof(k->hash))
		memcpy(k->hash, hash, len);
	const char *name = database_text(q, 0);
	(void)str_copy(k->name, sizeof(k->name), name ? name : "");
	k->is_admin = database_int(q, 2) != 0;
	k->policy = str_dup(database_text(q, 3));
	k->sessions = (unsigned)database_int(q, 4);
	k->executions = (unsigned)database_int(q, 5);
	k->memory_bytes = (uint64_t)database_int(q, 6);
	k->rate = database_real(q, 7);
	k->created = database_int(q, 8);
	k->expires = database_int(q, 9);
	k->is_revoked = database_int(q, 10) != 0 || len != sizeof(k->hash);
	k->generation = (unsigned)database_int(q, 11);
	/* A key whose policy could not be read would have the server's, which may be wider. */
	return name && (database_is_null(q, 3) || k->policy) ? 0 : -CORDON_NOMEM;
}

int key_load(struct database *db, struct keys *ret, struct cordon_error **reterr)
{
	struct keys all = { 0 };
	struct database_query q;
	bool is_short = false;

	database_begin(db, &q, "SELECT * FROM keys ORDER BY name");
	while (!is_short && database_next(&q)) {
		struct key *more = mem_grow(all.list, all.count + 1, sizeof(*more));
		if (more) {
			all.list = more;
			more[all.count] = (struct key){ 0 };
			is_short = read_row(&q, &more[all.count++]) < 0;
		} else {
			is_short = true;
		}
	}
	int r = database_end(&q, NULL, reterr);
	if (r == 0 && is_short)
		r = err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r < 0)
		keys_done(&all);
	else
		*ret = all;
	return r;
}

void keys_done(struct keys *k)
{
	for (size_t i = 0; i < k->count; i++)
		free(k->list[i].policy);
	free(k->list);
	*k = (struct keys){ 0 };
}

void key_owner(const struct key *k, char ret[KEY_OWNER_BYTES])
{
	if (k->generation == 0)
		(void)str_copy(ret, KEY_OWNER_BYTES, k->name);
	else
		(void)snprintf(ret, KEY_OWNER_BYTES, "%s~%u", k->name, k->generation);
}

bool key_is_valid(const struct key *k, int64_t now)
{
	return !k->is_revoked && (k->expires == 0 || now < k->expires);
}

const struct key *key_find(const struct keys *k, const unsigned char hash[KEY_HASH_BYTES])
{
	const struct key *found = NULL;

	for (size_t i = 0; i < k->count; i++)
		if (sodium_memcmp(k->list[i].hash, hash, KEY_HASH_BYTES) == 0)
			found = &k->list[i];
	return found;
}

static json_t *time_text(int64_t seconds)
{
	time_t t = (time_t)seconds;
	struct tm parts;
	char text[32];

	if (seconds == 0 || !gmtime_r(&t, &parts))
		return json_null();
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return json_string(text);
}

json_t *key_describe(const struct key *k)
{
	json_t *policy = NULL;

	if (k->policy)
		(void)json_parse(k->policy, strlen(k->policy), 0, &policy, NULL);
	return json_pack("{s:s,s:b,s:o,s:I,s:I,s:I,s:f,s:o,s:o,s:b}", "name", k->name, "admin",
			 k->is_admin, "policy", policy ? policy : json_null(), "max_sessions",
			 (json_int_t)k->sessions, "max_executions", (json_int_t)k->executions,
			 "max_memory_bytes", (json_int_t)k->memory_bytes, "rate", k->rate,
			 "created", time_text(k->created), "expires", time_text(k->expires),
			 "revoked", k->is_revoked);
}

/* A number of at most max; 0 if it is absent. */
static int read_number(const json_t *j, const char *name, uint64_t max, uint64_t *ret,
		       struct cordon_error **reterr)
{
	*ret = 0;
	int r = json_get_uint(j, "", name, ret, reterr);
	if (r == 0 && *ret > max)
		r = err_set(reterr, CORDON_INVALID, "%s is too large", name);
	return r;
}

static int read_limits(const json_t *j, struct key *ret, struct cordon_error **reterr)
{
	const json_t *rate = json_object_get(j, "rate");
	uint64_t sessions, executions = 0, expires = 0;
	int r = read_number(j, "max_sessions", UINT16_MAX, &sessions, reterr);

	if (r == 0)
		r = read_number(j, "max_executions", UINT16_MAX, &executions, reterr);
	if (r == 0)
		r = read_number(j, "max_memory_bytes", INT64_MAX, &ret->memory_bytes, reterr);
	if (r == 0)
		r = read_number(j, "expires_s", INT32_MAX, &expires, reterr);
	if (r == 0 && rate && (!json_is_number(rate) || json_number_value(rate) < 0))
		r = err_set(reterr, CORDON_INVALID, "rate must be a number of requests a second");
	ret->rate = json_number_value(rate);
	ret->sessions = (unsigned)sessions;
	ret->executions = (unsigned)executions;
	ret->expires = expires ? (int64_t)time(NULL) + (int64_t)expires : 0;
	return r;
}

int key_read(const json_t *j, struct key *ret, struct cordon_error **reterr)
{
	const char *name = NULL;
	json_t *policy = NULL;
	int r = json_get_string(j, "", "name", &name, reterr);

	*ret = (struct key){ 0 };
	if (r == 0 && (!name || !str_copy(ret->name, sizeof(ret->name), name)))
		r = err_set(reterr, CORDON_INVALID, "a key needs a name of at most %d letters",
			    KEY_NAME_BYTES - 1);
	if (r == 0)
		r = json_get_bool(j, "", "admin", &ret->is_admin, reterr);
	if (r == 0)
		r = json_get_object(j, "", "policy", &policy, reterr);
	if (r == 0)
		r = read_limits(j, ret, reterr);
	if (r < 0)
		return r;
	ret->policy = policy ? json_text(policy, NULL) : NULL;
	return policy && !ret->policy ? err_set(reterr, CORDON_NOMEM, "out of memory") : 0;
}
