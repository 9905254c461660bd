/* session/execution_messages.c - see execution_messages.h. */
#include "session/execution_messages.h"

#include <stdio.h>
#include <stdlib.h>

#include "session/result.h"

/* An output is copied into the result and again into the JSON text. */
enum { MAX_OUTPUTS = 64, OUTPUTS_BYTES = 16 << 20 };
/* Limits for the warnings that a guest may send about the code. */
enum { MAX_WARNINGS = 64, WARNING_BYTES = 300, WARNINGS_BYTES = 65536 };

static char *copy_text(struct wire_text t)
{
	return t.data ? str_ndup(t.data, t.len) : NULL;
}

/* Warnings of the guest's parser: a short list of sentences, or nothing. */
static void take_warnings(struct cordon_result *r, struct wire_text t)
{
	cleanup_json json_t *list = NULL;
	json_t *one;
	size_t i;

	if (!t.data || json_parse(t.data, t.len, WARNINGS_BYTES, &list, NULL) < 0)
		return;
	json_array_foreach(list, i, one)
	{
		if (i < MAX_WARNINGS && json_is_string(one) &&
		    json_string_length(one) <= WARNING_BYTES)
			(void)result_warn(r, json_string_value(one));
	}
}

void execution_take_result(struct execution *x, const struct wire_message *m)
{
	struct cordon_result *r = x->result;
	struct evidence *v = &x->evidence;

	timeline_mark(&x->session->timeline, TIMELINE_ANSWERED);
	v->has_result = true;
	v->ok = m->ok;
	v->has_exit_code = m->has_exit_code;
	v->exit_code = m->exit_code;
	/* After the deadline or a cancel the execution has failed, whatever the code still says. */
	if (x->stop_by == 0) {
		r->value_json = copy_text(m->value);
		r->text = copy_text(m->text);
	}
	take_warnings(r, m->warnings);
	if (m->cwd.data)
		session_note_cwd(x->session, m->cwd.data, m->cwd.len);
	if (m->is_restarted)
		session_resend_env(x->session);
	if (m->is_restarted)
		result_restarted(r, engine_is_agent(x->engine)
					    ? "the shell ended"
					    : "the code could not be interrupted without ending "
					      "the interpreter");
	v->told = copy_text(m->denials);
	if (m->has_error) {
		v->kind = copy_text(m->error.kind);
		v->name = copy_text(m->error.name);
		v->message = copy_text(m->error.message);
		r->exception_name = copy_text(m->error.name);
		r->exception_message = copy_text(m->error.message);
		r->traceback = copy_text(m->error.traceback);
		r->exception_line = m->error.line;
	}
	x->is_over = true;
	/* An agent has another shell already. A guest that runs the code itself ends with it. */
	x->is_dead = x->is_dead || (m->is_restarted && !engine_is_agent(x->engine));
}

/* Always large enough for one message of the maximum length. */
static size_t outputs_max(const struct execution *x)
{
	uint64_t longest = x->session->policy.rpc_bytes;

	return longest > OUTPUTS_BYTES ? longest : OUTPUTS_BYTES;
}

void execution_take_output(struct execution *x, const struct wire_message *m)
{
	json_t *a = result_array(&x->result->outputs);
	size_t len = m->data.len + m->name.len;

	if (!a || json_array_size(a) >= MAX_OUTPUTS || x->outputs_bytes + len > outputs_max(x)) {
		x->outputs_lost++;
		return;
	}
	x->outputs_bytes += len;
	json_t *o = json_object();
	json_object_set_new(o, "mime", json_string_lossy(m->mime.data, m->mime.len));
	json_object_set_new(o, "encoding", json_string(m->is_base64 ? "base64" : "text"));
	json_object_set_new(o, "data", json_string_lossy(m->data.data, m->data.len));
	json_object_set_new(o, "name",
			    m->name.data ? json_string_lossy(m->name.data, m->name.len)
					 : json_null());
	if (m->is_value)
		json_object_set_new(o, "value", json_true());
	json_array_append_new(a, o);
}

void execution_tell_lost_outputs(const struct execution *x)
{
	char text[160];

	if (x->outputs_lost == 0)
		return;
	(void)snprintf(text, sizeof(text),
		       "%llu rich outputs were not kept: an execution may have %d, and %zu bytes "
		       "together",
		       (unsigned long long)x->outputs_lost, MAX_OUTPUTS, outputs_max(x));
	(void)result_warn(x->result, text);
}
