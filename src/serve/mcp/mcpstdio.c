/* serve/mcp/mcpstdio.c - see mcpstdio.h. Each call that runs code has a thread. */
#include "serve/mcp/mcpstdio.h"

#include <string.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/mcp/mcpcall.h"
#include "serve/rpc/line.h"

/* Long enough to save a workspace to a slow disk at the end. */
enum { END_MS = 30000, LOOK_MS = 50 };

struct service {
	struct mcp mcp;
	struct mcp_sink sink;
	struct linein in;
	struct lineout out;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	unsigned calls;
};

struct work {
	struct service *s;
	json_t *message;
	struct mcpcall_notice notice;
};

static bool send_message(const json_t *message, void *arg)
{
	struct service *s = arg;
	size_t len = 0;
	cleanup_free char *text = json_text(message, &len);
	const struct line_part part = { text, len };

	return text && lineout_send(&s->out, &part, 1);
}

static void respond(struct service *s, const json_t *message)
{
	cleanup_json json_t *a = mcp_handle(&s->mcp, message, &s->sink);

	if (a)
		(void)send_message(a, s);
}

static void *work_thread(void *arg)
{
	cleanup_free struct work *w = arg;
	struct service *s = w->s;

	respond(s, w->message);
	mcpcall_forget(&s->mcp, &w->notice);
	json_decref(w->message);
	pthread_mutex_lock(&s->lock);
	s->calls--;
	pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Cancels have places of their own, so that they work when all others are taken. True: the thread
 * owns the message. */
static bool start(struct service *s, json_t *message, bool is_cancel)
{
	struct work *w = mem_alloc(sizeof(*w));
	pthread_t thread;

	if (!w)
		return false;
	*w = (struct work){ .s = s, .message = message };
	pthread_mutex_lock(&s->lock);
	bool fits = s->calls < (unsigned)(is_cancel ? 2 : 1) * MCP_CALLS_MAX;
	if (fits)
		s->calls++;
	pthread_mutex_unlock(&s->lock);
	if (fits)
		mcpcall_announce(&s->mcp, &w->notice,
				 is_cancel ? NULL : json_object_get(message, "id"));
	if (fits && pthread_create(&thread, NULL, work_thread, w) == 0) {
		(void)pthread_detach(thread);
		return true;
	}
	if (fits) {
		mcpcall_forget(&s->mcp, &w->notice);
		pthread_mutex_lock(&s->lock);
		s->calls--;
		pthread_mutex_unlock(&s->lock);
	}
	free(w);
	return false;
}

static void refuse(struct service *s, const json_t *id, int code, const char *why)
{
	cleanup_json json_t *a = mcp_error(id, code, why, NULL);

	(void)send_message(a, s);
}

static void take(struct service *s, const char *line, size_t len)
{
	cleanup_json json_t *message = NULL;

	if (strspn(line, " \t\r") >= len)
		return;
	if (json_parse(line, len, 0, &message, NULL) < 0) {
		refuse(s, NULL, -32700, "not JSON");
		return;
	}
	const char *method = json_string_value(json_object_get(message, "method"));
	bool is_call = str_eq(method, "tools/call");
	bool is_cancel = str_eq(method, "notifications/cancelled");
	if (!is_call && !is_cancel)
		respond(s, message);
	else if (start(s, message, is_cancel))
		message = NULL;
	else if (is_call)
		refuse(s, json_object_get(message, "id"), cordon_code_rpc(CORDON_LIMIT),
		       "too many calls at once");
}

static void serve_lines(struct service *s)
{
	enum line_state state;
	char *line;
	size_t len;

	while ((state = linein_next(&s->in, &line, &len)) != LINE_END)
		if (state == LINE_TOO_LONG)
			refuse(s, NULL, -32700, "Request too large");
		else
			take(s, line, len);
}

static void *end_sessions(void *arg)
{
	struct service *s = arg;

	client_sessions_close(&s->mcp.sessions);
	pthread_mutex_lock(&s->lock);
	s->calls--;
	pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void start_end(struct service *s)
{
	pthread_t thread;

	pthread_mutex_lock(&s->lock);
	s->calls++;
	pthread_mutex_unlock(&s->lock);
	if (pthread_create(&thread, NULL, end_sessions, s) == 0)
		(void)pthread_detach(thread);
	else
		(void)end_sessions(s);
}

/* Answers requests that came before the input ended, as long as someone reads the answers. */
static void answer_the_rest(struct service *s)
{
	client_sessions_drain(&s->mcp.sessions);
	pthread_mutex_lock(&s->lock);
	while (s->calls > 0 && lineout_has_reader(&s->out))
		(void)condvar_wait(&s->idle, &s->lock, deadline_after_ms(LOOK_MS));
	pthread_mutex_unlock(&s->lock);
}

/* A sandbox that is starting cannot be cancelled; it ends with the process. */
static bool wait_for_calls(struct service *s)
{
	deadline_ns deadline = deadline_after_ms(END_MS);

	pthread_mutex_lock(&s->lock);
	while (s->calls > 0 && condvar_wait(&s->idle, &s->lock, deadline))
		;
	bool is_quiet = s->calls == 0;
	pthread_mutex_unlock(&s->lock);
	return is_quiet;
}

int mcpstdio_serve(const struct mcp_options *o, int in_fd, int out_fd, struct cordon_error **reterr)
{
	struct service *s = mem_alloc(sizeof(*s));

	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	linein_init(&s->in, in_fd, out_fd, MCP_MESSAGE_MAX);
	lineout_init(&s->out, out_fd);
	mcp_init(&s->mcp, o);
	s->sink = (struct mcp_sink){ .send = send_message, .arg = s };
	pthread_mutex_init(&s->lock, NULL);
	condvar_init(&s->idle);
	serve_lines(s);
	answer_the_rest(s);
	start_end(s);
	if (!wait_for_calls(s)) /* a call still uses the structures */
		return err_set(reterr, CORDON_TIMEOUT, "not everything ended within %d ms", END_MS);
	cleanup_free char *loss = client_sessions_take_loss(&s->mcp.sessions);
	mcp_done(&s->mcp);
	linein_done(&s->in);
	lineout_done(&s->out);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->idle);
	free(s);
	return loss ? err_set(reterr, CORDON_OS, "%s", loss) : 0;
}
