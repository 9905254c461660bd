/* session/session_audit.c - see session_audit.h. Denials are recorded by cause, from the
 * supervisor's evidence, never by matching text that the guest could print or hide. */
#include "session/session_audit.h"

#include <string.h>

#include "base/str.h"

const char *session_audit_id(const struct cordon_session *s)
{
	return s->owner && !s->name[0] ? s->owner->id : s->id;
}

int session_audit_begin(struct cordon_session *s, const struct cordon_session_options *o,
			struct cordon_error **reterr)
{
	const struct policy *p = &s->policy;
	struct audit_options opts = {
		.path = p->audit,
		.sync = str_eq(p->audit_sync, "always")  ? AUDIT_SYNC_ALWAYS
			: str_eq(p->audit_sync, "close") ? AUDIT_SYNC_CLOSE
							 : AUDIT_SYNC_NONE,
		.rotate_bytes =
			p->audit_rotate_bytes == POLICY_UNLIMITED ? 0 : p->audit_rotate_bytes,
		.keep_files = p->audit_keep == POLICY_UNLIMITED ? 0 : p->audit_keep,
		.fn = o->audit,
		.arg = o->audit_arg,
		.log = o->log,
		.log_arg = o->log_arg,
	};

	if (!opts.path && !opts.fn && s->policy.audit_required)
		return err_set(reterr, CORDON_INVALID,
			       "audit_required: the policy names no audit log");
	if (!opts.path && !opts.fn && !opts.log)
		return 0;
	return audit_open(&opts, &s->audit, reterr);
}

/* The policy decides whether a line that could not be written is an error. */
static int settle(const struct cordon_session *s, int r, struct cordon_error *e,
		  struct cordon_error **reterr)
{
	if (r < 0 && s->policy.audit_required) {
		if (reterr)
			*reterr = e;
		else
			cordon_error_free(e);
		return r;
	}
	cordon_error_free(e);
	return 0;
}

static int commit(const struct cordon_session *s, struct audit_event *event,
		  struct cordon_error **reterr)
{
	struct cordon_error *e = NULL;
	int r = audit_commit(event, &e);

	return settle(s, r, e, reterr);
}

int session_audit_session(struct cordon_session *s, const char *event, struct cordon_error **reterr)
{
	struct audit_event *e = audit_begin(s->audit, event, session_audit_id(s));

	if (!e)
		return 0;
	audit_add_text(e, "guest", guest_name(s->kind), strlen(guest_name(s->kind)));
	if (s->owner) {
		audit_add_text(e, "sandbox_id", s->owner->id, strlen(s->owner->id));
		audit_add_text(e, "context", s->name, strlen(s->name));
	}
	if (s->engine && !str_eq(event, "session_close")) {
		cleanup_json json_t *policy = policy_to_json(&s->policy);
		cleanup_free char *text = json_text(policy, NULL);
		const char *assurance = engine_assurance(s->engine, &s->policy);

		if (box_pid(s->engine->box) > 0) /* a script may not have started yet */
			audit_add_uint(e, "pid", (uint64_t)box_pid(s->engine->box));
		audit_add_bool(e, "sandbox", true);
		if (text)
			audit_add_json(e, "policy", text, strlen(text));
		if (assurance)
			audit_add_json(e, "assurance", assurance, strlen(assurance));
	}
	return commit(s, e, reterr);
}

int session_audit_code(struct cordon_session *s, const struct cordon_execute_options *o,
		       struct cordon_error **reterr)
{
	struct audit_event *e = audit_begin(s->audit, "execute_start", session_audit_id(s));

	if (!e)
		return 0;
	audit_add_text_cut(e, "code", o->code, o->code_len ? o->code_len : strlen(o->code),
			   AUDIT_CODE_CHARS);
	return commit(s, e, reterr);
}

static int denials(struct cordon_session *s, const struct cordon_result *r,
		   struct cordon_error **reterr)
{
	size_t i;
	json_t *d;

	json_array_foreach(r->denials, i, d)
	{
		/* Denials of tools are recorded where they are decided. */
		if (str_eq(json_string_value(json_object_get(d, "layer")), "tools"))
			continue;
		struct audit_event *e =
			audit_begin(s->audit, "capability.denied", session_audit_id(s));
		cleanup_free char *text = json_text(d, NULL);

		if (text)
			audit_add_json(e, "denial", text, strlen(text));
		int done = commit(s, e, reterr);
		if (done < 0)
			return done;
	}
	return 0;
}

static int limit(struct cordon_session *s, const char *subtype, struct cordon_error **reterr)
{
	struct cordon_error *err = NULL;
	int r = audit_write(s->audit, "limit.exceeded", session_audit_id(s), "subtype", subtype,
			    &err);

	return settle(s, r, err, reterr);
}

static const char *event_of(const struct cordon_result *r)
{
	if (r->success)
		return "execute_complete";
	if (str_eq(r->kind, "timeout"))
		return "execute_timeout";
	return str_eq(r->kind, "cancelled") ? "execute_cancelled" : "execute_error";
}

static bool is_limit(const char *kind)
{
	static const char *const kinds[] = { "cpu", "memory", "processes", "file_size", "disk" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (str_eq(kind, kinds[i]))
			return true;
	return false;
}

int session_audit_result(struct cordon_session *s, const struct cordon_execute_options *o,
			 const struct cordon_result *r, struct cordon_error **reterr)
{
	if (!s->audit)
		return 0;
	int done = denials(s, r, reterr);
	if (done == 0 && r->out_truncated)
		done = limit(s, "stdout", reterr);
	if (done == 0 && r->err_truncated)
		done = limit(s, "stderr", reterr);
	if (done == 0 && is_limit(r->kind))
		done = limit(s, r->kind, reterr);
	if (done < 0)
		return done;
	struct audit_event *e = audit_begin(s->audit, event_of(r), session_audit_id(s));
	audit_add_seconds(e, "elapsed", (uint64_t)(r->time_ms * 1e6));
	audit_add_uint(e, "exit_code", (uint64_t)(r->exit_code < 0 ? 0 : r->exit_code));
	if (r->error) {
		audit_add_text(e, "error_kind", r->kind, strlen(r->kind));
		audit_add_text_cut(e, "error", r->error, strlen(r->error), AUDIT_RESULT_CHARS);
	}
	if (str_eq(r->kind, "timeout"))
		audit_add_text_cut(e, "command", o->code,
				   o->code_len ? o->code_len : strlen(o->code), AUDIT_RESULT_CHARS);
	return commit(s, e, reterr);
}

void session_audit_losses(struct cordon_session *s, struct cordon_result *r)
{
	char *text = NULL;
	uint64_t n = audit_take_lost(s->audit, &text);
	cleanup_free char *owned = text;

	if (n)
		(void)result_lose(r, text ? text : "lines of the audit log were lost");
}
