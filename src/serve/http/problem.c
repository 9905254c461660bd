/* serve/http/problem.c - see problem.h. */
#include "serve/http/problem.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

static const struct {
	enum cordon_code code;
	unsigned status;
	const char *remedy;
} table[] = {
	{ CORDON_INVALID, 400, "correct the request; GET /v1/openapi.json describes it" },
	{ CORDON_NOMEM, 503, "try again later" },
	{ CORDON_DENIED, 403, "ask for less, or use a key whose policy allows it" },
	{ CORDON_LIMIT, 429, "end something that is no longer needed, or try again later" },
	{ CORDON_TIMEOUT, 504, "try again, or allow more time" },
	{ CORDON_NOT_FOUND, 404,
	  "check the name or id; it may have ended, or belong to another key" },
	{ CORDON_UNSUPPORTED, 501, "see GET /v1/doctor for what this machine can do" },
	{ CORDON_PROTOCOL, 502, "try again with a new session" },
	{ CORDON_STATE, 409, "wait for what is running, or end it" },
	{ CORDON_EXISTS, 409, "choose another name, or remove what is there" },
	{ CORDON_CANCELLED, 409, "send the request again" },
};

/* Limits that another try meets again. */
static const struct {
	unsigned status;
	const char *remedy;
} lasting[] = {
	[ERR_LIMIT_LENGTH] = { 413, "send less at once, or use a policy that allows more" },
	[ERR_LIMIT_SPENT] = { 403, "open another session, or use a policy that allows more" },
};

static const char *title_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *title;
	} titles[] = {
		{ 400, "Bad request" },        { 401, "No valid key" },
		{ 403, "Not allowed" },        { 404, "Not found" },
		{ 405, "Method not allowed" }, { 406, "Not acceptable" },
		{ 409, "Conflict" },           { 411, "Length required" },
		{ 413, "Too large" },          { 415, "Unsupported content" },
		{ 416, "Range not there" },    { 422, "Not the same request" },
		{ 429, "Too much" },           { 500, "Server error" },
		{ 501, "Not supported" },      { 502, "Guest failed" },
		{ 503, "Not available" },      { 504, "Timeout" },
		{ 507, "No space" },
	};

	for (size_t i = 0; i < sizeof(titles) / sizeof(*titles); i++)
		if (titles[i].status == status)
			return titles[i].title;
	return "Error";
}

unsigned problem_status(enum cordon_code code)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].code == code)
			return table[i].status;
	return 500;
}

static const char *remedy_of(const struct cordon_error *e, enum cordon_code code)
{
	if (err_limit_of(e) && code == CORDON_LIMIT)
		return lasting[err_limit_of(e)].remedy;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].code == code)
			return table[i].remedy;
	return "see the log of the server";
}

static char *document(unsigned status, const char *code, const char *sentence, const char *remedy,
		      size_t *ret_len)
{
	cleanup_json json_t *j = json_object();
	cleanup_free char *type = str_printf("urn:cordon:problem:%s", code);

	json_object_set_new(j, "type", json_string(type ? type : "about:blank"));
	json_object_set_new(j, "title", json_string(title_of(status)));
	json_object_set_new(j, "status", json_integer((json_int_t)status));
	json_object_set_new(j, "code", json_string(code));
	json_object_set_new(j, "detail", json_string_lossy(sentence, strlen(sentence)));
	if (remedy)
		json_object_set_new(j, "remedy", json_string(remedy));
	return json_text(j, ret_len);
}

/* A disk that is full is no fault of the request. */
static unsigned status_of(const struct cordon_error *e, enum cordon_code code)
{
	for (const struct cordon_error *c = e; c; c = cordon_error_cause(c))
		if (cordon_error_errno(c) == ENOSPC || cordon_error_errno(c) == EDQUOT)
			return 507;
	if (err_limit_of(e) && code == CORDON_LIMIT)
		return lasting[err_limit_of(e)].status;
	return problem_status(code);
}

char *problem_text(const struct cordon_error *e, unsigned *ret_status)
{
	enum cordon_code code = e ? cordon_error_code(e) : CORDON_NOMEM;
	cleanup_free char *text = err_text(e);

	*ret_status = status_of(e, code);
	return document(*ret_status, cordon_code_name(code), text ? text : "out of memory",
			remedy_of(e, code), NULL);
}

void problem_answer(struct httpd_exchange *x, const struct cordon_error *e)
{
	enum cordon_code code = e ? cordon_error_code(e) : CORDON_NOMEM;
	cleanup_free char *text = err_text(e);

	problem_answer_as(x, status_of(e, code), cordon_code_name(code),
			  text ? text : "out of memory", remedy_of(e, code));
}

void problem_answer_as(struct httpd_exchange *x, unsigned status, const char *code,
		       const char *sentence, const char *remedy)
{
	size_t len = 0;
	cleanup_free char *text = document(status, code, sentence, remedy, &len);

	if (status == 429 || status == 503)
		httpd_add_header(x, "Retry-After", "1");
	httpd_answer(x, status, "application/problem+json", text, text ? len : 0);
}
