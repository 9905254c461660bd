/* serve/rpc/workspaces.c - methods for whole workspaces: snapshots, forks, exports and imports. */
#include <cordon/cordon.h>
#include <stdio.h>

#include "base/str.h"
#include "serve/rpc/payload.h"
#include "serve/rpc/session_quota.h"
#include "serve/rpc/target.h"
#include "session/session.h"

/* `name`, or `id` in requests of pod clients. */
static int need_name(const struct request *q, const char **ret, struct cordon_error **reterr)
{
	int r = target_string(q, "name", ret, reterr);

	if (r == 0 && !*ret)
		r = target_string(q, "id", ret, reterr);
	if (r == 0 && !*ret)
		return err_set(reterr, CORDON_INVALID, "Missing required param: %s",
			       q->is_pod_style ? "id" : "name");
	return r;
}

static int create(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	char number[24];
	const char *name = NULL;
	int r = target_string(q, "name", &name, reterr);

	if (r < 0)
		return r;
	if (!name) {
		pthread_mutex_lock(&q->rpc->sessions.lock);
		snprintf(number, sizeof(number), "%u", ++q->cs->snapshots);
		pthread_mutex_unlock(&q->rpc->sessions.lock);
		name = number;
	}
	r = cordon_snapshot_create(q->cs->session, name, reterr);
	if (r < 0)
		return r;
	cleanup_json json_t *j = json_pack("{ss,ss}", "name", name, "id", name);
	cleanup_free char *text = j ? json_text(j, NULL) : NULL;
	return text ? buf_add_str(ret, text) : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int restore(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *name = NULL;
	int r = need_name(q, &name, reterr);

	if (r == 0)
		r = cordon_snapshot_restore(q->cs->session, name, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

static int remove_snapshot(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *name = NULL;
	int r = need_name(q, &name, reterr);

	if (r == 0)
		r = cordon_snapshot_remove(q->cs->session, name, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

static int list(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_free char *text = cordon_snapshot_list(q->cs->session);

	return text ? buf_printf(ret, "{\"snapshots\":%s}", text)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int fork_session(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_session *session = NULL;
	struct client_session *cs = NULL;
	int r = client_session_new(&q->rpc->sessions, true, &cs, reterr);

	if (r < 0)
		return r;
	r = client_session_charge(&q->rpc->sessions, cs, session_memory_bytes(q->cs->session),
				  reterr);
	if (r == 0)
		r = cordon_session_fork(q->cs->session, &session, reterr);
	if (r < 0) {
		client_session_fail(&q->rpc->sessions, cs);
		return r;
	}
	pthread_mutex_lock(&q->rpc->sessions.lock);
	cs->open_params = q->cs->open_params ? json_deep_copy(q->cs->open_params) : NULL;
	cs->has_storage = q->cs->has_storage;
	pthread_mutex_unlock(&q->rpc->sessions.lock);
	client_session_open_session(&q->rpc->sessions, cs, session);
	r = buf_printf(ret, "{\"session\":\"%s\",\"sandboxId\":\"%s\"}", cs->id, cs->id);
	client_session_put(&q->rpc->sessions, cs);
	return r;
}

static int export_files(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *to = NULL;
	cleanup_close int fd = -1;
	int r = payload_create(q, &to, &fd, reterr);

	if (r < 0)
		return r;
	r = cordon_files_export(q->cs->session, fd, reterr);
	return payload_answer(q, to, fd, r, ret, reterr);
}

static int import_files(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_free char *report = NULL;
	cleanup_close int fd = -1;
	int r = payload_open(q, &fd, reterr);

	if (r == 0)
		r = cordon_files_import(q->cs->session, fd, &report, reterr);
	return r < 0 ? r : buf_printf(ret, "{\"ok\":true,\"report\":%s}", report ? report : "null");
}

const struct rpc_method rpc_workspace_methods[] = {
	{ "snapshot.create", create, RPC_SLOW | RPC_SESSION, "name" },
	{ "snapshot.restore", restore, RPC_SLOW | RPC_SESSION, "name id" },
	{ "snapshot.remove", remove_snapshot, RPC_SLOW | RPC_SESSION, "name id" },
	{ "snapshot.list", list, RPC_SESSION, "" },
	{ "session.fork", fork_session, RPC_SLOW | RPC_SESSION, "" },
	{ "sandbox.fork", fork_session, RPC_SLOW | RPC_SESSION, "" },
	{ "files.export", export_files, RPC_SLOW | RPC_SESSION, "to attach" },
	{ "files.import", import_files, RPC_SLOW | RPC_SESSION, "data from attached" },
	{ "persistence.export", export_files, RPC_SLOW | RPC_SESSION, "to attach" },
	{ "persistence.import", import_files, RPC_SLOW | RPC_SESSION, "data from attached" },
	{ 0 },
};
