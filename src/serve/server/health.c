/* serve/server/health.c - see health.h. */
#include "serve/server/health.h"

#include <string.h>

#include "serve/server/server.h"

static void answer_text(struct httpd_exchange *x, unsigned status, const char *text)
{
	httpd_answer(x, status, "text/plain; charset=utf-8", text, strlen(text));
}

static void answer_alive(struct httpd_exchange *x, void *server)
{
	(void)server;
	answer_text(x, 200, "ok\n");
}

static void answer_ready(struct httpd_exchange *x, void *server)
{
	(void)server;
	if (httpd_is_draining(httpd_server(x)))
		answer_text(x, 503, "the server is ending\n");
	else
		answer_text(x, 200, "ready\n");
}

static void count_session(const struct client_session *cs, void *arg)
{
	struct metrics_state *m = arg;

	if (cs->is_offloaded)
		m->sessions_parked++;
	else if (cs->execution)
		m->sessions_running++;
	else
		m->sessions_idle++;
}

static void show_metrics(struct httpd_exchange *x, void *server)
{
	struct server *s = server;
	struct metrics_state m = { .connections = httpd_connections(httpd_server(x)) };
	cleanup_buf struct buf text = { 0 };

	buf_init(&text, SIZE_MAX / 2);
	tracer_count(s->tracer, &m.spans);
	pthread_mutex_lock(&s->lock);
	for (struct tenant *t = s->tenants; t; t = t->next) {
		m.tenants++;
		m.memory_bytes += t->quota.memory;
		client_sessions_visit(&t->rpc->sessions, count_session, &m);
		pthread_mutex_lock(&t->lock);
		m.executions += t->running;
		pthread_mutex_unlock(&t->lock);
	}
	pthread_mutex_unlock(&s->lock);
	if (metrics_write(&s->metrics, &m, &text) < 0)
		httpd_answer(x, 500, NULL, NULL, 0);
	else
		httpd_answer(x, 200, "text/plain; version=0.0.4; charset=utf-8", text.data,
			     text.len);
}

#define ROUTE(pattern, function)                                                                   \
	{                                                                                          \
		.method = "GET", .path = (pattern), .right = HTTPD_OPEN, .fn = (function),         \
		.flags = HTTPD_QUICK                                                               \
	}

const struct httpd_route health_routes[] = {
	ROUTE("/healthz", answer_alive),
	ROUTE("/readyz", answer_ready),
	{ .method = "GET", .path = "/metrics", .right = HTTPD_ADMIN, .fn = show_metrics },
	{ 0 },
};
