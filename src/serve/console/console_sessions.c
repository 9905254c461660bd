/* serve/console/console_sessions.c - what lives now, for the console: sessions with what they use,
 * and executions. An administrator sees those of all tenants.
 *
 * The page asks every few seconds. So this must not count as a use of a session, wake one up, or
 * wait for one: what is busy changing has no figures this time. */
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "guest/guest.h"
#include "serve/console/console.h"
#include "serve/http/problem.h"
#include "serve/server/activity.h"
#include "serve/server/server.h"
#include "serve/v1/v1.h"
#include "session/place.h"
#include "session/session.h"

/* One session, and its workspace with a reference, to be measured without a lock. */
struct row {
	json_t *about;
	struct workspace *ws;
	struct row *next;
};

struct visit {
	const struct tenant *tenant;
	struct row *rows;
	uint64_t now_ns;
};

static void set_number(json_t *j, const char *name, uint64_t n)
{
	json_object_set_new(j, name, json_integer((json_int_t)n));
}

static uint64_t ms_since(uint64_t now_ns, uint64_t then_ns)
{
	return then_ns && now_ns > then_ns ? (now_ns - then_ns) / 1000000 : 0;
}

/* Called with the session's lock held, so the box is not freed. */
static void add_usage(json_t *j, struct cordon_session *s)
{
	struct box *box = s->place ? place_box(s->place) : s->engine ? s->engine->box : NULL;
	struct box_counts counts = { 0 };

	if (s->is_closed || !box || box_has_ended(box))
		return;
	box_count(box, &counts);
	uint64_t looked = box_look(box).memory_peak_bytes;
	set_number(j, "memory_peak_bytes",
		   counts.memory_peak_bytes ? counts.memory_peak_bytes : looked);
	set_number(j, "cpu_ms", box_cpu_us(box, BOX_CPU_ALL) / 1000);
	set_number(j, "processes", box_processes(box, BOX_PROCESSES_NOW, UINT64_MAX));
}

static void add_policy(json_t *j, const struct policy *p)
{
	if (p->memory_bytes != POLICY_UNLIMITED)
		set_number(j, "memory_max_bytes", p->memory_bytes);
	json_object_set_new(j, "level", json_string(policy_level_name(p->level)));
}

/* A parked session has only what it was opened with. */
static const char *guest_of(const struct client_session *cs)
{
	const char *named = json_string_value(json_object_get(cs->open_params, "guest"));

	return cs->session ? guest_name(cs->session->kind) : named ? named : "python";
}

static void add_live(struct row *row, struct cordon_session *s, uint64_t now_ns)
{
	set_number(row->about, "age_ms", ms_since(now_ns, s->timeline.at[TIMELINE_OPEN]));
	add_policy(row->about, &s->policy);
	if (pthread_mutex_trylock(&s->lock) == 0) {
		add_usage(row->about, s);
		pthread_mutex_unlock(&s->lock);
	}
	if (pthread_mutex_trylock(&s->files_lock) == 0) {
		row->ws = s->workspace ? workspace_ref(s->workspace) : NULL;
		pthread_mutex_unlock(&s->files_lock);
	}
}

/* Called with the table's lock held: it must not wait for a session's, whose holder may wait for
 * the table's. */
static void add_row(const struct client_session *cs, void *arg)
{
	struct visit *v = arg;
	struct cordon_session *s = cs->session;
	struct row *row = mem_alloc(sizeof(*row));

	if (!row)
		return;
	row->about = json_pack("{s:s,s:s,s:s,s:b,s:b}", "session", cs->id, "tenant",
			       v->tenant->name, "guest", guest_of(cs), "running",
			       client_session_is_busy(&v->tenant->rpc->sessions, cs), "parked", !s);
	set_number(row->about, "executions", cs->executions);
	set_number(row->about, "idle_ms", ms_since(v->now_ns, cs->used_ns));
	if (s)
		add_live(row, s, v->now_ns);
	row->next = v->rows;
	v->rows = row;
}

static void add_tenant(const struct tenant *t, json_t *list)
{
	struct visit v = { .tenant = t, .now_ns = clock_now_ns() };

	client_sessions_visit(&t->rpc->sessions, add_row, &v);
	while (v.rows) {
		struct row *row = v.rows;
		struct workspace_usage used = { 0 };

		if (row->ws && workspace_get_usage(row->ws, &used, NULL) == 0) {
			set_number(row->about, "disk_bytes", used.bytes);
			set_number(row->about, "disk_max_bytes", used.max_bytes);
			set_number(row->about, "files", used.files);
		}
		(void)workspace_close(row->ws);
		json_array_append_new(list, row->about);
		v.rows = row->next;
		free(row);
	}
}

/* Calls fn for the tenant of the request, or, if it is an administrator's, for all. */
static void each_tenant(struct httpd_exchange *x, struct server *s,
			void (*fn)(const struct tenant *t, json_t *list), json_t *list)
{
	struct tenant *asks = httpd_tenant(x), *t;

	if (!asks->is_admin) {
		fn(asks, list);
		return;
	}
	pthread_mutex_lock(&s->lock);
	t = s->tenants;
	pthread_mutex_unlock(&s->lock);
	for (; t; t = t->next) /* a tenant stays until the server's end */
		fn(t, list);
}

void console_list_sessions(struct httpd_exchange *x, void *server)
{
	cleanup_json json_t *answer = json_object();
	json_t *list = json_array();

	json_object_set_new(answer, "sessions", list);
	each_tenant(x, server, add_tenant, list);
	v1_answer_json(x, 200, answer);
}

static void add_executions(const struct tenant *t, json_t *list)
{
	/* The list of a tenant is guarded by a lock in it. */
	cleanup_json json_t *all = activity_list((struct tenant *)t, NULL);
	json_t *one;
	size_t i;

	json_array_foreach(all, i, one)
	{
		json_object_set_new(one, "tenant", json_string(t->name));
		json_array_append(list, one);
	}
}

void console_list_executions(struct httpd_exchange *x, void *server)
{
	cleanup_json json_t *answer = json_object();
	json_t *list = json_array();

	json_object_set_new(answer, "executions", list);
	each_tenant(x, server, add_executions, list);
	v1_answer_json(x, 200, answer);
}

void console_show_me(struct httpd_exchange *x, void *server)
{
	const struct tenant *t = httpd_tenant(x);
	cleanup_json json_t *answer = json_pack("{s:s,s:b}", "name", t->name, "admin", t->is_admin);

	(void)server;
	v1_answer_json(x, 200, answer);
}

/* A method of serve/rpc on a session of any tenant, for administrators. */
void console_act(struct httpd_exchange *x, void *server)
{
	const char *name = httpd_param(x, "tenant");
	struct server *s = server;
	cleanup_error struct cordon_error *e = NULL;
	cleanup_buf struct buf answer = { 0 };
	struct tenant *t;

	pthread_mutex_lock(&s->lock);
	for (t = s->tenants; t && (t->is_over || !str_eq(t->name, name)); t = t->next)
		;
	pthread_mutex_unlock(&s->lock);
	if (!t) {
		problem_answer_as(x, 404, "not_found", "there is no such tenant", NULL);
		return;
	}
	cleanup_json json_t *params = json_pack("{s:s}", "session", httpd_param(x, "session"));
	buf_init(&answer, SIZE_MAX / 2);
	if (tenant_call(t, httpd_route_of(x)->detail, params, NULL, &answer, &e) < 0)
		problem_answer(x, e);
	else
		httpd_answer(x, 200, "application/json", buf_text(&answer), answer.len);
}
