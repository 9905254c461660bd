/* serve/v1/v1_question.c - tool calls and approvals of running code, answered by the client. */
#include "serve/http/problem.h"
#include "serve/server/activity.h"
#include "serve/v1/v1.h"

void v1_list_questions(struct httpd_exchange *x, void *server)
{
	cleanup_json json_t *j = activity_pending(httpd_tenant(x), httpd_param(x, "session"));

	(void)server;
	v1_answer_json(x, 200, j);
}

/* {"value": ...} or {"error": "..."} as the answer of a client of serve/rpc. */
static json_t *make_answer(const char *id, const json_t *body)
{
	json_t *value = json_object_get(body, "value"), *error = json_object_get(body, "error");

	if (error)
		return json_pack("{s:s,s:{s:i,s:O}}", "id", id, "error", "code", 1, "message",
				 error);
	return json_pack("{s:s,s:{s:O}}", "id", id, "result", "value", value);
}

void v1_answer_tool_call(struct httpd_exchange *x, void *server)
{
	static const struct v1_method m = { .body = "value error" };
	const char *session = httpd_param(x, "session"), *id = httpd_param(x, "call");
	struct tenant *t = httpd_tenant(x);
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *body = NULL;

	(void)server;
	if (v1_read_params(x, &m, &body, &e) < 0) {
		problem_answer(x, e);
		return;
	}
	const json_t *error = json_object_get(body, "error");
	if (!!json_object_get(body, "value") == !!error || (error && !json_is_string(error))) {
		problem_answer_as(x, 400, "invalid",
				  "an answer has either a value or an error, which is a text",
				  NULL);
		return;
	}
	cleanup_json json_t *message = make_answer(id, body);
	if (activity_take_pending(t, session, id) && callback_answer(&t->rpc->callbacks, message))
		httpd_answer(x, 204, NULL, NULL, 0);
	else
		problem_answer_as(x, 404, "not_found", "no such tool call waits for an answer",
				  "it may have timed out");
}

void v1_answer_approval(struct httpd_exchange *x, void *server)
{
	static const struct v1_method m = { .body = "allow value reason" };
	const char *session = httpd_param(x, "session"), *id = httpd_param(x, "approval");
	struct tenant *t = httpd_tenant(x);
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *params = NULL;
	cleanup_buf struct buf ignored = { 0 };

	(void)server;
	buf_init(&ignored, SIZE_MAX / 2);
	int r = v1_read_params(x, &m, &params, &e);
	if (r == 0) {
		json_object_set_new(params, "id", json_string(id));
		r = tenant_call(t, "approval.resolve", params, NULL, &ignored, &e);
	}
	if (r == 0)
		(void)activity_take_pending(t, session, id);
	if (r == 0)
		httpd_answer(x, 204, NULL, NULL, 0);
	else
		problem_answer(x, e);
}
