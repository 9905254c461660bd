/* serve/target.c - see target.h. */
#include "serve/target.h"

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

/* The one sandbox of requests that name none. */
static int find_home(struct request *q, struct cordon_error **reterr)
{
	struct rpc *c = q->rpc;

	q->is_pod_style = true;
	pthread_mutex_lock(&c->lock);
	if (c->home)
		q->seat = seat_ref(&c->seats, c->home);
	pthread_mutex_unlock(&c->lock);
	if (!q->seat)
		return err_set(reterr, CORDON_STATE, "Sandbox not created. Call \"create\" first.");
	if (!seat_wait_open(&c->seats, q->seat))
		return err_set(reterr, CORDON_STATE, "Sandbox has been destroyed");
	return 0;
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
	q->seat = seat_get(&q->rpc->seats, id ? id : sandbox, SEAT_SESSION);
	if (q->seat)
		return 0;
	if (!id)
		return err_set(reterr, CORDON_INVALID, "Unknown sandboxId: %.100s", sandbox);
	return err_set(reterr, CORDON_NOT_FOUND, "there is no session '%.100s'", id);
}

int target_find(struct request *q, struct cordon_error **reterr)
{
	const char *id = NULL;

	if (q->method->flags & RPC_SESSION)
		return find_session(q, reterr);
	if (!(q->method->flags & RPC_POOL))
		return 0;
	int r = target_need(q, "pool", &id, reterr);
	if (r < 0)
		return r;
	q->seat = seat_get(&q->rpc->seats, id, SEAT_POOL);
	return q->seat ? 0 : err_set(reterr, CORDON_STATE, "Pool is closed.");
}
