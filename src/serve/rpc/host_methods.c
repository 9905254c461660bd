/* serve/rpc/host_methods.c - methods without a session: versions, policies, checks, the machine. */
#include <cordon/cordon.h>
#include <string.h>

#include "base/str.h"
#include "serve/rpc/open_params.h"
#include "serve/rpc/target.h"

static int add_json(struct buf *ret, json_t *j, struct cordon_error **reterr)
{
	cleanup_json json_t *owned = j;
	cleanup_free char *text = owned ? json_text(owned, NULL) : NULL;

	return text ? buf_add_str(ret, text) : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static void add_name(const struct rpc_method *m, void *arg)
{
	json_array_append_new(arg, json_string(m->name));
}

static json_t *version_json(void)
{
	json_t *j = json_object();

	json_object_set_new(j, "name", json_string("cordon"));
	json_object_set_new(j, "version", json_string(cordon_version()));
	json_object_set_new(j, "protocol", json_integer(RPC_PROTOCOL));
	return j;
}

static int version(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	(void)q;
	return add_json(ret, version_json(), reterr);
}

static int initialize(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	uint64_t protocol = RPC_PROTOCOL;
	json_t *j = NULL, *methods = NULL, *limits = NULL;
	int r = target_uint(q, "protocol", &protocol, reterr);

	if (r < 0)
		return r;
	if (protocol != RPC_PROTOCOL)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "protocol %llu is not supported; supported: %d",
			       (unsigned long long)protocol, RPC_PROTOCOL);
	j = version_json();
	methods = json_array();
	limits = json_object();
	rpc_visit_methods(add_name, methods);
	json_object_set_new(j, "methods", methods);
	json_object_set_new(limits, "line_bytes", json_integer(RPC_LINE_MAX));
	json_object_set_new(limits, "requests", json_integer(RPC_REQUESTS_MAX));
	json_object_set_new(limits, "sessions", json_integer(CLIENT_SESSION_SESSIONS_MAX));
	json_object_set_new(limits, "forks", json_integer(CLIENT_SESSION_FORKS_MAX));
	json_object_set_new(limits, "pools", json_integer(CLIENT_SESSION_POOLS_MAX));
	json_object_set_new(j, "limits", limits);
	return add_json(ret, j, reterr);
}

static int show_policy(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_policy *p = NULL;
	int r = open_params_policy(q->rpc, q->params, &p, reterr);

	if (r < 0)
		return r;
	/* cordon_policy_json writes many lines for people; here it must be one line. */
	cleanup_free char *text = cordon_policy_json(p);
	json_t *policy = NULL, *j = json_object();
	cordon_policy_free(p);
	r = text ? json_parse(text, strlen(text), 0, &policy, reterr)
		 : err_set(reterr, CORDON_NOMEM, "out of memory");
	json_object_set_new(j, "policy", policy);
	if (r == 0)
		return add_json(ret, j, reterr);
	json_decref(j);
	return r;
}

/* An invalid policy is a normal answer here, not an error. */
static int check_policy(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_policy *p = NULL;
	json_t *j = json_object();
	int r = open_params_policy(q->rpc, q->params, &p, &e);

	if (r == 0)
		r = cordon_policy_check(p, &e);
	json_object_set_new(j, "valid", json_boolean(r == 0));
	json_object_set_new(j, "error",
			    r == 0 ? json_null() : json_string(cordon_error_message(e)));
	cleanup_free char *text = r == 0 ? cordon_policy_explain(p) : NULL;
	if (text)
		json_object_set_new(j, "explanation", json_string(text));
	cordon_policy_free(p);
	return add_json(ret, j, reterr);
}

/* a and b: each like the parameters of policy.show. */
static int diff_policies(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_policy *a = NULL, *b = NULL;
	json_t *ja = NULL, *jb = NULL;
	int r = q->params ? json_get_object(q->params, "/params", "a", &ja, reterr) : 0;

	if (r == 0 && q->params)
		r = json_get_object(q->params, "/params", "b", &jb, reterr);
	if (r == 0)
		r = open_params_policy(q->rpc, ja, &a, reterr);
	if (r == 0)
		r = open_params_policy(q->rpc, jb, &b, reterr);
	cleanup_free char *text = r == 0 ? cordon_policy_diff(a, b) : NULL;
	cordon_policy_free(a);
	cordon_policy_free(b);
	if (r < 0)
		return r;
	json_t *j = json_object();
	json_object_set_new(j, "diff", text ? json_string(text) : NULL);
	return add_json(ret, j, reterr);
}

static int validate(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *guest = "python", *code = NULL;
	char *json = NULL;
	int r = target_string(q, "guest", &guest, reterr);

	if (r == 0)
		r = target_need(q, "code", &code, reterr);
	if (r == 0)
		r = cordon_validate(guest, code,
				    json_string_length(json_object_get(q->params, "code")), &json,
				    reterr);
	if (r == 0)
		r = buf_add_str(ret, json);
	free(json);
	return r;
}

static int sanitize(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *message = NULL;
	uint64_t max = 0;
	int r = target_need(q, "message", &message, reterr);

	if (r == 0)
		r = target_uint(q, "max", &max, reterr);
	if (r < 0)
		return r;
	cleanup_free char *text = cordon_sanitize(message, (size_t)max);
	json_t *j = json_object();
	json_object_set_new(j, "message", text ? json_string_lossy(text, strlen(text)) : NULL);
	return add_json(ret, j, reterr);
}

static int verify_audit(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *path = NULL, *prev = NULL;
	struct cordon_audit_report report = { 0 };
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = target_string(q, "prev", &prev, reterr);
	if (r == 0)
		r = cordon_audit_verify(path, prev, &report, reterr);
	if (r < 0)
		return r;
	json_t *j = json_object();
	json_object_set_new(j, "whole", json_boolean(report.is_whole));
	json_object_set_new(j, "lines", json_integer((json_int_t)report.lines));
	json_object_set_new(j, "broken_line",
			    report.broken_line ? json_integer((json_int_t)report.broken_line)
					       : json_null());
	json_object_set_new(j, "reason", report.reason ? json_string(report.reason) : json_null());
	json_object_set_new(j, "lost", json_integer((json_int_t)report.lost));
	json_object_set_new(j, "torn_bytes", json_integer((json_int_t)report.torn_bytes));
	json_object_set_new(j, "head", json_string(report.head));
	return add_json(ret, j, reterr);
}

/* Nothing more will come: what was asked before is answered. */
static int end(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	(void)reterr;
	q->rpc->is_at_end = true;
	return buf_add_str(ret, "{\"ok\":true}");
}

static int doctor(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	char *json = NULL;

	(void)q;
	int r = cordon_doctor(&json, reterr);
	if (r == 0)
		r = buf_add_str(ret, json);
	free(json);
	return r;
}

const struct rpc_method rpc_machine_methods[] = {
	{ "end", end, RPC_LAST, "" },
	{ "initialize", initialize, 0, "protocol client" },
	{ "version", version, 0, "" },
	{ "policy.show", show_policy, 0, "level policy set" },
	{ "policy.check", check_policy, 0, "level policy set" },
	{ "policy.diff", diff_policies, 0, "a b" },
	{ "validate", validate, RPC_SLOW, "code guest" },
	{ "sanitize", sanitize, 0, "message max" },
	{ "audit.verify", verify_audit, RPC_SLOW, "path prev" },
	{ "doctor", doctor, RPC_SLOW, "" },
	{ 0 },
};
