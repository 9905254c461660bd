/* net/host/fetch.c - see fetch.h. Sends the request to a gateway process and reads its answer.
 * Nothing from a server is parsed in this process. */
#include "net/host/fetch.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cordon/fetch.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"
#include "policy/public.h"
#include "wall/wall.h"

enum { RESPONSE_BYTES = 10 << 20, TIMEOUT_MS = 30000, PIECE = 65536 };

static json_t *headers_json(const char *const *headers, struct cordon_error **reterr)
{
	json_t *list = json_array();

	for (size_t i = 0; list && headers && headers[i]; i++) {
		if (i == FETCH_HEADERS_MAX ||
		    json_array_append_new(list, json_string(headers[i])) < 0) {
			(void)err_set(reterr, CORDON_INVALID, "fetch: header %zu cannot be sent",
				      i + 1);
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static int make_spec(const struct fetch_options *o, json_t **ret, struct cordon_error **reterr)
{
	cleanup_free char *body = o->body ? base64_encode(o->body, o->body_len, NULL) : NULL;
	unsigned redirects = o->no_redirects ? 0 : o->redirects ? o->redirects : FETCH_REDIRECTS;

	if (o->body && o->body_len > FETCH_BODY_MAX)
		return err_set(reterr, CORDON_LIMIT,
			       "fetch: the body has %zu bytes, %d are allowed", o->body_len,
			       FETCH_BODY_MAX);
	if (o->body && !body)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	json_t *headers = headers_json(o->headers, reterr);
	if (!headers)
		return -CORDON_INVALID;
	*ret = json_pack("{s:s, s:s, s:o, s:i, s:b}", "url", o->url ? o->url : "", "method",
			 o->method ? o->method : "GET", "headers", headers, "redirects",
			 (int)redirects, "https_only", o->https_only);
	if (!*ret)
		return err_set(reterr, CORDON_INVALID,
			       "fetch: the URL or the method is not valid text");
	if (body)
		json_object_set_new(*ret, "body", json_string(body));
	return 0;
}

static enum cordon_code code_of(const char *kind)
{
	static const struct {
		const char *kind;
		enum cordon_code code;
	} codes[] = { { "denied", CORDON_DENIED },
		      { "limit", CORDON_LIMIT },
		      { "timeout", CORDON_TIMEOUT },
		      { "invalid", CORDON_INVALID },
		      { "protocol", CORDON_PROTOCOL } };

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (str_eq(kind, codes[i].kind))
			return codes[i].code;
	return CORDON_OS;
}

static int finish(const json_t *m, struct fetch_result *ret, struct cordon_error **reterr)
{
	const char *kind = json_string_value(json_object_get(m, "error"));
	const char *url = json_string_value(json_object_get(m, "url"));
	const char *reason = json_string_value(json_object_get(m, "reason"));
	const char *remedy = json_string_value(json_object_get(m, "remedy"));
	json_t *headers = json_object_get(m, "headers");

	if (kind)
		return err_set(reterr, code_of(kind), "fetch %s: %s%s%s", url ? url : "",
			       reason ? reason : kind, remedy ? "; " : "", remedy ? remedy : "");
	if (json_integer_value(json_object_get(m, "bytes")) != (json_int_t)ret->body.len || !url)
		return err_set(reterr, CORDON_PROTOCOL, "fetch %s: the body is incomplete",
			       url ? url : "");
	ret->status = (unsigned)json_integer_value(json_object_get(m, "status"));
	ret->redirects = (unsigned)json_integer_value(json_object_get(m, "redirects"));
	ret->headers = json_incref(headers);
	ret->url = str_dup(url);
	return ret->url ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* Reads one piece of the body; *ret_end: it was the last. */
static int take_piece(int fd, struct buf *body, bool *ret_end, struct cordon_error **reterr)
{
	char piece[PIECE];
	ssize_t n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		*ret_end = true;
		return 0;
	}
	int r = buf_add(body, piece, (size_t)n);
	return r < 0 ? err_set(reterr, (enum cordon_code) - r, "fetch: the body cannot be kept")
		     : 0;
}

static int collect(struct gateway *g, int stop_fd, deadline_ns until, struct fetch_result *ret,
		   struct cordon_error **reterr)
{
	bool is_end = false;
	int r = 0;

	while (r == 0 && !(gateway_fetched(g) && is_end)) {
		struct pollfd p[3] = { { .fd = gateway_fd(g), .events = POLLIN },
				       { .fd = is_end ? -1 : gateway_relay_fd(g),
					 .events = POLLIN },
				       { .fd = stop_fd > 0 ? stop_fd : -1, .events = POLLIN } };
		int left = deadline_poll_ms(until);
		if (left == 0)
			return err_set(reterr, CORDON_TIMEOUT, "fetch: not done in time");
		if (poll(p, 3, left) < 0 && errno != EINTR)
			return err_errno(reterr, errno, "fetch");
		if (p[2].revents)
			return err_set(reterr, CORDON_CANCELLED, "fetch: stopped");
		if (p[1].revents)
			r = take_piece(gateway_relay_fd(g), &ret->body, &is_end, reterr);
		if (r == 0 && p[0].revents)
			r = gateway_dispatch(g, reterr);
	}
	return r < 0 ? r : finish(gateway_fetched(g), ret, reterr);
}

int fetch_run(const struct fetch_options *o, struct fetch_result *ret, struct cordon_error **reterr)
{
	cleanup_gateway struct gateway *g = NULL;
	cleanup_json json_t *spec = NULL;
	cleanup_fetch struct fetch_result result = { 0 };
	struct gateway_options options = o->gateway;
	const struct policy_network *net = &o->gateway.policy->network;
	uint64_t timeout_ms = o->timeout_ms ? o->timeout_ms : net->timeout_ms;
	deadline_ns until = deadline_after_ms(timeout_ms ? timeout_ms : TIMEOUT_MS);

	int r = make_spec(o, &spec, reterr);
	if (r < 0)
		return r;
	options.fetch = spec;
	if (!options.uid && wall_worker_uid() != geteuid()) /* a gateway never runs as root */
		options.uid = options.gid = wall_worker_uid();
	buf_init(&result.body, net->response_bytes ? net->response_bytes : RESPONSE_BYTES);
	r = gateway_start(&options, &g, reterr);
	if (r == 0)
		r = collect(g, o->stop_fd, until, &result, reterr);
	if (r < 0)
		return r;
	*ret = result;
	result = (struct fetch_result){ 0 };
	return 0;
}

void fetch_result_done(struct fetch_result *r)
{
	free(r->url);
	json_decref(r->headers);
	buf_done(&r->body);
	*r = (struct fetch_result){ 0 };
}

struct teller {
	void (*fn)(const char *json, void *arg);
	void *arg;
};

static void on_event(const json_t *event, void *arg)
{
	const struct teller *t = arg;
	cleanup_free char *text = t->fn ? json_text(event, NULL) : NULL;

	if (text)
		t->fn(text, t->arg);
}

int cordon_fetch(const struct cordon_fetch_options *o, struct cordon_fetch_result *ret,
		 struct cordon_error **reterr)
{
	static const struct policy nothing;
	struct teller teller = { o->event, o->arg };
	cleanup_fetch struct fetch_result r = { 0 };
	struct fetch_options f = { .gateway = { .policy = o->policy ? &o->policy->p : &nothing,
						.ca_file = o->ca_file,
						.event = on_event,
						.arg = &teller },
				   .url = o->url,
				   .method = o->method,
				   .headers = o->headers,
				   .body = o->body,
				   .body_len = o->body_len,
				   .no_redirects = o->no_redirects,
				   .https_only = o->https_only };

	int code = fetch_run(&f, &r, reterr);
	if (code < 0)
		return code;
	size_t len = r.body.len;
	cleanup_free char *headers = json_text(r.headers, NULL);
	cleanup_free char *body = buf_take(&r.body);
	if (!headers || !body)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*ret = (struct cordon_fetch_result){ .status = r.status,
					     .redirects = r.redirects,
					     .body_len = len };
	ret->url = TAKE_PTR(r.url);
	ret->headers = TAKE_PTR(headers);
	ret->body = TAKE_PTR(body);
	return 0;
}

void cordon_fetch_done(struct cordon_fetch_result *r)
{
	free(r->url);
	free(r->headers);
	free(r->body);
	*r = (struct cordon_fetch_result){ 0 };
}
