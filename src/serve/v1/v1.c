/* serve/v1/v1.c - see v1.h. */
#include "serve/v1/v1.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/str.h"
#include "serve/http/problem.h"
#include "serve/http/route.h"
#include "serve/server/parking.h"
#include "serve/server/server.h"

void v1_answer_json(struct httpd_exchange *x, unsigned status, const json_t *j)
{
	size_t len = 0;
	cleanup_free char *text = json_text(j, &len);

	httpd_answer(x, text ? status : 500, "application/json", text, text ? len : 0);
}

/* One name of a list, without its mark; NULL: the end. */
static const char *next_name(const char **list, size_t *ret_len, char *ret_mark)
{
	const char *at = *list + strspn(*list, " ");
	size_t n = strcspn(at, " ");

	if (n == 0)
		return NULL;
	*list = at + n;
	*ret_mark = at[n - 1] == '#' || at[n - 1] == '?' ? at[n - 1] : '\0';
	*ret_len = n - (*ret_mark != '\0');
	return at;
}

static bool has_name(const char *list, const char *name)
{
	size_t len;
	char mark;

	for (const char *at; (at = next_name(&list, &len, &mark));)
		if (strlen(name) == len && memcmp(at, name, len) == 0)
			return true;
	return false;
}

static int add_number(json_t *params, const char *name, const char *text,
		      struct cordon_error **reterr)
{
	char *end = NULL;

	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || n > INT64_MAX)
		return err_set(reterr, CORDON_INVALID, "%s must be a number", name);
	json_object_set_new(params, name, json_integer((json_int_t)n));
	return 0;
}

static int add_text(json_t *params, const char *name, char mark, const char *text,
		    struct cordon_error **reterr)
{
	if (mark == '#')
		return add_number(params, name, text, reterr);
	if (mark == '?' && !str_eq(text, "true") && !str_eq(text, "false"))
		return err_set(reterr, CORDON_INVALID, "%s must be true or false", name);
	json_object_set_new(params, name,
			    mark == '?' ? json_boolean(str_eq(text, "true")) : json_string(text));
	return 0;
}

static int read_query(struct httpd_exchange *x, const char *list, json_t *params,
		      struct cordon_error **reterr)
{
	size_t len;
	char mark;
	int r = 0;

	for (const char *at; r == 0 && list && (at = next_name(&list, &len, &mark));) {
		cleanup_free char *name = str_ndup(at, len);
		const char *value = name ? httpd_query(x, name) : NULL;
		if (value)
			r = add_text(params, name, mark, value, reterr);
	}
	return r;
}

static int read_path(struct httpd_exchange *x, json_t *params, struct cordon_error **reterr)
{
	static const char *const names[] = {
		"session", "pool", "name", "process", "watch", "port"
	};
	static const char marks[] = { 0, 0, 0, '#', '#', '#' };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(names) / sizeof(*names); i++) {
		const char *value = httpd_param(x, names[i]);
		if (value)
			r = add_text(params, names[i], marks[i], value, reterr);
	}
	return r;
}

static bool is_json(struct httpd_exchange *x)
{
	const char *type = httpd_header(x, "Content-Type");
	size_t n = type ? strcspn(type, "; \t") : 0;

	return n == strlen("application/json") && strncasecmp(type, "application/json", n) == 0;
}

static int read_body(struct httpd_exchange *x, const char *list, json_t *params,
		     struct cordon_error **reterr)
{
	cleanup_json json_t *body = NULL;
	const char *key;
	json_t *value;
	size_t len;
	const char *text = httpd_body(x, &len);

	if (len == 0)
		return 0;
	if (!is_json(x))
		return err_set(reterr, CORDON_INVALID,
			       "the body must be JSON: Content-Type: application/json");
	int r = json_parse(text, len, V1_BODY_MAX, &body, reterr);
	if (r < 0)
		return r;
	if (!json_is_object(body))
		return err_set(reterr, CORDON_INVALID, "the body must be a JSON object");
	json_object_foreach(body, key, value)
	{
		if (!list || !has_name(list, key))
			return err_set(reterr, CORDON_INVALID,
				       "unknown parameter '%.64s' in the body", key);
		json_object_set(params, key, value);
	}
	return 0;
}

int v1_read_params(struct httpd_exchange *x, const struct v1_method *m, json_t **ret,
		   struct cordon_error **reterr)
{
	cleanup_json json_t *params = json_object();
	int r = params ? read_body(x, m->body, params, reterr)
		       : err_set(reterr, CORDON_NOMEM, "out of memory");

	if (r == 0)
		r = read_query(x, m->query, params, reterr);
	if (r == 0)
		r = read_path(x, params, reterr);
	if (r == 0)
		*ret = TAKE_PTR(params);
	return r;
}

/* The result without what only other protocols need. */
static void answer_part(struct httpd_exchange *x, const struct v1_method *m, const struct buf *b)
{
	cleanup_json json_t *whole = NULL, *part = json_object();
	const char *key;
	json_t *value;

	(void)json_parse(b->data, b->len, 0, &whole, NULL);
	json_object_foreach(whole, key, value)
	{
		if (has_name(m->keep, key))
			json_object_set(part, key, value);
	}
	v1_answer_json(x, m->status ? m->status : 200, part);
}

int v1_wake(struct httpd_exchange *x, const json_t *params, struct cordon_error **reterr)
{
	const char *session = json_string_value(json_object_get(params, "session"));
	bool is_restored = false;

	int r = session ? parking_wake(httpd_tenant(x), session, &is_restored, reterr) : 0;
	if (is_restored)
		httpd_add_header(x, "Cordon-Notice", PARKING_NOTICE);
	return r;
}

/* The start of a session is a span of its own. */
static int call(struct httpd_exchange *x, const char *method, json_t *params, struct buf *ret,
		struct cordon_error **reterr)
{
	struct tenant *t = httpd_tenant(x);
	struct span span = { 0 };

	if (str_eq(method, "session.open"))
		span_begin(&span, &(struct span_options){ .tracer = t->tracer,
							  .parent = httpd_trace(x),
							  .name = "session.open" });
	const char *guest = json_string_value(json_object_get(params, "guest"));
	int r = tenant_call(t, method, params, NULL, ret, reterr);
	span_set_outcome(&span, guest ? guest : "python",
			 r < 0 ? cordon_code_name((enum cordon_code) - r) : "success", -1);
	span_end(&span);
	return r;
}

void v1_call(struct httpd_exchange *x, void *server)
{
	const struct v1_method *m = httpd_route_of(x)->detail;
	struct tenant *t = httpd_tenant(x);
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *params = NULL;
	cleanup_buf struct buf result = { 0 };

	(void)server;
	buf_init(&result, SIZE_MAX / 2);
	int r = v1_read_params(x, m, &params, &e);
	if (r == 0 && m->check)
		r = m->check(t, params, &e);
	if (r == 0 && !str_eq(m->method, "session.close"))
		r = v1_wake(x, params, &e);
	if (r == 0)
		r = call(x, m->method, params, &result, &e);
	if (r < 0)
		problem_answer(x, e);
	else if (m->status == 204)
		httpd_answer(x, 204, NULL, NULL, 0);
	else if (m->keep)
		answer_part(x, m, &result);
	else
		httpd_answer(x, m->status ? m->status : 200, "application/json", result.data,
			     result.len);
}
