/* serve/sessions.c - the methods on sessions: open, execute, cancel, restart, describe, close. */
#include <cordon/cordon.h>

#include "serve/execution.h"
#include "serve/opening.h"
#include "serve/proof.h"
#include "serve/target.h"

/* Opens what the parameters describe. The seat comes with a reference. */
static int open_seat(struct request *q, struct seat **ret, struct cordon_error **reterr)
{
	cleanup_opening struct opening o = { 0 };
	struct cordon_session *session = NULL;
	struct seat *seat = NULL;
	int r = opening_read(q, NULL, &o, reterr);

	if (r == 0)
		r = seat_new(&q->rpc->seats, SEAT_SESSION, false, &seat, reterr);
	if (r < 0 || !seat)
		return r;
	r = cordon_session_open(&o.options, &session, reterr);
	if (r < 0) {
		seat_fail(&q->rpc->seats, seat);
		return r;
	}
	opening_remember(seat, q->params, "python");
	seat_open_session(&q->rpc->seats, seat, session);
	*ret = seat;
	return 0;
}

static int open_session(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct seat *seat = NULL;
	int r = open_seat(q, &seat, reterr);

	if (r < 0 || !seat)
		return r;
	r = buf_printf(ret, "{\"session\":\"%s\"}", seat->id);
	seat_put(&q->rpc->seats, seat);
	return r;
}

static int execute(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	return rpc_execution_run(q, q->seat, ret, reterr);
}

/* One shot: nothing is left of it. */
static int run(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct seat *seat = NULL;
	int r = open_seat(q, &seat, reterr);

	if (r < 0 || !seat)
		return r;
	r = seat_begin(&q->rpc->seats, seat, q->id, reterr);
	if (r == 0) {
		r = rpc_execution_run(q, seat, ret, reterr);
		if (r == 0) /* while there is somebody to tell */
			r = cordon_session_save(seat->session, reterr);
		seat_end(&q->rpc->seats, seat);
	}
	seat_close(&q->rpc->seats, seat);
	return r;
}

static int cancel(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	(void)reterr;
	bool was_running = seat_cancel(&q->rpc->seats, q->seat);

	return buf_printf(ret, "{\"cancelled\":%s}", was_running ? "true" : "false");
}

/* By the id of the request that executes. */
static int cancel_request(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const json_t *id = json_object_get(q->params, "request_id");

	if (!id)
		return err_set(reterr, CORDON_INVALID, "Missing required param: request_id");
	struct seat *s = seat_by_request(&q->rpc->seats, id);
	bool was_running = s ? seat_cancel(&q->rpc->seats, s)
			     : waitlist_cancel(q->rpc, id) || proof_cancel(q->rpc, id);
	seat_put(&q->rpc->seats, s);
	return buf_printf(ret, "{\"cancelled\":%s}", was_running ? "true" : "false");
}

static int interrupt(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	int r = cordon_session_interrupt(q->seat->session, reterr);

	return r < 0 ? r : buf_add_str(ret, "{}");
}

static int restart(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	int r = cordon_session_restart(q->seat->session, reterr);

	return r < 0 ? r : buf_add_str(ret, "{}");
}

static int close_session(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	target_close(q);
	cleanup_free char *text = seats_take_loss(&q->rpc->seats);
	if (!text)
		return buf_add_str(ret, "{}");
	cleanup_json json_t *j = json_pack("{s:[s]}", "warnings", text);
	cleanup_free char *answer = j ? json_text(j, NULL) : NULL;
	return answer ? buf_add_str(ret, answer) : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int describe(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_free char *text = cordon_session_describe(q->seat->session);

	return text ? buf_add_str(ret, text) : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int set_env(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *name = NULL, *value = NULL;
	int r = target_need(q, "name", &name, reterr);

	if (r == 0 && !json_is_null(json_object_get(q->params, "value")))
		r = target_need(q, "value", &value, reterr);
	if (r == 0)
		r = cordon_session_setenv(q->seat->session, name, value, reterr);
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
	r = cordon_session_resolve(q->seat->session, id, allow, text, reason, reterr);
	return r < 0 ? r : buf_add_str(ret, "{}");
}

static void add_id(const struct seat *s, void *arg)
{
	json_array_append_new(arg, json_string(s->id));
}

static int list(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_json json_t *ids = json_array();

	seats_visit(&q->rpc->seats, add_id, ids);
	cleanup_free char *text = json_text(ids, NULL);
	return text ? buf_printf(ret, "{\"sessions\":%s}", text)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

const struct rpc_method rpc_session_methods[] = {
	{ "session.open", open_session, RPC_SLOW, OPENING_PARAMS },
	{ "session.execute", execute, RPC_SLOW | RPC_SESSION | RPC_EXECUTE, EXECUTION_PARAMS },
	{ "session.run", run, RPC_SLOW, OPENING_PARAMS " " EXECUTION_PARAMS },
	{ "session.cancel", cancel, RPC_SLOW | RPC_SESSION | RPC_ENDS, "" },
	{ "session.interrupt", interrupt, RPC_SESSION, "" },
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
