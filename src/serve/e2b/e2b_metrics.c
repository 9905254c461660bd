/* serve/e2b/e2b_metrics.c - what a sandbox uses now: one sample per request, none are kept. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "files/workspace.h"
#include "serve/e2b/e2b_state.h"
#include "session/place.h"
#include "session/session.h"

struct usage {
	uint64_t cpu_us, memory_bytes;
	double cpu_percent;
	struct workspace_usage disk;
};

static void read_usage(struct e2b_sandbox *b, struct usage *ret)
{
	struct cordon_session *s = b->session;
	cleanup_workspace struct workspace *ws = NULL;
	uint64_t now = clock_now_ns();

	pthread_mutex_lock(&s->lock);
	struct place *p = place_ref(s->place);
	pthread_mutex_unlock(&s->lock);
	struct box *box = p ? place_box(p) : NULL;
	if (box) {
		struct box_counts counts = { 0 };

		ret->cpu_us = box_cpu_us(box, BOX_CPU_ALL);
		box_count(box, &counts);
		ret->memory_bytes = counts.memory_peak_bytes;
	}
	place_put(p);
	if (session_workspace_at(s, "/home/user", &ws, NULL) == 0)
		(void)workspace_get_usage(ws, &ret->disk, NULL);
	pthread_mutex_lock(&b->lock);
	uint64_t since = now - b->sample.at_ns, used = ret->cpu_us - b->sample.cpu_us;
	if (b->sample.at_ns && since > 0 && ret->cpu_us >= b->sample.cpu_us)
		ret->cpu_percent = 100.0 * (double)used * 1000 / (double)since;
	b->sample.at_ns = now;
	b->sample.cpu_us = ret->cpu_us;
	pthread_mutex_unlock(&b->lock);
}

static json_t *sample(struct e2b_sandbox *b)
{
	const struct policy *p = &b->session->policy;
	uint64_t percent = p->cpu_percent == POLICY_UNLIMITED ? 100 : p->cpu_percent;
	struct usage u = { 0 };
	char text[CLOCK_UTC_SIZE];
	json_t *j = json_object();

	read_usage(b, &u);
	clock_utc_text(text);
	json_object_set_new(j, "timestamp", json_string(text));
	json_object_set_new(j, "timestampUnix", json_integer((json_int_t)time(NULL)));
	json_object_set_new(j, "cpuCount", json_integer((json_int_t)((percent + 99) / 100)));
	json_object_set_new(j, "cpuUsedPct", json_real(u.cpu_percent));
	json_object_set_new(j, "memUsed", json_integer((json_int_t)u.memory_bytes));
	json_object_set_new(j, "memTotal", json_integer((json_int_t)p->memory_bytes));
	json_object_set_new(j, "memCache", json_integer(0));
	json_object_set_new(j, "diskUsed", json_integer((json_int_t)u.disk.bytes));
	json_object_set_new(j, "diskTotal", json_integer((json_int_t)p->fs_bytes));
	return j;
}

/* Whether now is in the time that was asked for. */
static bool is_wanted(struct httpd_exchange *x)
{
	const char *start = httpd_query(x, "start"), *end = httpd_query(x, "end");
	long long now = (long long)time(NULL);

	return (!start || strtoll(start, NULL, 10) <= now) &&
	       (!end || strtoll(end, NULL, 10) >= now);
}

void e2b_metrics_one(struct httpd_exchange *x, void *arg)
{
	const char *id = httpd_param(x, "sandbox");
	cleanup_e2b_sandbox struct e2b_sandbox *b =
		id ? e2b_sandbox_get(arg, id, httpd_principal(x)) : NULL;
	json_t *j;

	if (!b) {
		e2b_fail(x, 404, "there is no such sandbox");
		return;
	}
	j = json_array();
	if (is_wanted(x))
		json_array_append_new(j, sample(b));
	e2b_answer_json(x, 200, j);
}

/* Of several: ?sandbox_ids=a,b */
void e2b_metrics_many(struct httpd_exchange *x, void *arg)
{
	const char *ids = httpd_query(x, "sandbox_ids");
	json_t *j = json_object(), *all = json_object();

	while (ids && *ids) {
		size_t len = strcspn(ids, ",");
		cleanup_free char *id = str_ndup(ids, len);
		cleanup_e2b_sandbox struct e2b_sandbox *b =
			id ? e2b_sandbox_get(arg, id, httpd_principal(x)) : NULL;

		if (b)
			json_object_set_new(all, b->id, sample(b));
		ids += len + (ids[len] == ',');
	}
	json_object_set_new(j, "sandboxes", all);
	e2b_answer_json(x, 200, j);
}
