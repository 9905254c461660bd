/* serve/rpc/relocate.c - mount, offload, rehydrate and suspend. The first three replace the session
 * behind a client session, whose id stays. */
#include <cordon/cordon.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "serve/rpc/open_params.h"
#include "serve/rpc/payload.h"
#include "serve/rpc/target.h"
#include "session/session.h"

enum { STATE_MAX = 1 << 30 };

/* Other references that stay: the one of rpc->home, the default sandbox. */
static unsigned others(const struct request *q)
{
	pthread_mutex_lock(&q->rpc->lock);
	bool is_home = q->rpc->home == q->cs;
	pthread_mutex_unlock(&q->rpc->lock);
	return is_home;
}

static int check_movable(const struct request *q, struct cordon_error **reterr)
{
	if (q->cs->owner)
		return err_set(reterr, CORDON_STATE,
			       "a context cannot be moved: name the session that it belongs to");
	if (q->cs->lender || !q->cs->open_params)
		return err_set(reterr, CORDON_STATE, "a pool's session cannot be moved");
	if (json_object_get(q->cs->open_params, "workspace"))
		return err_set(reterr, CORDON_STATE,
			       "a session with a saved workspace cannot be moved");
	return 0;
}

/* Opens a new session with the original parameters, under the id that the client knows: an audit of
 * it finds everything. Its files and current environment are imported later. */
static int open_again(struct request *q, json_t *params, struct cordon_session **ret,
		      struct cordon_error **reterr)
{
	cleanup_open_params struct open_params o = { 0 };
	json_t *given = q->params;

	if (!params) /* otherwise it would be another session with another policy */
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	q->params = params;
	int r = open_params_read(q, "sh", &o, reterr);
	if (r == 0)
		r = session_reopen(&o.options, q->cs->id, ret, reterr);
	q->params = given;
	return r;
}

/* session_id is that of the audit events. Clients follow it, though it does not change any more. */
static int tell_moved(struct cordon_session *session, struct buf *ret, struct cordon_error **reterr)
{
	(void)reterr;
	return buf_printf(ret, "{\"ok\":true,\"session_id\":\"%s\"}", cordon_session_id(session));
}

/* Adds files as mounts to the policy. The sandbox's mounts are fixed when it starts, so a new
 * session with the old one's files replaces it. Running processes are lost. */
static int mount(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_session *session = NULL;
	cleanup_close int fd = -1;
	int r = check_movable(q, reterr);

	if (r < 0)
		return r;
	cleanup_json json_t *params = json_deep_copy(q->cs->open_params);
	json_t *policy = json_object_get(params, "policy"), *list;
	if (!policy && json_object_set_new(params, "policy", json_object()) == 0)
		policy = json_object_get(params, "policy");
	list = json_object_get(policy, "mounts");
	if (!list && json_object_set_new(policy, "mounts", json_array()) == 0)
		list = json_object_get(policy, "mounts");
	if (!list)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	r = target_add_mount(list, q->params, reterr);
	if (r == 0)
		r = client_session_lock(&q->rpc->sessions, q->cs, others(q), reterr);
	if (r < 0)
		return r;
	r = payload_export(q->cs->session, &fd, reterr);
	if (r == 0)
		r = open_again(q, params, &session, reterr);
	if (r == 0)
		r = cordon_files_import(session, fd, NULL, reterr);
	if (r < 0) {
		cordon_session_close(session);
		(void)client_session_unlock(&q->rpc->sessions, q->cs, q->cs->session);
		return r;
	}
	json_decref(q->cs->open_params);
	q->cs->open_params = TAKE_PTR(params);
	q->cs->project = cordon_project_close(q->cs->project);
	r = tell_moved(session, ret, reterr);
	cordon_session_close(client_session_unlock(&q->rpc->sessions, q->cs, session));
	return r;
}

/* Stores the files: with the server or the client if they have a storage, else here. */
static int put_away(struct request *q, struct cordon_error **reterr)
{
	const struct rpc_storage *storage = &q->rpc->storage;
	cleanup_free char *text = NULL;
	int r;

	if (storage->save) {
		cleanup_close int fd = -1;
		r = payload_export(q->cs->session, &fd, reterr);
		return r < 0 ? r
			     : storage->save(q->cs->id, q->cs->open_params, q->cs->memory, fd,
					     storage->arg, reterr);
	}
	r = payload_export_text(q->cs->session, STATE_MAX, &text, reterr);

	if (r < 0)
		return r;
	if (!q->cs->has_storage) {
		q->cs->state = TAKE_PTR(text);
		return 0;
	}
	cleanup_json json_t *answer = NULL;
	cleanup_free char *params =
		str_printf("{\"sandboxId\":\"%s\",\"data\":\"%s\"}", q->cs->id, text);
	return params ? callback_request(&q->rpc->callbacks, "storage.save", params, &answer,
					 reterr)
		      : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int offload(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	if (q->cs->is_offloaded)
		return buf_add_str(ret, "{\"ok\":true}");
	int r = check_movable(q, reterr);
	if (r == 0)
		r = client_session_lock(&q->rpc->sessions, q->cs, others(q), reterr);
	if (r < 0)
		return r;
	r = put_away(q, reterr);
	if (r < 0) {
		(void)client_session_unlock(&q->rpc->sessions, q->cs, q->cs->session);
		return r;
	}
	q->cs->project = cordon_project_close(q->cs->project);
	client_session_discharge(&q->rpc->sessions, q->cs);
	cordon_session_close(client_session_unlock(&q->rpc->sessions, q->cs, NULL));
	return buf_add_str(ret, "{\"ok\":true}");
}

static int load_state(struct request *q, int *ret_fd, struct cordon_error **reterr)
{
	cleanup_json json_t *answer = NULL;
	cleanup_free void *bytes = NULL;
	const char *text = q->cs->state;
	size_t len = 0;
	int r = 0;

	if (q->rpc->storage.load)
		return q->rpc->storage.load(q->cs->id, ret_fd, q->rpc->storage.arg, reterr);
	if (q->cs->has_storage) {
		cleanup_free char *params = str_printf("{\"sandboxId\":\"%s\"}", q->cs->id);
		r = params ? callback_request(&q->rpc->callbacks, "storage.load", params, &answer,
					      reterr)
			   : err_set(reterr, CORDON_NOMEM, "out of memory");
		text = json_string_value(json_object_get(answer, "data"));
	}
	if (r == 0 && !text)
		r = err_set(reterr, CORDON_NOT_FOUND, "storage.load returned no data");
	if (r == 0)
		r = base64_decode(text, strlen(text), &bytes, &len, reterr);
	return r < 0 ? r : file_from_bytes("cordon-state", bytes, len, ret_fd, reterr);
}

static int rehydrate(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_session *session = NULL;
	cleanup_close int fd = -1;

	if (!q->cs->is_offloaded)
		return buf_add_str(ret, "{\"ok\":true}");
	cleanup_json json_t *params = json_deep_copy(q->cs->open_params);
	int r = client_session_lock(&q->rpc->sessions, q->cs, others(q), reterr);
	if (r < 0)
		return r;
	r = load_state(q, &fd, reterr);
	if (r == 0)
		r = client_session_charge(&q->rpc->sessions, q->cs, q->cs->memory_offloaded,
					  reterr);
	bool is_charged = r == 0;
	if (r == 0)
		r = open_again(q, params, &session, reterr);
	if (r == 0)
		r = cordon_files_import(session, fd, NULL, reterr);
	if (r == 0)
		r = tell_moved(session, ret, reterr);
	if (r < 0)
		session = cordon_session_close(session);
	if (r < 0 && is_charged)
		client_session_discharge(&q->rpc->sessions, q->cs);
	(void)client_session_unlock(&q->rpc->sessions, q->cs, session);
	if (r < 0)
		return r;
	free(q->cs->state);
	q->cs->state = NULL;
	if (q->rpc->storage.forget)
		q->rpc->storage.forget(q->cs->id, q->rpc->storage.arg);
	return 0;
}

static int suspend(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	int r = client_session_suspend(&q->rpc->sessions, q->cs, reterr);

	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

static int resume(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	(void)reterr;
	client_session_resume(&q->rpc->sessions, q->cs);
	return buf_add_str(ret, "{\"ok\":true}");
}

static int list_history(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	pthread_mutex_lock(&q->rpc->sessions.lock);
	cleanup_free char *text = q->cs->history ? json_text(q->cs->history, NULL) : str_dup("[]");
	pthread_mutex_unlock(&q->rpc->sessions.lock);
	return text ? buf_printf(ret, "{\"entries\":%s}", text)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int clear_history(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	(void)reterr;
	pthread_mutex_lock(&q->rpc->sessions.lock);
	json_array_clear(q->cs->history);
	pthread_mutex_unlock(&q->rpc->sessions.lock);
	return buf_add_str(ret, "{\"ok\":true}");
}

/* Methods that replace the session occupy it, like an execution. */
const struct rpc_method rpc_move_methods[] = {
	{ "mount", mount, RPC_SLOW | RPC_SESSION | RPC_EXECUTE, "path files writable" },
	{ "offload", offload, RPC_SLOW | RPC_SESSION | RPC_EXECUTE | RPC_ASLEEP, "" },
	{ "rehydrate", rehydrate, RPC_SLOW | RPC_SESSION | RPC_EXECUTE | RPC_ASLEEP, "" },
	{ "sandbox.suspend", suspend, RPC_SESSION, "" },
	{ "sandbox.resume", resume, RPC_SESSION, "" },
	{ "shell.history.list", list_history, RPC_SESSION, "" },
	{ "shell.history.clear", clear_history, RPC_SESSION, "" },
	{ 0 },
};
