/* serve/rpc/sessions.c - methods for sessions: open, execute, cancel, restart, describe, close. */
#include <cordon/cordon.h>
#include <cordon/packages.h>
#include <string.h>

#include "serve/rpc/open_params.h"
#include "serve/rpc/process_methods.h"
#include "serve/rpc/prove_methods.h"
#include "serve/rpc/rpc_execution.h"
#include "serve/rpc/target.h"

/* Opens a session from the parameters. Returns a client session with a reference. */
static int open_client_session(struct request *q, struct client_session **ret,
			       struct cordon_error **reterr)
{
	cleanup_open_params struct open_params o = { 0 };
	struct cordon_session *session = NULL;
	struct client_session *cs = NULL;
	int r = open_params_read(q, NULL, &o, reterr);

	if (r == 0)
		r = client_session_new(&q->rpc->sessions, false, &cs, reterr);
	if (r < 0 || !cs)
		return r;
	r = client_session_charge(&q->rpc->sessions, cs, open_params_memory(&o), reterr);
	if (r == 0)
		r = cordon_session_open(&o.options, &session, reterr);
	if (r < 0) {
		client_session_fail(&q->rpc->sessions, cs);
		return r;
	}
	open_params_remember(cs, q->params, "python");
	client_session_open_session(&q->rpc->sessions, cs, session);
	*ret = cs;
	return 0;
}

static int open_session(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct client_session *cs = NULL;
	int r = open_client_session(q, &cs, reterr);

	if (r < 0 || !cs)
		return r;
	r = buf_printf(ret, "{\"session\":\"%s\"}", cs->id);
	client_session_put(&q->rpc->sessions, cs);
	return r;
}

/* In the session, or in a context that the request names. */
static int execute(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct client_session *cs = NULL;

	if (!target_names_context(q))
		return rpc_execution_run(q, q->cs, ret, reterr);
	int r = target_context(q, &cs, reterr);
	if (r == 0)
		r = client_session_begin(&q->rpc->sessions, cs, q->id, reterr);
	if (r == 0) {
		r = rpc_execution_run(q, cs, ret, reterr);
		client_session_end(&q->rpc->sessions, cs);
	}
	client_session_put(&q->rpc->sessions, cs);
	return r;
}

/* The id of a context, for all methods that take a session. */
static int context(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct client_session *cs = NULL;
	int r = target_context(q, &cs, reterr);

	if (r < 0)
		return r;
	r = buf_printf(ret, "{\"session\":\"%s\"}", cs->id);
	client_session_put(&q->rpc->sessions, cs);
	return r;
}

/* Runs the code once in a session of its own. */
static int run(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct client_session *cs = NULL;
	int r = open_client_session(q, &cs, reterr);

	if (r < 0 || !cs)
		return r;
	r = client_session_begin(&q->rpc->sessions, cs, q->id, reterr);
	if (r == 0) {
		r = rpc_execution_run(q, cs, ret, reterr);
		if (r == 0) /* report it while the client is there */
			r = cordon_session_save(cs->session, reterr);
		client_session_end(&q->rpc->sessions, cs);
	}
	client_session_close(&q->rpc->sessions, cs);
	return r;
}

static int cancel(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	(void)reterr;
	bool was_running = client_session_cancel(&q->rpc->sessions, q->cs);

	return buf_printf(ret, "{\"cancelled\":%s}", was_running ? "true" : "false");
}

/* Cancels by the id of the request that executes. */
static int cancel_request(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const json_t *id = json_object_get(q->params, "request_id");

	if (!id)
		return err_set(reterr, CORDON_INVALID, "Missing required param: request_id");
	struct client_session *s = client_session_by_request(&q->rpc->sessions, id);
	bool was_running = s ? client_session_cancel(&q->rpc->sessions, s)
			     : waitlist_cancel(q->rpc, id) || proof_cancel(q->rpc, id) ||
					   process_methods_cancel(q->rpc, id);
	client_session_put(&q->rpc->sessions, s);
	return buf_printf(ret, "{\"cancelled\":%s}", was_running ? "true" : "false");
}

static int interrupt(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	int r = cordon_session_interrupt(q->cs->session, reterr);

	return r < 0 ? r : buf_add_str(ret, "{}");
}

static int restart(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	int r = cordon_session_restart(q->cs->session, reterr);

	return r < 0 ? r : buf_add_str(ret, "{}");
}

/* What a prompt asks about code that does not run yet. The answer is the guest's. */
static int inspect(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_inspect_options o = { .question = CORDON_COMPLETE };
	cleanup_free char *json = NULL;
	const char *question = NULL;
	int r = target_need(q, "code", &o.code, reterr);

	if (r == 0)
		r = target_need(q, "question", &question, reterr);
	if (r < 0)
		return r;
	o.code_len = strlen(o.code);
	if (str_eq(question, "is_complete"))
		o.question = CORDON_IS_COMPLETE;
	else if (!str_eq(question, "complete"))
		return err_set(reterr, CORDON_INVALID,
			       "question is \"is_complete\" or \"complete\"");
	r = cordon_session_inspect(q->cs->session, &o, &json, reterr);
	return r < 0 ? r : buf_add_str(ret, json ? json : "{}");
}

static int install(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_strlist struct strlist names = { 0 };
	cleanup_free char *text = NULL;
	struct cordon_install_options o = { 0 };
	int r = open_params_list(q, "names", &names, reterr);

	if (r == 0)
		r = target_string(q, "language", &o.language, reterr);
	if (r == 0)
		r = target_uint(q, "timeout_ms", &o.timeout_ms, reterr);
	if (r < 0)
		return r;
	o.names = (const char *const *)names.items;
	r = client_session_pass(&q->rpc->sessions, q->cs, reterr);
	if (r == 0)
		r = cordon_session_install(q->cs->session, &o, &text, reterr);
	return r < 0 ? r : buf_add_str(ret, text);
}

static int close_session(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	char id[CLIENT_SESSION_ID_BYTES];

	memcpy(id, q->cs->id, sizeof(id));
	target_close(q);
	if (q->rpc->storage.forget)
		q->rpc->storage.forget(id, q->rpc->storage.arg);
	cleanup_free char *text = client_sessions_take_loss(&q->rpc->sessions);
	if (!text)
		return buf_add_str(ret, "{}");
	cleanup_json json_t *j = json_pack("{s:[s]}", "warnings", text);
	cleanup_free char *answer = j ? json_text(j, NULL) : NULL;
	return answer ? buf_add_str(ret, answer) : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int describe(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_free char *text = cordon_session_describe(q->cs->session);

	return text ? buf_add_str(ret, text) : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int set_env(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *name = NULL, *value = NULL;
	int r = target_need(q, "name", &name, reterr);

	if (r == 0 && !json_is_null(json_object_get(q->params, "value")))
		r = target_need(q, "value", &value, reterr);
	if (r == 0)
		r = cordon_session_setenv(q->cs->session, name, value, reterr);
	return r < 0 ? r : buf_add_str(ret, "{}");
}

static int resolve(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *id = NULL, *reason = NULL;
	const json_t *value = json_object_get(q->params, "value");
	cleanup_free char *text = NULL;
	bool allow = false;
	int r = target_need(q, "id", &id, reterr);

	if (r == 0)
		r = target_bool(q, "allow", &allow, reterr);
	if (r == 0)
		r = target_string(q, "reason", &reason, reterr);
	if (r < 0)
		return r;
	if (value && !(text = json_text(value, NULL)))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	r = cordon_session_resolve(q->cs->session, id, allow, text, reason, reterr);
	return r < 0 ? r : buf_add_str(ret, "{}");
}

static void add_id(const struct client_session *s, void *arg)
{
	json_array_append_new(arg, json_string(s->id));
}

static int list(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_json json_t *ids = json_array();

	client_sessions_visit(&q->rpc->sessions, add_id, ids);
	cleanup_free char *text = json_text(ids, NULL);
	return text ? buf_printf(ret, "{\"sessions\":%s}", text)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

const struct rpc_method rpc_session_methods[] = {
	{ "session.open", open_session, RPC_SLOW, OPEN_PARAMS_PARAMS },
	{ "session.execute", execute, RPC_SLOW | RPC_SESSION | RPC_EXECUTE | RPC_CONTEXT | RPC_CODE,
	  EXECUTION_PARAMS " language" },
	{ "session.context", context, RPC_SLOW | RPC_SESSION, "language context" },
	{ "session.run", run, RPC_SLOW | RPC_CODE, OPEN_PARAMS_PARAMS " " EXECUTION_PARAMS },
	{ "session.cancel", cancel, RPC_SLOW | RPC_SESSION | RPC_ENDS, "" },
	{ "session.interrupt", interrupt, RPC_SESSION, "" },
	{ "session.inspect", inspect, RPC_SLOW | RPC_SESSION, "code question" },
	{ "session.install", install, RPC_SLOW | RPC_SESSION | RPC_EXECUTE,
	  "names language timeout_ms" },
	{ "session.restart", restart, RPC_SLOW | RPC_SESSION, "" },
	{ "session.close", close_session,
	  RPC_SLOW | RPC_SESSION | RPC_ASLEEP | RPC_CLOSE | RPC_ENDS, "" },
	{ "session.describe", describe, RPC_SESSION, "" },
	{ "session.setenv", set_env, RPC_SESSION, "name value" },
	{ "session.list", list, 0, "" },
	{ "approval.resolve", resolve, RPC_SESSION, "id allow value reason" },
	{ "cancel", cancel_request, RPC_SLOW | RPC_ENDS, "request_id" },
	{ 0 },
};
