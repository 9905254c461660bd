/* serve/e2b/e2b_list.c - lists the sandboxes of a key: by state, metadata, template and time,
 * newest first, in pages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "serve/e2b/e2b_state.h"
#include "serve/http/route.h"

enum { LIMIT = 100 };

struct filter {
	const char *owner, *template, *after; /* after: the id that the last page ended with */
	json_t *metadata;                     /* texts by name, or NULL */
	bool running, paused, oldest_first;
	int64_t started_after_ms; /* 0: any */
	uint64_t limit;
	json_t *all; /* of what matches, newest first */
};

/* Decodes "a%20b" or "a+b"; NULL: invalid. */
static char *form_decode(const char *text, size_t len)
{
	cleanup_free char *plain = str_ndup(text, len);

	for (char *c = plain; c && *c; c++)
		if (*c == '+')
			*c = ' ';
	return plain ? route_decode(plain, strlen(plain)) : NULL;
}

/* The clients encode names and values once more than a form does. */
static char *twice_decoded(const char *text, size_t len)
{
	cleanup_free char *once = form_decode(text, len);

	return once ? route_decode(once, strlen(once)) : NULL;
}

/* "user%3Dabc&app=prod" */
static int read_metadata(const char *text, json_t **ret, struct cordon_error **reterr)
{
	cleanup_json json_t *j = json_object();

	while (text && *text) {
		size_t len = strcspn(text, "&"), name_len = strcspn(text, "=&");
		bool has_value = name_len < len;
		cleanup_free char *name = twice_decoded(text, name_len);
		cleanup_free char *value =
			has_value ? twice_decoded(text + name_len + 1, len - name_len - 1)
				  : str_dup("");

		if (!name || !value || json_object_size(j) >= E2B_METADATA_MAX)
			return err_set(reterr, CORDON_INVALID, "metadata must be name=value&...");
		json_object_set_new(j, name, json_string(value));
		text += len + (text[len] == '&');
	}
	*ret = TAKE_PTR(j);
	return 0;
}

/* "2026-01-02T03:04:05.678Z" */
static int read_time(const char *text, int64_t *ret, struct cordon_error **reterr)
{
	struct tm tm = { 0 };
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

	if (!text)
		return 0;
	if (!rest)
		return err_set(reterr, CORDON_INVALID, "startedAfter must be a time (RFC 3339)");
	*ret = (int64_t)timegm(&tm) * 1000;
	if (*rest == '.')
		*ret += (int64_t)(strtod(rest, NULL) * 1000);
	return 0;
}

static int read_limit(const char *text, uint64_t *ret, struct cordon_error **reterr)
{
	char *end = NULL;
	long n = text ? strtol(text, &end, 10) : LIMIT;

	if (text && (*end || n < 1 || n > LIMIT))
		return err_set(reterr, CORDON_INVALID, "limit must be 1 to %d", LIMIT);
	*ret = (uint64_t)n;
	return 0;
}

static int read_filter(struct httpd_exchange *x, struct filter *f, struct cordon_error **reterr)
{
	const char *state = httpd_query(x, "state"), *order = httpd_query(x, "order");

	f->owner = httpd_principal(x);
	f->template = httpd_query(x, "template");
	f->after = httpd_query(x, "nextToken");
	f->running = !state || strstr(state, "running");
	f->paused = !state || strstr(state, "paused");
	f->oldest_first = str_eq(order, "asc");
	if (!f->running && !f->paused)
		return err_set(reterr, CORDON_INVALID, "state must be running or paused");
	if (order && !f->oldest_first && !str_eq(order, "desc"))
		return err_set(reterr, CORDON_INVALID, "order must be asc or desc");
	int r = read_metadata(httpd_query(x, "metadata"), &f->metadata, reterr);
	if (r == 0)
		r = read_time(httpd_query(x, "startedAfter"), &f->started_after_ms, reterr);
	return r < 0 ? r : read_limit(httpd_query(x, "limit"), &f->limit, reterr);
}

static bool has_metadata(const struct e2b_sandbox *b, const json_t *wanted)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)wanted, name, value)
	{
		if (!json_equal(json_object_get(b->metadata, name), value))
			return false;
	}
	return true;
}

static bool add_match(struct e2b_sandbox *b, void *arg)
{
	struct filter *f = arg;
	enum e2b_state state = e2b_sandbox_state(b);

	if (str_eq(b->owner, f->owner) && (state == E2B_PAUSED ? f->paused : f->running) &&
	    has_metadata(b, f->metadata) && (!f->template || str_eq(b->template, f->template)) &&
	    b->started_ms > f->started_after_ms)
		json_array_append_new(f->all, e2b_control_describe(b));
	return true;
}

static const char *id_of(const json_t *sandbox)
{
	return json_string_value(json_object_get(sandbox, "sandboxID"));
}

/* The page after the one that ended with f->after. *ret_more: there are others after it. */
static json_t *page(const struct filter *f, bool *ret_more)
{
	size_t n = json_array_size(f->all), i = 0;
	json_t *ret = json_array();

#define AT(k) json_array_get(f->all, f->oldest_first ? n - 1 - (k) : (k))
	if (f->after) {
		while (i < n && !str_eq(id_of(AT(i)), f->after))
			i++;
		i = i < n ? i + 1 : n;
	}
	for (; i < n && json_array_size(ret) < f->limit; i++)
		json_array_append(ret, AT(i));
#undef AT
	*ret_more = i < n;
	return ret;
}

void e2b_list_sandboxes(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	struct filter f = { .all = json_array() };
	bool is_more = false;
	int r = read_filter(x, &f, &e);

	if (r == 0) {
		e2b_sandbox_visit(arg, add_match, &f);
		json_t *j = page(&f, &is_more);
		if (is_more)
			httpd_add_header(x, "x-next-token",
					 id_of(json_array_get(j, json_array_size(j) - 1)));
		e2b_answer_json(x, 200, j);
	} else {
		e2b_fail_error(x, e);
	}
	json_decref(f.all);
	json_decref(f.metadata);
}

/* The first version of the API: those that run, without pages. */
void e2b_list_all(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	struct filter f = { .owner = httpd_principal(x), .running = true, .all = json_array() };
	int r = read_metadata(httpd_query(x, "metadata"), &f.metadata, &e);

	if (r == 0) {
		e2b_sandbox_visit(arg, add_match, &f);
		e2b_answer_json(x, 200, json_incref(f.all));
	} else {
		e2b_fail_error(x, e);
	}
	json_decref(f.all);
	json_decref(f.metadata);
}
