/* serve/e2b/e2b_answer.c - answers and bodies that the handlers of this room share. */
#include <string.h>

#include "base/str.h"
#include "serve/e2b/e2b_state.h"
#include "serve/http/problem.h"

void e2b_answer_json(struct httpd_exchange *x, unsigned status, json_t *j)
{
	size_t len = 0;
	cleanup_free char *text = json_text(j, &len);

	json_decref(j);
	if (text)
		httpd_answer(x, status, "application/json", text, len);
	else
		httpd_answer(x, 503, NULL, NULL, 0);
}

void e2b_fail(struct httpd_exchange *x, unsigned status, const char *sentence)
{
	json_t *j = json_object();

	json_object_set_new(j, "code", json_integer((json_int_t)status));
	json_object_set_new(j, "message", json_string_lossy(sentence, strlen(sentence)));
	e2b_answer_json(x, status, j);
}

void e2b_fail_error(struct httpd_exchange *x, const struct cordon_error *e)
{
	enum cordon_code code = cordon_error_code(e);

	/* What the makers' clients understand: 507 is a full disk, and a quota is a rate. */
	unsigned status = code == CORDON_LIMIT ? 429 : problem_status(code);
	if (code == CORDON_UNSUPPORTED)
		status = 501;
	if (code == CORDON_STATE)
		status = 409;
	e2b_fail(x, status, cordon_error_message(e));
}

/* What a proxy says whose sandbox is not there; clients know it by the status. */
void e2b_fail_missing(struct httpd_exchange *x)
{
	json_t *j = json_object();

	json_object_set_new(j, "sandboxId", json_string(httpd_principal(x)));
	json_object_set_new(j, "message", json_string("The sandbox was not found"));
	json_object_set_new(j, "code", json_integer(502));
	e2b_answer_json(x, 502, j);
}

bool e2b_refuse_missing(struct httpd_exchange *x, unsigned status)
{
	if (status == 502)
		e2b_fail_missing(x);
	return status == 502;
}

int e2b_read_json(struct httpd_exchange *x, json_t **ret, struct cordon_error **reterr)
{
	size_t len = 0;
	const char *body = httpd_body(x, &len);
	cleanup_json json_t *j = NULL;
	int r = len ? json_parse(body, len, 0, &j, reterr) : 0;

	if (r < 0)
		return r;
	if (!j || json_is_null(j)) {
		json_decref(j);
		j = json_object();
	}
	if (!json_is_object(j))
		return err_set(reterr, CORDON_INVALID, "the body must be a JSON object");
	*ret = TAKE_PTR(j);
	return 0;
}
