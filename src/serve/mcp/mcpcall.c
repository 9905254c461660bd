/* serve/mcp/mcpcall.c - see mcpcall.h. */
#include "serve/mcp/mcpcall.h"

#include <string.h>

#include "base/clock.h"
#include "base/condvar.h"
#include "base/str.h"

enum { TELL_MS = 1000, TELL_NEWS_MS = 100 };

static const char *const levels[] = { "debug", "info",     "notice", "warning",
				      "error", "critical", "alert",  "emergency" };

int mcpcall_level(const char *name)
{
	for (size_t i = 0; name && i < sizeof(levels) / sizeof(*levels); i++)
		if (str_eq(name, levels[i]))
			return (int)i;
	return -1;
}

/* In the stateless version, each request says which log level it wants. */
static int level_of(struct mcp *m, const json_t *params)
{
	int level;

	if (mcp_version_of(params))
		return mcpcall_level(json_string_value(
			json_object_get(json_object_get(params, "_meta"), MCP_META "logLevel")));
	pthread_mutex_lock(&m->lock);
	level = m->log_level;
	pthread_mutex_unlock(&m->lock);
	return level;
}

void mcpcall_announce(struct mcp *m, struct mcpcall_notice *n, const json_t *id)
{
	*n = (struct mcpcall_notice){ .id = json_deep_copy(id) };
	pthread_mutex_lock(&m->lock);
	n->next = m->notices;
	m->notices = n;
	pthread_mutex_unlock(&m->lock);
}

void mcpcall_forget(struct mcp *m, struct mcpcall_notice *n)
{
	pthread_mutex_lock(&m->lock);
	for (struct mcpcall_notice **p = &m->notices; *p; p = &(*p)->next)
		if (*p == n) {
			*p = n->next;
			break;
		}
	pthread_mutex_unlock(&m->lock);
	json_decref(n->id);
}

/* Called with the lock held. */
static struct mcpcall_notice *find_notice(struct mcp *m, const json_t *id)
{
	struct mcpcall_notice *n = m->notices;

	while (n && (!n->id || !id || !json_equal(n->id, id)))
		n = n->next;
	return n;
}

int mcpcall_begin(struct mcpcall *c, struct mcp *m, const json_t *message,
		  const struct mcp_sink *sink, struct cordon_error **reterr)
{
	const json_t *params = json_object_get(message, "params");
	bool fits;

	*c = (struct mcpcall){ .mcp = m, .sink = sink, .number = json_integer(0) };
	if (!c->number)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	c->args = json_object_get(params, "arguments");
	c->id = json_object_get(message, "id");
	c->meta = json_object_get(params, "_meta");
	c->token = json_object_get(c->meta, "progressToken");
	if (!json_is_string(c->token) && !json_is_number(c->token))
		c->token = NULL; /* any other type: no progress messages */
	c->log_level = level_of(m, params);
	pthread_mutex_lock(&m->lock);
	fits = m->call_count < MCP_CALLS_MAX;
	if (fits) {
		const struct mcpcall_notice *n = find_notice(m, c->id);

		c->is_cancelled = n && n->is_cancelled;
		m->call_count++;
		(void)json_integer_set(c->number, (json_int_t)++m->numbers);
		c->next = m->calls;
		m->calls = c;
	}
	pthread_mutex_unlock(&m->lock);
	if (!fits)
		json_decref(c->number);
	if (!fits)
		return err_set(reterr, CORDON_LIMIT, "too many calls at once (%d)", MCP_CALLS_MAX);
	c->structured = json_object();
	c->content = json_array();
	pthread_mutex_init(&c->lock, NULL);
	condvar_init(&c->changed);
	return 0;
}

void mcpcall_end(struct mcpcall *c)
{
	struct mcp *m = c->mcp;

	mcpcall_unwatch(c);
	pthread_mutex_lock(&m->lock);
	for (struct mcpcall **p = &m->calls; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			m->call_count--;
			break;
		}
	pthread_mutex_unlock(&m->lock);
	client_session_put(&m->sessions, mcpcall_leave_session(c));
	json_decref(c->structured);
	json_decref(c->content);
	json_decref(c->refusal);
	json_decref(c->number);
	free(c->text);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
}

void mcpcall_take_session(struct mcpcall *c, struct client_session *s)
{
	pthread_mutex_lock(&c->mcp->lock);
	c->cs = s;
	pthread_mutex_unlock(&c->mcp->lock);
}

struct client_session *mcpcall_leave_session(struct mcpcall *c)
{
	pthread_mutex_lock(&c->mcp->lock);
	struct client_session *s = TAKE_PTR(c->cs);
	pthread_mutex_unlock(&c->mcp->lock);
	return s;
}

bool mcpcall_is_cancelled(struct mcpcall *c)
{
	pthread_mutex_lock(&c->mcp->lock);
	bool is = c->is_cancelled;
	pthread_mutex_unlock(&c->mcp->lock);
	return is;
}

void mcpcall_cancel(struct mcp *m, const json_t *id, const struct mcp_sink *sink)
{
	cleanup_json json_t *number = NULL;

	pthread_mutex_lock(&m->lock);
	struct mcpcall_notice *n = find_notice(m, id);
	if (n)
		n->is_cancelled = true;
	for (struct mcpcall *c = m->calls; c && !number; c = c->next) {
		if (sink ? c->sink != sink : !c->id || !json_equal(c->id, id))
			continue;
		c->is_cancelled = true;
		number = json_deep_copy(c->number); /* the call may end meanwhile */
	}
	pthread_mutex_unlock(&m->lock);
	/* Cancels only the call's own execution, because another call may be running in that
	 * sandbox. */
	struct client_session *cs = number ? client_session_by_request(&m->sessions, number) : NULL;
	if (!cs)
		return;
	(void)client_session_cancel(&m->sessions, cs);
	client_session_put(&m->sessions, cs);
}

const char *mcpcall_arg(const struct mcpcall *c, const char *name)
{
	return json_string_value(json_object_get(c->args, name));
}

int mcpcall_need(const struct mcpcall *c, const char *name, const char **ret,
		 struct cordon_error **reterr)
{
	*ret = mcpcall_arg(c, name);
	return *ret ? 0
		    : err_set(reterr, CORDON_INVALID,
			      "the argument '%s' is missing or not a string", name);
}

static void notify(struct mcpcall *c, const char *method, json_t *params)
{
	cleanup_json json_t *message = json_object();

	json_object_set_new(message, "jsonrpc", json_string("2.0"));
	json_object_set_new(message, "method", json_string(method));
	json_object_set_new(message, "params", params);
	if (message && params)
		(void)c->sink->send(message, c->sink->arg);
}

void mcpcall_log(struct mcpcall *c, const char *level, const char *text)
{
	if (!c->sink || c->log_level < 0 || mcpcall_level(level) < c->log_level)
		return;
	json_t *params = json_object();
	json_object_set_new(params, "level", json_string(level));
	json_object_set_new(params, "logger", json_string("cordon"));
	json_object_set_new(params, "data", json_string_lossy(text, strlen(text)));
	notify(c, "notifications/message", params);
}

void mcpcall_progress(struct mcpcall *c, double progress, double total, const char *message)
{
	if (!c->sink || !c->token)
		return;
	json_t *params = json_object();
	json_object_set_new(params, "progressToken", json_deep_copy(c->token));
	json_object_set_new(params, "progress", json_real(progress));
	if (total >= 0)
		json_object_set_new(params, "total", json_real(total));
	if (message)
		json_object_set_new(params, "message", json_string_lossy(message, strlen(message)));
	notify(c, "notifications/progress", params);
}

/* Waits until a progress message is due or the call is over. Called with the lock held. */
static void wait_to_tell(struct mcpcall *c)
{
	for (;;) {
		uint64_t pause = (uint64_t)(c->has_news ? TELL_NEWS_MS : TELL_MS) * 1000000;
		if (c->is_over || clock_now_ns() >= c->told_ns + pause)
			return;
		(void)condvar_wait(&c->changed, &c->lock, c->told_ns + pause);
	}
}

static void *tick(void *arg)
{
	struct mcpcall *c = arg;
	char line[sizeof(c->line) + 1];

	pthread_mutex_lock(&c->lock);
	while (!c->is_over) {
		wait_to_tell(c);
		if (c->is_over)
			break;
		c->told_ns = clock_now_ns();
		c->has_news = false;
		memcpy(line, c->line, c->line_len);
		line[c->line_len] = '\0';
		pthread_mutex_unlock(&c->lock);
		mcpcall_progress(c, (double)(c->told_ns - c->begun_ns) / 1e9, -1,
				 line[0] ? line : "running");
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

void mcpcall_watch(struct mcpcall *c)
{
	if (!c->sink || !c->token)
		return;
	c->begun_ns = c->told_ns = clock_now_ns();
	/* Without the thread there are only no progress messages. */
	c->has_ticker = pthread_create(&c->ticker, NULL, tick, c) == 0;
}

/* Remembers the last line that is not empty, cut at the buffer's size. */
void mcpcall_wrote(struct mcpcall *c, const char *bytes, size_t len)
{
	if (!c->has_ticker)
		return;
	while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == '\0'))
		len--;
	if (len == 0)
		return;
	const char *nl = memrchr(bytes, '\n', len);
	size_t from = nl ? (size_t)(nl - bytes) + 1 : 0, n = len - from;
	if (n > sizeof(c->line))
		n = sizeof(c->line);
	pthread_mutex_lock(&c->lock);
	memcpy(c->line, bytes + from, n);
	c->line_len = n;
	c->has_news = true;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

void mcpcall_unwatch(struct mcpcall *c)
{
	if (!c->has_ticker)
		return;
	pthread_mutex_lock(&c->lock);
	c->is_over = true;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
	(void)pthread_join(c->ticker, NULL);
	c->has_ticker = false;
}
