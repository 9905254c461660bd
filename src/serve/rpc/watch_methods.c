/* serve/rpc/watch_methods.c - directories of a client's sessions that it watches. */
#include <cordon/files.h>

#include "serve/rpc/rpc.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "serve/rpc/target.h"

/* How often a wait looks whether its session is closed. */
enum { LOOK_MS = 100 };

static int need_watch(const struct request *q, uint64_t *ret, struct cordon_error **reterr)
{
	if (!json_object_get(q->params, "watch"))
		return err_set(reterr, CORDON_INVALID, "Missing required param: watch");
	return target_uint(q, "watch", ret, reterr);
}

static int watch(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *path = NULL;
	uint64_t number = 0;
	bool is_recursive = false;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = target_bool(q, "recursive", &is_recursive, reterr);
	if (r == 0)
		r = cordon_watch_open(q->cs->session, path, is_recursive, &number, reterr);
	return r < 0 ? r : buf_printf(ret, "{\"watch\":%llu}", (unsigned long long)number);
}

static int changes(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_free char *json = NULL;
	uint64_t number = 0, wait_ms = 0;
	int r = need_watch(q, &number, reterr);

	if (r == 0)
		r = target_uint(q, "wait_ms", &wait_ms, reterr);
	deadline_ns deadline = deadline_after_ms(wait_ms);
	while (r == 0) {
		bool is_last = deadline_is_over(deadline) || target_is_leaving(q);

		free(TAKE_PTR(json));
		r = cordon_watch_wait(q->cs->session, number, is_last ? 0 : LOOK_MS, &json, reterr);
		if (is_last || (json && !str_eq(json, "[]")))
			break;
	}
	return r < 0 ? r : buf_printf(ret, "{\"changes\":%s}", json);
}

static int unwatch(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	uint64_t number = 0;
	int r = need_watch(q, &number, reterr);

	if (r == 0)
		r = cordon_watch_close(q->cs->session, number, reterr);
	return r < 0 ? r : buf_add_str(ret, "{}");
}

const struct rpc_method rpc_watch_methods[] = {
	{ "files.watch", watch, RPC_SESSION, "path recursive" },
	{ "files.changes", changes, RPC_SLOW | RPC_SESSION, "watch wait_ms" },
	{ "files.unwatch", unwatch, RPC_SESSION, "watch" },
	{ 0 },
};
