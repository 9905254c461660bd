/* serve/rpc/callback.c - see callback.h. */
#include "serve/rpc/callback.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/str.h"

enum { ID_BYTES = 32, WAIT_SECONDS = 30 };

/* A thread that waits for an answer. */
struct waiter {
	json_t *result; /* NULL: none yet */
	char *error;
	bool is_done;
};

struct callback {
	char id[ID_BYTES];
	struct cordon_call *call; /* NULL: for a waiter */
	struct waiter *waiter;
	struct callback *next;
};

void callbacks_init(struct callbacks *t, const struct sink *sink, struct client_sessions *sessions)
{
	*t = (struct callbacks){ .sink = sink, .sessions = sessions };
	pthread_mutex_init(&t->lock, NULL);
	condvar_init(&t->answered);
}

void callbacks_done(struct callbacks *t)
{
	callbacks_close(t);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->answered);
}

/* Removes the entry with this id from the table; NULL: any entry. */
static struct callback *take(struct callbacks *t, const char *id)
{
	struct callback *found = NULL;

	pthread_mutex_lock(&t->lock);
	for (struct callback **p = &t->first; *p; p = &(*p)->next)
		if (!id || str_eq((*p)->id, id)) {
			found = *p;
			*p = found->next;
			t->count--;
			break;
		}
	pthread_mutex_unlock(&t->lock);
	return found;
}

/* Once an entry is in the table, it may be answered and freed at any time. So the caller gets a
 * copy of its id. */
static bool add(struct callbacks *t, struct cordon_call *call, struct waiter *waiter,
		char ret_id[static ID_BYTES])
{
	struct callback *c = mem_alloc(sizeof(*c));
	bool fits;

	if (!c)
		return false;
	c->call = call;
	c->waiter = waiter;
	pthread_mutex_lock(&t->lock);
	fits = t->count < CALLBACKS_MAX && !t->is_closing;
	if (fits) {
		snprintf(c->id, sizeof(c->id), "cb_%" PRIu64, ++t->last);
		memcpy(ret_id, c->id, ID_BYTES);
		c->next = t->first;
		t->first = c;
		t->count++;
	}
	pthread_mutex_unlock(&t->lock);
	if (!fits)
		free(c);
	return fits;
}

static bool send(const struct callbacks *t, const char *id, const char *method, const char *session,
		 const char *request, const char *params)
{
	const struct sink_message m = { .method = method,
					.id = id,
					.session = session,
					.request = request,
					.params = params,
					.len = strlen(params) };

	return t->sink->send(&m, t->sink->arg);
}

enum cordon_answer callback_call_tool(struct cordon_call *call, void *table)
{
	struct callbacks *t = table;

	if (t->nobody_reads) {
		(void)cordon_call_error(
			call, "the server could not start a thread to read the client's answer",
			NULL);
		return CORDON_ANSWER_ERROR;
	}
	char id[ID_BYTES], session[CLIENT_SESSION_ID_BYTES];
	if (!add(t, call, NULL, id)) {
		(void)cordon_call_error(call, "too many tool calls wait for the client", NULL);
		return CORDON_ANSWER_ERROR;
	}
	client_session_name(t->sessions, cordon_call_session(call), session);
	const char *args = cordon_call_args(call);
	cleanup_free char *request = client_session_request(t->sessions, cordon_call_session(call));
	cleanup_free char *params =
		str_printf("{\"session\":\"%s\",\"request_id\":%s,\"tool\":\"%s\",\"args\":%s}",
			   session, request ? request : "null", cordon_call_tool(call), args);
	if (params && send(t, id, "tool.call", session, request, params))
		return CORDON_ANSWER_PENDING;
	/* Whoever removes the entry from the table must answer it. */
	struct callback *c = take(t, id);
	if (!c)
		return CORDON_ANSWER_PENDING;
	free(c);
	(void)cordon_call_error(call, "the client is gone", NULL);
	return CORDON_ANSWER_ERROR;
}

static void settle(struct cordon_call *call, const json_t *message)
{
	const json_t *result = json_object_get(message, "result");
	const json_t *value = json_object_get(result, "value");
	const char *error =
		json_string_value(json_object_get(json_object_get(message, "error"), "message"));
	cleanup_free char *text = NULL;

	if (error) {
		(void)cordon_call_error(call, error, NULL);
		return;
	}
	if (!value) {
		(void)cordon_call_error(
			call, "the client's answer has neither a value nor an error", NULL);
		return;
	}
	text = json_text(value, NULL);
	int r = text ? cordon_call_value(call, text, NULL) : -CORDON_NOMEM;
	/* A value over the limit was already answered with an error. */
	if (r < 0 && r != -CORDON_LIMIT)
		(void)cordon_call_error(call, "the tool's value could not be stored", NULL);
}

/* The result moves to the thread that waits: the caller frees the rest of the message. */
static void inform(struct callbacks *t, struct waiter *w, json_t *message)
{
	const char *error =
		json_string_value(json_object_get(json_object_get(message, "error"), "message"));

	pthread_mutex_lock(&t->lock);
	w->result = json_incref(json_object_get(message, "result"));
	(void)json_object_del(message, "result");
	if (!w->result)
		w->error = str_dup(error ? error : "the client's answer has no result");
	w->is_done = true;
	pthread_cond_broadcast(&t->answered);
	pthread_mutex_unlock(&t->lock);
}

/* Called with the lock held. False: no answer came in time. */
static bool wait_answer(struct callbacks *t, const struct waiter *w)
{
	deadline_ns deadline = deadline_after_ms(WAIT_SECONDS * 1000ULL);

	while (!w->is_done && condvar_wait(&t->answered, &t->lock, deadline))
		;
	return w->is_done;
}

int callback_request(struct callbacks *t, const char *method, const char *params, json_t **ret,
		     struct cordon_error **reterr)
{
	struct waiter w = { 0 };
	struct callback *c = NULL;
	char id[ID_BYTES];

	if (!add(t, NULL, &w, id))
		return err_set(reterr, CORDON_LIMIT, "too many questions wait for the client");
	bool is_sent = send(t, id, method, NULL, NULL, params);
	pthread_mutex_lock(&t->lock);
	bool is_done = is_sent && wait_answer(t, &w);
	pthread_mutex_unlock(&t->lock);
	/* If another thread has removed the entry, it is about to answer: wait for that. */
	if (!is_done && (c = take(t, id))) {
		free(c);
		return err_set(reterr, CORDON_TIMEOUT, "the client does not answer %s", method);
	}
	pthread_mutex_lock(&t->lock);
	while (!w.is_done)
		pthread_cond_wait(&t->answered, &t->lock);
	pthread_mutex_unlock(&t->lock);
	cleanup_free char *error = w.error;
	*ret = w.result;
	return w.result ? 0
			: err_set(reterr, CORDON_OS, "%s: %s", method, error ? error : "failed");
}

bool callback_answer(struct callbacks *t, json_t *message)
{
	const char *id = json_string_value(json_object_get(message, "id"));
	struct callback *c = id ? take(t, id) : NULL;

	if (!c)
		return false;
	if (c->waiter)
		inform(t, c->waiter, message);
	else
		settle(c->call, message);
	free(c);
	return true;
}

void callbacks_close(struct callbacks *t)
{
	struct callback *c;

	pthread_mutex_lock(&t->lock);
	t->is_closing = true;
	pthread_mutex_unlock(&t->lock);
	while ((c = take(t, NULL))) {
		if (c->waiter)
			inform(t, c->waiter, NULL);
		else
			(void)cordon_call_error(c->call, "the client is gone", NULL);
		free(c);
	}
}

void callback_ask(const struct cordon_approval *a, void *table)
{
	struct callbacks *t = table;
	char session[CLIENT_SESSION_ID_BYTES];
	cleanup_json json_t *what = json_string_lossy(a->what, strlen(a->what));
	cleanup_free char *what_text = what ? json_text(what, NULL) : NULL;
	const char *detail = a->detail ? a->detail : "null";
	client_session_name(t->sessions, a->session, session);
	cleanup_free char *request = client_session_request(t->sessions, a->session);
	cleanup_free char *params =
		str_printf("{\"id\":\"%s\",\"session\":\"%s\",\"request_id\":%s,\"kind\":\"%s\","
			   "\"what\":%s,\"detail\":%s}",
			   a->id, session, request ? request : "null", a->kind,
			   what_text ? what_text : "null", detail);

	/* If the client is gone, the approval times out, which counts as denied. */
	if (params)
		(void)send(t, NULL, "approval", session, request, params);
}
