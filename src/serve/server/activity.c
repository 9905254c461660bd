/* serve/server/activity.c - see activity.h. */
#include "serve/server/activity.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/language_name.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "serve/http/sse.h"
#include "serve/rpc/session_quota.h"

enum { ID_HEX = 24, PENDING_MAX = 4096 };

/* A question that waits for the client. */
struct pending {
	char id[64];
	char session[CLIENT_SESSION_ID_BYTES];
	char execution[ACTIVITY_ID_BYTES]; /* "": none */
	bool is_approval;
	json_t *params;
	struct span span; /* until it is answered, or nobody waits for it any more */
	struct pending *next;
};

static int64_t wall_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Called with the lock held: drops the oldest that has ended, if there are too many. */
static void trim(struct tenant *t)
{
	struct activity **oldest = NULL;

	if (t->kept <= ACTIVITIES_KEPT)
		return;
	for (struct activity **p = &t->activities; *p; p = &(*p)->next)
		if (!(*p)->is_running)
			oldest = p;
	if (oldest) {
		struct activity *a = *oldest;
		*oldest = a->next;
		free(a);
		t->kept--;
	}
}

static void set_language(struct activity *a, const char *named)
{
	struct language_name known = { 0 };

	if (!named)
		return;
	(void)language_name_find(named, &known);
	(void)str_copy(a->language, sizeof(a->language), known.guest ? known.guest : "other");
}

int activity_begin(struct tenant *t, const struct activity_options *o, struct activity **ret,
		   struct cordon_error **reterr)
{
	int r = session_quota_begin(&t->quota, reterr);
	struct activity *a = r == 0 ? mem_alloc(sizeof(*a)) : NULL;

	if (r < 0)
		return r;
	if (!a) {
		session_quota_end(&t->quota);
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	memcpy(a->id, "exec_", 5);
	random_hex(a->id + 5, ID_HEX);
	(void)str_copy(a->session, sizeof(a->session), o->session);
	set_language(a, o->language);
	a->begun_ms = wall_ms();
	a->begun_ns = clock_now_ns();
	a->is_running = true;
	a->stream = o->stream ? httpd_ref(o->stream) : NULL;
	span_begin(&a->span, &(struct span_options){ .tracer = t->tracer,
						     .parent = o->parent,
						     .link = o->link,
						     .name = "execute" });
	pthread_mutex_lock(&t->lock);
	a->next = t->activities;
	t->activities = a;
	t->running++;
	pthread_mutex_unlock(&t->lock);
	*ret = a;
	return 0;
}

/* After it was taken from the list. */
static void pending_free(struct pending *p, const char *outcome)
{
	span_set_text(&p->span, "cordon.outcome", outcome);
	span_end(&p->span);
	json_decref(p->params);
	free(p);
}

/* Called with the lock held. */
static struct pending *take(struct tenant *t, const char *session, const char *id,
			    const char *execution)
{
	for (struct pending **p = &t->pending; *p; p = &(*p)->next)
		if ((!session || str_eq((*p)->session, session)) && (!id || str_eq((*p)->id, id)) &&
		    (!execution || str_eq((*p)->execution, execution))) {
			struct pending *found = *p;
			*p = found->next;
			return found;
		}
	return NULL;
}

bool activity_is_running(struct tenant *t, const char *id)
{
	const struct activity *a;

	pthread_mutex_lock(&t->lock);
	for (a = t->activities; a && !str_eq(a->id, id); a = a->next)
		;
	bool is = a && a->is_running;
	pthread_mutex_unlock(&t->lock);
	return is;
}

void activity_end(struct tenant *t, struct activity *a, const char *outcome, const char *result)
{
	struct pending *p;

	/* Only this thread changes the span after its begin. */
	span_set_outcome(&a->span, a->language, outcome, a->span.tracer ? span_cpu_ms(result) : -1);
	struct span span = a->span;
	pthread_mutex_lock(&t->lock);
	struct httpd_exchange *stream = TAKE_PTR(a->stream);
	a->is_running = false;
	a->ms = (double)(clock_now_ns() - a->begun_ns) / 1e6;
	(void)str_copy(a->outcome, sizeof(a->outcome), outcome);
	t->running--;
	t->kept++;
	session_quota_end(&t->quota);
	while ((p = take(t, NULL, NULL, a->id)))
		pending_free(p, "abandoned");
	if (t->metrics)
		metrics_count_execution(t->metrics, a->language, outcome,
					clock_now_ns() - a->begun_ns);
	trim(t);
	pthread_mutex_unlock(&t->lock);
	span_end(&span);
	if (stream)
		httpd_put(stream);
}

void activity_hurry(struct tenant *t, const char *session, const char *id)
{
	pthread_mutex_lock(&t->lock);
	for (struct activity *a = t->activities; a; a = a->next)
		if (a->is_running && a->stream && (!session || str_eq(a->session, session)) &&
		    (!id || str_eq(a->id, id)))
			httpd_stream_hurry(a->stream);
	pthread_mutex_unlock(&t->lock);
}

const char *activity_outcome(const char *result, const struct cordon_error *e, char *ret,
			     size_t size)
{
	static const char key[] = "\"error_kind\": \"";
	const char *kind = result ? strstr(result, key) : NULL;

	if (!result)
		return cordon_code_name(e ? cordon_error_code(e) : CORDON_NOMEM);
	if (!kind || str_starts(result, "{\"success\": true"))
		return "success";
	kind += sizeof(key) - 1;
	size_t n = strcspn(kind, "\"");
	if (n >= size)
		return "error";
	memcpy(ret, kind, n);
	ret[n] = '\0';
	return ret;
}

static json_t *describe(const struct activity *a)
{
	json_t *j = json_object();

	json_object_set_new(j, "execution", json_string(a->id));
	json_object_set_new(j, "session", json_string(a->session));
	if (a->language[0])
		json_object_set_new(j, "language", json_string(a->language));
	json_object_set_new(j, "state", json_string(a->is_running ? "running" : "ended"));
	json_object_set_new(j, "begun_ms", json_integer(a->begun_ms));
	json_object_set_new(
		j, "ms",
		json_real(a->is_running ? (double)(clock_now_ns() - a->begun_ns) / 1e6 : a->ms));
	if (!a->is_running)
		json_object_set_new(j, "outcome", json_string(a->outcome));
	return j;
}

json_t *activity_list(struct tenant *t, const char *session)
{
	json_t *list = json_array();

	pthread_mutex_lock(&t->lock);
	for (const struct activity *a = t->activities; a; a = a->next)
		if (!session || str_eq(a->session, session))
			json_array_append_new(list, describe(a));
	pthread_mutex_unlock(&t->lock);
	return list;
}

json_t *activity_find(struct tenant *t, const char *session, const char *id)
{
	json_t *found = NULL;

	pthread_mutex_lock(&t->lock);
	for (const struct activity *a = t->activities; a && !found; a = a->next)
		if (str_eq(a->id, id) && str_eq(a->session, session))
			found = describe(a);
	pthread_mutex_unlock(&t->lock);
	return found;
}

json_t *activity_pending(struct tenant *t, const char *session)
{
	json_t *calls = json_array(), *approvals = json_array();

	pthread_mutex_lock(&t->lock);
	for (const struct pending *p = t->pending; p; p = p->next)
		if (!session || str_eq(p->session, session))
			json_array_append_new(p->is_approval ? approvals : calls,
					      json_deep_copy(p->params));
	pthread_mutex_unlock(&t->lock);
	return json_pack("{s:o,s:o}", "tool_calls", calls, "approvals", approvals);
}

bool activity_take_pending(struct tenant *t, const char *session, const char *id)
{
	pthread_mutex_lock(&t->lock);
	struct pending *p = take(t, session, id, NULL);
	pthread_mutex_unlock(&t->lock);
	if (!p)
		return false;
	pending_free(p, "answered");
	return true;
}

/* The stream of a running execution, with a reference; NULL: none. */
static struct httpd_exchange *stream_of(struct tenant *t, const char *id)
{
	struct httpd_exchange *x = NULL;

	pthread_mutex_lock(&t->lock);
	for (struct activity *a = t->activities; a && id && !x; a = a->next)
		if (a->is_running && a->stream && str_eq(a->id, id))
			x = httpd_ref(a->stream);
	pthread_mutex_unlock(&t->lock);
	return x;
}

/* Called with the lock held. */
static void begin_span(struct tenant *t, struct pending *p)
{
	const struct trace_context *parent = NULL;

	for (const struct activity *a = t->activities; a && !parent; a = a->next)
		if (a->is_running && str_eq(a->id, p->execution))
			parent = &a->span.self;
	span_begin(&p->span,
		   &(struct span_options){ .tracer = parent ? t->tracer : NULL,
					   .parent = parent,
					   .name = p->is_approval ? "approval" : "tool_call" });
}

static int add_pending(struct tenant *t, json_t *params, const char *id, const char *session,
		       const char *execution, bool is_approval)
{
	struct pending *p = mem_alloc(sizeof(*p));
	unsigned count = 0;

	if (!p)
		return -CORDON_NOMEM;
	(void)str_copy(p->id, sizeof(p->id), id);
	(void)str_copy(p->session, sizeof(p->session), session);
	(void)str_copy(p->execution, sizeof(p->execution), execution ? execution : "");
	p->is_approval = is_approval;
	p->params = json_deep_copy(params); /* another thread may free it at any time */
	pthread_mutex_lock(&t->lock);
	for (const struct pending *other = t->pending; other; other = other->next)
		count++;
	if (count < PENDING_MAX) {
		begin_span(t, p);
		p->next = t->pending;
		t->pending = p;
	}
	pthread_mutex_unlock(&t->lock);
	if (count < PENDING_MAX)
		return 0;
	pending_free(p, "abandoned");
	return -CORDON_LIMIT;
}

/* A question of running code: listed, and told to the stream of its execution. */
static bool ask(struct tenant *t, const struct sink_message *m, bool is_approval)
{
	cleanup_json json_t *params = NULL;

	if (json_parse(m->params, m->len, 0, &params, NULL) < 0)
		return false;
	const char *execution = json_string_value(json_object_get(params, "request_id"));
	if (execution)
		json_object_set_new(params, "execution", json_string(execution));
	json_object_del(params, "request_id");
	if (m->id)
		json_object_set_new(params, "id", json_string(m->id));
	execution = json_string_value(json_object_get(params, "execution"));
	const char *id = json_string_value(json_object_get(params, "id"));
	if (!id || add_pending(t, params, id, m->session, execution, is_approval) < 0)
		return false;
	if (t->metrics)
		atomic_fetch_add(is_approval ? &t->metrics->approvals : &t->metrics->tool_calls, 1);
	struct httpd_exchange *x = stream_of(t, execution);
	size_t len = 0;
	cleanup_free char *text = x ? json_text(params, &len) : NULL;
	if (text)
		(void)sse_send(x, is_approval ? "approval" : "tool_call", text, len);
	if (x)
		httpd_put(x);
	return true;
}

bool activity_send(const struct sink_message *m, void *tenant)
{
	if (str_eq(m->method, "tool.call"))
		return ask(tenant, m, false);
	if (str_eq(m->method, "approval"))
		return ask(tenant, m, true);
	return true;
}

void activity_output(const struct sink_output *o, void *tenant)
{
	struct httpd_exchange *x = stream_of(tenant, json_string_value(o->request));

	if (!x)
		return;
	(void)sse_send_text(x, o->stream == 2 ? "stderr" : "stdout", o->bytes, o->len);
	httpd_put(x);
}
