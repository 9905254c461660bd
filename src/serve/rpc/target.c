/* serve/rpc/target.c - see target.h. */
#include "serve/rpc/target.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "policy/public.h"
#include "serve/rpc/payload.h"
#include "session/session.h"

enum { WORDS_BYTES = 256, WORDS_MAX = 40 };

int target_string(const struct request *q, const char *key, const char **ret,
		  struct cordon_error **reterr)
{
	return q->params ? json_get_string(q->params, "/params", key, ret, reterr) : 0;
}

int target_need(const struct request *q, const char *key, const char **ret,
		struct cordon_error **reterr)
{
	*ret = NULL;
	int r = target_string(q, key, ret, reterr);
	if (r == 0 && !*ret)
		return err_set(reterr, CORDON_INVALID, "Missing required param: %s", key);
	return r;
}

int target_uint(const struct request *q, const char *key, uint64_t *ret,
		struct cordon_error **reterr)
{
	return q->params ? json_get_uint(q->params, "/params", key, ret, reterr) : 0;
}

int target_bool(const struct request *q, const char *key, bool *ret, struct cordon_error **reterr)
{
	return q->params ? json_get_bool(q->params, "/params", key, ret, reterr) : 0;
}

static bool is_target(const struct request *q, const char *key)
{
	if (q->method->flags & RPC_SESSION)
		return str_eq(key, "session") || str_eq(key, "sandboxId");
	return (q->method->flags & RPC_POOL) && str_eq(key, "pool");
}

int target_check_params(const struct request *q, struct cordon_error **reterr)
{
	char words[WORDS_BYTES];
	const char *names[WORDS_MAX], *key;
	size_t count = 0;
	json_t *value;
	char *rest = NULL;

	if (!q->params || str_eq(q->method->params, "*"))
		return 0;
	snprintf(words, sizeof(words), "%s", q->method->params);
	for (char *w = strtok_r(words, " ", &rest); w && count < WORDS_MAX;
	     w = strtok_r(NULL, " ", &rest))
		names[count++] = w;
	json_object_foreach(q->params, key, value)
	{
		bool is_known = is_target(q, key);
		for (size_t i = 0; i < count && !is_known; i++)
			is_known = str_eq(key, names[i]);
		if (is_known)
			continue;
		const char *nearest = str_nearest(key, names, count);
		return err_set(reterr, CORDON_INVALID, "unknown parameter '%.64s' of %s%s%s%s", key,
			       q->method->name, nearest ? "; did you mean '" : "",
			       nearest ? nearest : "", nearest ? "'?" : "");
	}
	return 0;
}

/* The default sandbox, for requests that name none. */
static int find_home(struct request *q, struct cordon_error **reterr)
{
	struct rpc *c = q->rpc;

	q->is_pod_style = true;
	pthread_mutex_lock(&c->lock);
	if (c->home)
		q->cs = client_session_ref(&c->sessions, c->home);
	pthread_mutex_unlock(&c->lock);
	if (!q->cs)
		return err_set(reterr, CORDON_STATE, "Sandbox not created. Call \"create\" first.");
	if (!client_session_wait_open(&c->sessions, q->cs))
		return err_set(reterr, CORDON_STATE, "Sandbox has been destroyed");
	return 0;
}

/* In the reader's thread, so that the next request finds it and waits until it is open. */
static int reserve_home(struct request *q, struct cordon_error **reterr)
{
	struct rpc *c = q->rpc;
	int r;

	pthread_mutex_lock(&c->lock);
	if (c->home)
		r = err_set(reterr, CORDON_STATE, "Sandbox already created");
	else
		r = client_session_new(&c->sessions, false, &q->cs, reterr);
	if (r == 0)
		c->home = client_session_ref(&c->sessions, q->cs);
	pthread_mutex_unlock(&c->lock);
	q->makes_home = r == 0;
	return r;
}

void target_fail_home(struct request *q)
{
	struct rpc *c = q->rpc;

	q->makes_home = false;
	pthread_mutex_lock(&c->lock);
	bool is_home = c->home == q->cs;
	if (is_home)
		c->home = NULL;
	pthread_mutex_unlock(&c->lock);
	if (is_home)
		client_session_put(&c->sessions, q->cs);
	client_session_fail(&c->sessions, TAKE_PTR(q->cs)); /* with the request's reference */
}

static int find_session(struct request *q, struct cordon_error **reterr)
{
	const char *id = NULL, *sandbox = NULL;
	int r = target_string(q, "session", &id, reterr);

	if (r == 0)
		r = target_string(q, "sandboxId", &sandbox, reterr);
	if (r < 0)
		return r;
	if (!id && !sandbox)
		return find_home(q, reterr);
	q->is_pod_style = !id;
	q->cs = client_session_get(&q->rpc->sessions, id ? id : sandbox, CLIENT_SESSION_SESSION);
	if (q->cs)
		return 0;
	if (!id)
		return err_set(reterr, CORDON_INVALID, "Unknown sandboxId: %.100s", sandbox);
	return err_set(reterr, CORDON_NOT_FOUND, "there is no session '%.100s'", id);
}

/* A context is moved with its sandbox. Called with the lock held. */
static bool is_being_moved(const struct client_session *cs)
{
	return cs->is_moving || (cs->owner && cs->owner->is_moving);
}

/* Whether the session can be used now. */
static int check_session(const struct request *q, struct cordon_error **reterr)
{
	pthread_mutex_lock(&q->rpc->sessions.lock);
	bool is_moving = is_being_moved(q->cs), is_offloaded = q->cs->is_offloaded;
	pthread_mutex_unlock(&q->rpc->sessions.lock);
	if (is_moving && !(q->method->flags & RPC_CLOSE))
		return err_set(reterr, CORDON_STATE,
			       "the sandbox is being moved; wait for mount, offload or rehydrate");
	if (is_offloaded && !(q->method->flags & RPC_ASLEEP))
		return err_set(reterr, CORDON_STATE,
			       "Sandbox is offloaded — call rehydrate() first");
	return 0;
}

/* A pool's sessions, and one that is yet to be opened, check it themselves. */
uint64_t target_value_bytes(struct rpc *c, const json_t *message)
{
	const json_t *params = json_object_get(message, "params");
	const char *method = json_string_value(json_object_get(message, "method"));
	const char *id = json_string_value(json_object_get(params, "session"));
	uint64_t max = c->is_limited && c->policy ? c->policy->p.value_bytes : ATTACHMENT_MAX;

	if (method && json_is_true(json_object_get(params, "attached")))
		return PAYLOAD_ATTACHED_MAX;
	if (!json_object_get(message, "attachment") || !method ||
	    !json_is_object(json_object_get(params, "buffer")))
		return 0;
	struct client_session *cs =
		id ? client_session_get(&c->sessions, id, CLIENT_SESSION_SESSION) : NULL;
	if (cs && cs->session)
		max = session_value_bytes(cs->session);
	client_session_put(&c->sessions, cs);
	return max;
}

int target_find(struct request *q, struct cordon_error **reterr)
{
	const char *id = NULL;

	if (q->method->flags & RPC_SESSION) {
		int r = find_session(q, reterr);
		return r < 0 ? r : check_session(q, reterr);
	}
	if (q->method->flags & RPC_HOME)
		return reserve_home(q, reterr);
	if (!(q->method->flags & RPC_POOL))
		return 0;
	int r = target_need(q, "pool", &id, reterr);
	if (r < 0)
		return r;
	q->cs = client_session_get(&q->rpc->sessions, id, CLIENT_SESSION_POOL);
	return q->cs ? 0 : err_set(reterr, CORDON_STATE, "Pool is closed.");
}

/* `context` as an object has variables: it was there before contexts were. */
bool target_names_context(const struct request *q)
{
	return (q->method->flags & RPC_CONTEXT) &&
	       (json_is_string(json_object_get(q->params, "language")) ||
		json_is_string(json_object_get(q->params, "context")));
}

int target_context(const struct request *q, struct client_session **ret,
		   struct cordon_error **reterr)
{
	const char *language = NULL, *name = NULL;
	int r = target_string(q, "language", &language, reterr);

	if (json_is_string(json_object_get(q->params, "context")))
		name = json_string_value(json_object_get(q->params, "context"));
	return r < 0 ? r
		     : client_session_context(&q->rpc->sessions, q->cs, language, name, ret,
					      reterr);
}

/* A name in a mount must not leave it. */
static bool is_inside(const char *name)
{
	const char *at = name;

	if (name[0] == '/' || name[0] == '\0')
		return false;
	for (; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
			return false;
	}
	return true;
}

int target_add_mount(json_t *mounts, const json_t *mount, struct cordon_error **reterr)
{
	const char *path = json_string_value(json_object_get(mount, "path")), *name;
	json_t *files = json_object_get(mount, "files"), *data;

	if (!path || !json_is_object(files))
		return err_set(reterr, CORDON_INVALID, "a mount needs path and files");
	json_object_foreach(files, name, data)
	{
		if (!is_inside(name))
			return err_set(reterr, CORDON_INVALID, "'%.100s' leaves its mount", name);
		cleanup_free char *guest = str_printf("%s/%s", path, name);
		json_t *m = guest ? json_object() : NULL;
		if (!m)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
		int r = json_object_set_new(m, "guest", json_string(guest));
		r |= json_object_set(m, "bytes_base64", data);
		r |= json_array_append_new(mounts, m);
		if (r != 0)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return 0;
}

bool target_is_leaving(const struct request *q)
{
	struct client_sessions *t = &q->rpc->sessions;

	pthread_mutex_lock(&t->lock);
	bool is = q->cs->is_closing || t->is_closing || is_being_moved(q->cs);
	pthread_mutex_unlock(&t->lock);
	return is;
}

void target_close(struct request *q)
{
	struct rpc *c = q->rpc;
	bool is_home;

	pthread_mutex_lock(&c->lock);
	is_home = c->home == q->cs;
	if (is_home)
		c->home = NULL;
	pthread_mutex_unlock(&c->lock);
	if (is_home)
		client_session_put(&c->sessions, q->cs);
	client_session_close(&c->sessions, q->cs);
	q->cs = NULL;
}
