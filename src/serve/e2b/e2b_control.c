/* serve/e2b/e2b_control.c - the control plane: makes, finds, prolongs, pauses and ends sandboxes. A
 * sandbox of another key is as unknown as one that never was. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "policy/policy.h"
#include "serve/e2b/e2b_state.h"
#include "session/session.h"

enum { FORKS_MAX = 16, TIME_BYTES = 32 };

static json_t *time_json(int64_t ms)
{
	char text[TIME_BYTES + 8], date[TIME_BYTES];
	time_t s = (time_t)(ms / 1000);
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03dZ", date, (int)(ms % 1000));
	return json_string(text);
}

static void describe_resources(const struct e2b_sandbox *b, json_t *j)
{
	const struct policy *p = &b->session->policy;
	uint64_t percent = p->cpu_percent == POLICY_UNLIMITED ? 100 : p->cpu_percent;

	json_object_set_new(j, "cpuCount", json_integer((json_int_t)((percent + 99) / 100)));
	json_object_set_new(j, "memoryMB", json_integer((json_int_t)(p->memory_bytes >> 20)));
	json_object_set_new(j, "diskSizeMB", json_integer((json_int_t)(p->fs_bytes >> 20)));
}

/* As in a list. Quick. */
json_t *e2b_control_describe(struct e2b_sandbox *b)
{
	json_t *j = json_object();

	pthread_mutex_lock(&b->lock);
	json_object_set_new(j, "sandboxID", json_string(b->id));
	json_object_set_new(j, "templateID", json_string(b->template));
	json_object_set_new(j, "alias", json_string(b->template));
	json_object_set_new(j, "clientID", json_string("cordon"));
	json_object_set_new(j, "startedAt", time_json(b->started_ms));
	json_object_set_new(j, "endAt", time_json(b->end_ms));
	json_object_set_new(j, "state", json_string(b->state == E2B_PAUSED ? "paused" : "running"));
	json_object_set_new(j, "envdVersion", json_string(E2B_ENVD_VERSION));
	json_object_set_new(j, "metadata", json_deep_copy(b->metadata));
	describe_resources(b, j);
	pthread_mutex_unlock(&b->lock);
	return j;
}

/* As the answer of create and connect, with the tokens. */
static json_t *admission(struct httpd_exchange *x, struct e2b_sandbox *b)
{
	char token[E2B_TOKEN_BYTES];
	json_t *j = json_object();

	json_object_set_new(j, "sandboxID", json_string(b->id));
	json_object_set_new(j, "templateID", json_string(b->template));
	json_object_set_new(j, "alias", json_string(b->template));
	json_object_set_new(j, "clientID", json_string("cordon"));
	json_object_set_new(j, "envdVersion", json_string(E2B_ENVD_VERSION));
	e2b_sandbox_token(b->e2b, b->id, E2B_TOKEN_ENVD, token);
	json_object_set_new(j, "envdAccessToken", json_string(token));
	e2b_sandbox_token(b->e2b, b->id, E2B_TOKEN_TRAFFIC, token);
	json_object_set_new(j, "trafficAccessToken", json_string(token));
	json_object_set_new(j, "domain", e2b_ports_domain(x));
	return j;
}

static struct e2b_sandbox *find(struct e2b *e, struct httpd_exchange *x)
{
	const char *id = httpd_param(x, "sandbox");
	struct e2b_sandbox *b = id ? e2b_sandbox_get(e, id, httpd_principal(x)) : NULL;

	if (!b) {
		char text[160];

		snprintf(text, sizeof(text), "there is no sandbox '%.64s'", id ? id : "");
		e2b_fail(x, 404, text);
	}
	return b;
}

/* Seconds, or what the server chooses if there are none. */
static int read_timeout(const json_t *j, uint64_t *ret, struct cordon_error **reterr)
{
	uint64_t s = E2B_TIMEOUT_S;
	int r = json_is_null(json_object_get(j, "timeout"))
			? 0
			: json_get_uint(j, "", "timeout", &s, reterr);

	if (r == 0 && s > E2B_TIMEOUT_MAX_S)
		r = err_set(reterr, CORDON_INVALID, "timeout must be at most %d seconds",
			    E2B_TIMEOUT_MAX_S);
	if (r == 0)
		*ret = s;
	return r;
}

static int read_texts(const json_t *j, const char *key, const json_t **ret,
		      struct cordon_error **reterr)
{
	json_t *o = json_object_get(j, key), *value;
	const char *name;

	if (!o || json_is_null(o))
		return 0;
	if (!json_is_object(o) || json_object_size(o) > E2B_METADATA_MAX)
		return err_set(reterr, CORDON_INVALID, "%s must be an object with at most %d texts",
			       key, E2B_METADATA_MAX);
	json_object_foreach(o, name, value)
	{
		if (!json_is_string(value))
			return err_set(reterr, CORDON_INVALID, "%s: '%.64s' must be a string", key,
				       name);
	}
	*ret = o;
	return 0;
}

/* What a client may ask for and this server does not have. */
static int refuse(const json_t *j, struct cordon_error **reterr)
{
	static const struct {
		const char *key, *why;
	} table[] = {
		{ "volumeMounts", "there are no volumes: write the files into the sandbox" },
		{ "mcp", "there is no MCP gateway in the sandbox: use /mcp of this server" },
		{ "iam", "there are no identity tokens" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		const json_t *v = json_object_get(j, table[i].key);

		if (v && !json_is_null(v) && json_array_size(v) + json_object_size(v) > 0)
			return err_set(reterr, CORDON_UNSUPPORTED, "%s: %s", table[i].key,
				       table[i].why);
	}
	const json_t *n = json_object_get(j, "network");
	if (json_array_size(json_object_get(n, "allowOut")) > 0 ||
	    json_object_size(json_object_get(n, "rules")) > 0 ||
	    json_is_object(json_object_get(n, "egressProxy")))
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "network: a client cannot open the network; name a template whose "
			       "policy file has network.allow");
	return 0;
}

static int read_create(const json_t *j, struct e2b_sandbox_options *o, struct cordon_error **reterr)
{
	const json_t *resume = json_object_get(j, "autoResume");
	int r = json_get_string(j, "", "templateID", &o->template, reterr);

	if (r == 0 && !o->template)
		r = err_set(reterr, CORDON_INVALID, "templateID is missing");
	if (r == 0)
		r = read_timeout(j, &o->timeout_s, reterr);
	if (r == 0)
		r = read_texts(j, "metadata", &o->metadata, reterr);
	if (r == 0)
		r = read_texts(j, "envVars", &o->env, reterr);
	if (r == 0)
		r = refuse(j, reterr);
	o->is_public =
		json_is_true(json_object_get(json_object_get(j, "network"), "allowPublicTraffic"));
	o->auto_pause = json_is_true(json_object_get(j, "autoPause"));
	o->keeps_memory = !json_is_false(json_object_get(j, "autoPauseMemory"));
	o->auto_resume = json_is_true(resume) || json_is_true(json_object_get(resume, "enabled"));
	return r;
}

void e2b_control_create(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *j = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = NULL;
	struct e2b_sandbox_options o = { 0 };
	int r = e2b_read_json(x, &j, &e);

	if (r == 0)
		r = read_create(j, &o, &e);
	if (r == 0)
		r = e2b_sandbox_new(arg, x, &o, &b, &e);
	if (r < 0 || !b)
		e2b_fail_error(x, e);
	else
		e2b_answer_json(x, 201, admission(x, b));
}

static bool opens_network(const struct policy *p)
{
	return p->network.allow_count > 0 || p->network.block_count > 0;
}

void e2b_control_info(struct httpd_exchange *x, void *arg)
{
	cleanup_e2b_sandbox struct e2b_sandbox *b = find(arg, x);

	if (!b)
		return;
	json_t *j = e2b_control_describe(b), *life = json_object(), *network = json_object();
	json_object_set_new(life, "onTimeout", json_string(b->auto_pause ? "pause" : "kill"));
	json_object_set_new(life, "autoResume", json_boolean(b->auto_resume));
	json_object_set_new(j, "lifecycle", life);
	json_object_set_new(j, "allowInternetAccess",
			    json_boolean(opens_network(&b->session->policy)));
	json_object_set_new(network, "allowPublicTraffic", json_boolean(b->is_public));
	json_object_set_new(j, "network", network);
	json_object_set_new(j, "domain", e2b_ports_domain(x));
	e2b_answer_json(x, 200, j);
}

void e2b_control_kill(struct httpd_exchange *x, void *arg)
{
	struct e2b_sandbox *b = find(arg, x);

	if (!b)
		return;
	if (e2b_sandbox_kill(b))
		httpd_answer(x, 204, NULL, NULL, 0);
	else
		e2b_fail(x, 404, "there is no such sandbox any more");
}

/* 200: it ran; 201: it was resumed. */
void e2b_control_connect(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *j = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = find(arg, x);
	uint64_t timeout_s = 0;

	if (!b)
		return;
	int r = e2b_read_json(x, &j, &e);
	if (r == 0)
		r = read_timeout(j, &timeout_s, &e);
	bool was_paused = e2b_sandbox_state(b) == E2B_PAUSED;
	if (r == 0 && was_paused)
		r = e2b_sandbox_resume(b, json_is_false(json_object_get(j, "memory")), &e);
	if (r < 0) {
		e2b_fail_error(x, e);
		return;
	}
	e2b_sandbox_set_timeout(b, timeout_s, !was_paused);
	e2b_answer_json(x, was_paused ? 201 : 200, admission(x, b));
}

void e2b_control_timeout(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *j = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = find(arg, x);
	uint64_t timeout_s = 0;

	if (!b)
		return;
	int r = e2b_read_json(x, &j, &e);
	if (r == 0 && !json_is_integer(json_object_get(j, "timeout")))
		r = err_set(&e, CORDON_INVALID, "timeout is missing");
	if (r == 0)
		r = read_timeout(j, &timeout_s, &e);
	if (r < 0) {
		e2b_fail_error(x, e);
		return;
	}
	e2b_sandbox_set_timeout(b, timeout_s, false);
	httpd_answer(x, 204, NULL, NULL, 0);
}

void e2b_control_refresh(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *j = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = find(arg, x);
	uint64_t s = E2B_TIMEOUT_S;

	if (!b)
		return;
	int r = e2b_read_json(x, &j, &e);
	if (r == 0)
		r = json_get_uint(j, "", "duration", &s, &e);
	if (r < 0) {
		e2b_fail_error(x, e);
		return;
	}
	e2b_sandbox_set_timeout(b, s, true);
	httpd_answer(x, 204, NULL, NULL, 0);
}

void e2b_control_pause(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *j = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = find(arg, x);

	if (!b)
		return;
	int r = e2b_read_json(x, &j, &e);
	if (r == 0)
		r = e2b_sandbox_pause(b, !json_is_false(json_object_get(j, "memory")), &e);
	if (r < 0)
		e2b_fail_error(x, e);
	else
		httpd_answer(x, 204, NULL, NULL, 0);
}

/* One copy: {"sandbox"} or {"error"}. */
static json_t *fork_one(struct httpd_exchange *x, struct e2b_sandbox *b, uint64_t timeout_s)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *copy = NULL;
	json_t *j = json_object(), *error;
	int r = e2b_sandbox_fork(b, timeout_s, &copy, &e);

	if (r == 0 && copy) {
		json_object_set_new(j, "sandbox", admission(x, copy));
		return j;
	}
	error = json_object();
	json_object_set_new(error, "code", json_integer(r == -CORDON_LIMIT ? 429 : 409));
	json_object_set_new(error, "message", json_string(cordon_error_message(e)));
	json_object_set_new(j, "error", error);
	return j;
}

void e2b_control_fork(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *j = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = find(arg, x);
	uint64_t timeout_s = 0, count = 1;

	if (!b)
		return;
	int r = e2b_read_json(x, &j, &e);
	if (r == 0)
		r = read_timeout(j, &timeout_s, &e);
	if (r == 0)
		r = json_get_uint(j, "", "count", &count, &e);
	if (r == 0 && (count < 1 || count > FORKS_MAX))
		r = err_set(&e, CORDON_INVALID, "count must be 1 to %d", FORKS_MAX);
	if (r == 0 && e2b_sandbox_state(b) != E2B_RUNNING)
		r = err_set(&e, CORDON_STATE, "the sandbox is paused");
	if (r < 0) {
		e2b_fail_error(x, e);
		return;
	}
	json_t *all = json_array();
	for (uint64_t i = 0; i < count; i++)
		json_array_append_new(all, fork_one(x, b, timeout_s));
	e2b_answer_json(x, 201, all);
}
