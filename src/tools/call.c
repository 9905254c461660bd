/* tools/call.c - see call.h. */
#include "tools/call.h"

#include <string.h>

#include "base/mem.h"
#include "base/os.h"
#include "base/str.h"
#include "tools/command.h"
#include "tools/registry.h"
#include "wire/scan.h"

struct call_slot *call_slot_new(void)
{
	struct call_slot *s = mem_alloc(sizeof(*s));

	if (!s)
		return NULL;
	s->wake_fd = os_event_open();
	if (s->wake_fd < 0) {
		free(s);
		return NULL;
	}
	atomic_init(&s->refs, 1);
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

static struct call_slot *slot_ref(struct call_slot *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

struct call_slot *call_slot_unref(struct call_slot *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
		return NULL;
	close_fdp(&s->wake_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

struct cordon_call *call_new(const struct call_new *n)
{
	size_t session_len = strlen(n->session) + 1, total;

	if (!size_add(sizeof(struct cordon_call) + session_len, n->args_len, &total) ||
	    !size_add(total, 1, &total))
		return NULL;
	struct cordon_call *c = mem_alloc(total);
	if (!c)
		return NULL;
	char *text = (char *)(c + 1);
	c->session = memcpy(text, n->session, session_len);
	c->args = memcpy(text + session_len, n->args, n->args_len);
	c->args_len = n->args_len;
	atomic_init(&c->refs, 1);
	c->slot = slot_ref(n->slot);
	c->registry = cordon_tools_ref(n->registry);
	c->tool = n->tool;
	c->number = n->number;
	c->result_max = n->result_max;
	return c;
}

struct cordon_call *call_unref(struct cordon_call *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
		return NULL;
	(void)command_run_free(c->run);
	free(c->answer);
	free(c->reason);
	call_slot_unref(c->slot);
	cordon_tools_unref(c->registry);
	free(c);
	return NULL;
}

bool call_run(struct cordon_call *c)
{
	bool is_done = true, drops = true;

	c->started_ns = clock_now_ns();
	atomic_fetch_add(&c->refs, 1); /* for the handler */
	enum cordon_answer a = c->tool->fn(c, c->tool->arg);
	pthread_mutex_lock(&c->slot->lock);
	if (a == CORDON_ANSWER_PENDING) {
		c->is_pending = true;
		is_done = drops = c->is_claimed; /* another thread answered first */
	}
	pthread_mutex_unlock(&c->slot->lock);
	if (drops)
		call_unref(c);
	return is_done;
}

/* Stores the first answer and wakes the dispatcher. Takes ownership of text. */
static void answer(struct cordon_call *c, bool is_error, char *text, size_t len)
{
	bool drops = false;

	pthread_mutex_lock(&c->slot->lock);
	if (!c->is_claimed) {
		c->is_claimed = true;
		drops = c->is_pending;
		if (!c->is_abandoned && !c->is_answered) {
			c->is_answered = true;
			c->is_error = is_error;
			c->answer = TAKE_PTR(text);
			c->answer_len = len;
			if (c->is_pending)
				(void)os_event_set(c->slot->wake_fd);
		}
	}
	pthread_mutex_unlock(&c->slot->lock);
	free(text);
	if (drops)
		call_unref(c);
}

void call_settle(struct cordon_call *c, bool is_error, char *text)
{
	pthread_mutex_lock(&c->slot->lock);
	if (!c->is_answered && text) {
		c->is_answered = true;
		c->is_error = is_error;
		c->answer_len = strlen(text);
		c->answer = TAKE_PTR(text);
	}
	pthread_mutex_unlock(&c->slot->lock);
	free(text);
}

void call_abandon(struct cordon_call *c)
{
	pthread_mutex_lock(&c->slot->lock);
	c->is_abandoned = true;
	pthread_mutex_unlock(&c->slot->lock);
}

void call_time_out(struct cordon_call *c)
{
	char *text = c->stage == CALL_APPROVAL
			     ? str_printf("Approval of tool '%s' timed out", c->tool->name)
			     : str_printf("Tool '%s' timed out after %g seconds", c->tool->name,
					  (double)c->tool->timeout_ms / 1000);
	call_abandon(c);
	c->run = command_run_free(c->run);
	call_settle(c, true, text);
}

int call_start_command(struct cordon_call *c, int watch_fd, struct cordon_error **reterr)
{
	cleanup_json json_t *args = NULL;
	cleanup_error struct cordon_error *e = NULL;
	int r = json_parse(c->args, c->args_len, 0, &args, reterr);

	if (r < 0)
		return r;
	struct command_start start = { .session = c->session,
				       .tool = c->tool->name,
				       .args = args,
				       .args_text = c->args,
				       .args_len = c->args_len,
				       .result_bytes = c->result_max,
				       .watch_fd = watch_fd,
				       .watch_tag = c };
	c->started_ns = clock_now_ns();
	r = command_start(c->tool->host, &start, &c->run, &e);
	if (r < 0) {
		int os_errno = cordon_error_errno(e);
		call_settle(c, true,
			    str_printf("%s%s%s", cordon_error_message(e), os_errno ? ": " : "",
				       os_errno ? strerrordesc_np(os_errno) : ""));
	}
	return 0;
}

void call_take_command(struct cordon_call *c)
{
	cleanup_error struct cordon_error *e = NULL;
	char *json = NULL;

	if (command_answer(c->run, &json, &e) < 0) {
		call_settle(c, true, str_dup(cordon_error_message(e)));
	} else if (scan_value(json, strlen(json))) {
		free(json);
		call_settle(c, true, str_dup("the command's output is not JSON"));
	} else {
		call_settle(c, false, json);
	}
	c->run = command_run_free(c->run);
}

const char *cordon_call_session(const struct cordon_call *c)
{
	return c->session;
}

const char *cordon_call_tool(const struct cordon_call *c)
{
	return c->tool->name;
}

const char *cordon_call_args(const struct cordon_call *c)
{
	return c->args;
}

int cordon_call_value(struct cordon_call *c, const char *json, struct cordon_error **reterr)
{
	if (!json)
		return err_set(reterr, CORDON_INVALID, "a tool's value must be JSON text");
	size_t len = strlen(json);
	if (len > c->result_max) {
		char *text = str_printf("result too large (%zu bytes, max %llu)", len,
					(unsigned long long)c->result_max);
		if (!text)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
		answer(c, true, text, strlen(text));
		return err_set(reterr, CORDON_LIMIT, "the result of a tool is too large");
	}
	char *copy = str_ndup(json, len);
	if (!copy)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	const char *why = scan_value(copy, len);
	if (why) {
		free(copy);
		return err_set(reterr, CORDON_INVALID, "a tool's value must be JSON text: %s", why);
	}
	answer(c, false, copy, len);
	return 0;
}

int cordon_call_error(struct cordon_call *c, const char *message, struct cordon_error **reterr)
{
	char *copy = str_dup(message ? message : "Unknown error");

	if (!copy)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	answer(c, true, copy, strlen(copy));
	return 0;
}

bool call_is_ready(struct cordon_call *c, bool *ret_late)
{
	pthread_mutex_lock(&c->slot->lock);
	bool is = c->stage == CALL_APPROVAL ? c->is_resolved : c->is_answered;
	pthread_mutex_unlock(&c->slot->lock);
	*ret_late = !is && deadline_is_over(c->deadline);
	return is || *ret_late;
}
