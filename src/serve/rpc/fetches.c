/* serve/rpc/fetches.c - the method `fetch`: one HTTP request of the host under a policy's rules. */
#include <cordon/cordon.h>
#include <string.h>

#include "base/base64.h"
#include "base/str.h"
#include "serve/rpc/open_params.h"
#include "serve/rpc/target.h"

/* Owns what the options point to. */
struct fetching {
	struct cordon_policy *policy;
	struct strlist headers;
	void *body;
};

static int read_headers(const struct request *q, struct strlist *ret, struct cordon_error **reterr)
{
	json_t *list = NULL, *header;
	size_t i;
	int r = json_get_array(q->params, "/params", "headers", &list, reterr);

	json_array_foreach(list, i, header)
	{
		const char *text = json_string_value(header);
		if (r == 0 && (!text || strlen(text) != json_string_length(header)))
			r = err_set(reterr, CORDON_INVALID,
				    "/params/headers/%zu must be a string \"Name: value\"", i);
		if (r == 0 && strlist_add(ret, text) < 0)
			r = err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return r;
}

static int read_body(const struct request *q, struct fetching *f, struct cordon_fetch_options *o,
		     struct cordon_error **reterr)
{
	const char *text = NULL, *coded = NULL;
	int r = target_string(q, "body", &text, reterr);

	if (r == 0)
		r = target_string(q, "body_base64", &coded, reterr);
	if (r == 0 && coded) {
		r = base64_decode(coded, strlen(coded), &f->body, &o->body_len, reterr);
		o->body = f->body;
	} else if (r == 0 && text) {
		o->body = text;
		o->body_len = strlen(text);
	}
	return r;
}

static int read_options(const struct request *q, struct fetching *f, struct cordon_fetch_options *o,
			struct cordon_error **reterr)
{
	bool follow = true;
	int r = target_need(q, "url", &o->url, reterr);

	if (r == 0)
		r = target_string(q, "method", &o->method, reterr);
	if (r == 0)
		r = target_string(q, "ca_file", &o->ca_file, reterr);
	if (r == 0)
		r = target_bool(q, "follow", &follow, reterr);
	if (r == 0)
		r = target_bool(q, "https_only", &o->https_only, reterr);
	if (r == 0)
		r = read_headers(q, &f->headers, reterr);
	if (r == 0)
		r = read_body(q, f, o, reterr);
	if (r == 0)
		r = open_params_policy(q->rpc, q->params, &f->policy, reterr);
	o->no_redirects = !follow;
	o->policy = f->policy;
	o->headers = f->headers.count ? (const char *const *)f->headers.items : NULL;
	return r;
}

static int add_result(struct buf *ret, const struct cordon_fetch_result *f,
		      struct cordon_error **reterr)
{
	cleanup_json json_t *url = json_string_lossy(f->url, strlen(f->url));
	cleanup_free char *url_text = url ? json_text(url, NULL) : NULL;
	cleanup_free char *data = base64_encode(f->body_len ? f->body : "", f->body_len, NULL);

	if (!url_text || !data)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return buf_printf(
		ret,
		"{\"status\":%u,\"redirects\":%u,\"url\":%s,\"headers\":%s,\"data\":\"%s\""
		",\"length\":%zu}",
		f->status, f->redirects, url_text, f->headers, data, f->body_len);
}

static int fetch(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_fetch_options options = { 0 };
	struct cordon_fetch_result result = { 0 };
	struct fetching f = { 0 };
	int r = read_options(q, &f, &options, reterr);

	if (r == 0)
		r = cordon_fetch(&options, &result, reterr);
	if (r == 0) {
		r = add_result(ret, &result, reterr);
		cordon_fetch_done(&result);
	}
	f.policy = cordon_policy_free(f.policy);
	strlist_done(&f.headers);
	free(f.body);
	return r;
}

const struct rpc_method rpc_fetch_methods[] = {
	{ "fetch", fetch, RPC_SLOW,
	  "url method headers body body_base64 follow https_only ca_file level policy set" },
	{ 0 },
};
