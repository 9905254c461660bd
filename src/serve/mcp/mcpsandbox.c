/* serve/mcp/mcpsandbox.c - MCP tools for whole sandboxes, and which sandbox a call means. */
#include <cordon/cordon.h>
#include <cordon/packages.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "policy/public.h"
#include "serve/mcp/mcplang.h"
#include "serve/mcp/mcptool.h"
#include "serve/rpc/session_quota.h"
#include "session/session.h"

enum { IMPLICIT_MAX = 16 }; /* sandboxes kept for calls without a sandbox_id */

/* Each sandbox has all of them, on the same files; only a pod has its own. */
static const char *const languages[] = { "python", "r", "node", "sh", NULL };

/* What a sandbox may use, for the quotas. */
static uint64_t memory_of(const struct mcpcall *c)
{
	return c->mcp->options.policy ? c->mcp->options.policy->p.memory_bytes : 0;
}

/* Without user namespaces, a sandbox has one language. */
static int open_session(struct mcpcall *c, const char *guest, struct client_session *cs,
			struct cordon_error **reterr)
{
	struct cordon_session_options o = { .guest = guest,
					    .policy = c->mcp->options.policy,
					    .languages = str_eq(guest, "pod") ? NULL : languages };
	struct cordon_session *session = NULL;
	cleanup_error struct cordon_error *e = NULL;
	struct span span;
	int r = client_session_charge(&c->mcp->sessions, cs, memory_of(c), &e);

	span_begin(&span, &(struct span_options){ .tracer = c->mcp->options.tracer,
						  .parent = &c->span->self,
						  .name = "session.open" });
	if (r == 0)
		r = cordon_session_open(&o, &session, &e);
	if (r == -CORDON_UNSUPPORTED && o.languages) {
		o.languages = NULL;
		r = cordon_session_open(&o, &session, reterr);
	} else if (r < 0 && reterr) {
		*reterr = TAKE_PTR(e);
	}
	span_set_outcome(&span, guest, r < 0 ? cordon_code_name((enum cordon_code) - r) : "success",
			 -1);
	span_end(&span);
	if (r < 0) {
		client_session_fail(&c->mcp->sessions, cs);
		return r;
	}
	cs->has_contexts = o.languages;
	client_session_open_session(&c->mcp->sessions, cs, session);
	mcpcall_take_session(c, cs);
	return 0;
}

int mcptool_open(struct mcpcall *c, const char *guest, const char *label,
		 enum mcptool_origin origin, struct cordon_error **reterr)
{
	struct client_session *cs = NULL;

	if (label && strlen(label) > CLIENT_SESSION_LABEL_MAX)
		return err_set(reterr, CORDON_INVALID, "a label has at most %d bytes",
			       CLIENT_SESSION_LABEL_MAX);
	if (origin == MCPTOOL_IMPLICIT)
		client_sessions_expire(&c->mcp->sessions, UINT64_MAX, true, IMPLICIT_MAX - 1);
	int r = client_session_new(&c->mcp->sessions, false, &cs, reterr);
	if (r < 0)
		return r;
	cs->label = label ? json_string(label) : NULL;
	cs->is_implicit = origin == MCPTOOL_IMPLICIT;
	cs->is_default = origin == MCPTOOL_DEFAULT;
	(void)str_copy(cs->guest, sizeof(cs->guest), guest);
	return open_session(c, guest, cs, reterr);
}

struct search {
	const char *guest;
	char id[CLIENT_SESSION_ID_BYTES];
};

/* A pod is a default sandbox of its own. */
static void match_default(const struct client_session *s, void *arg_search)
{
	struct search *x = arg_search;

	if (s->is_default &&
	    (str_eq(s->guest, x->guest) || (s->has_contexts && !str_eq(x->guest, "pod"))))
		(void)str_copy(x->id, sizeof(x->id), s->id);
}

/* Remembers that this default sandbox was opened; true: for the second time. Called with `opening`
 * held. */
static bool was_opened(struct mcp *m, const struct client_session *s)
{
	static const char *const guests[] = { "python", "r", "node", "sh", "pod" };
	unsigned bit = 1U << 8, before = m->opened;

	for (unsigned i = 0; !s->has_contexts && i < sizeof(guests) / sizeof(*guests); i++)
		if (str_eq(s->guest, guests[i]))
			bit = 1U << i;
	m->opened |= bit;
	return before & bit;
}

/* Python comes first, because its template makes it ready in milliseconds. Where it is not
 * installed, or a sandbox has one language only, it is the call's own. */
static int open_default(struct mcpcall *c, const char *guest, struct cordon_error **reterr)
{
	int r = str_eq(guest, "pod") ? -CORDON_UNSUPPORTED
				     : mcptool_open(c, "python", "default", MCPTOOL_DEFAULT, NULL);

	if (r == 0 && !c->cs->has_contexts && !str_eq(guest, "python"))
		client_session_close(&c->mcp->sessions, mcpcall_leave_session(c));
	if (!c->cs)
		r = mcptool_open(c, guest, "default", MCPTOOL_DEFAULT, reterr);
	if (r == 0) {
		c->is_replaced = was_opened(c->mcp, c->cs);
		c->is_apart = !c->cs->has_contexts && !str_eq(guest, "pod");
	}
	return r;
}

/* One thread at a time, so that parallel calls share the sandbox. */
static int find_default(struct mcpcall *c, const char *guest, struct cordon_error **reterr)
{
	struct search x = { .guest = guest };
	int r = 0;

	pthread_mutex_lock(&c->mcp->opening);
	client_sessions_visit(&c->mcp->sessions, match_default, &x);
	if (x.id[0])
		mcpcall_take_session(
			c, client_session_get(&c->mcp->sessions, x.id, CLIENT_SESSION_SESSION));
	if (!c->cs)
		r = open_default(c, guest, reterr);
	pthread_mutex_unlock(&c->mcp->opening);
	return r;
}

int mcptool_find(struct mcpcall *c, const char *guest, struct cordon_error **reterr)
{
	const char *id = mcpcall_arg(c, "sandbox_id");

	if (id) {
		struct client_session *s =
			client_session_get(&c->mcp->sessions, id, CLIENT_SESSION_SESSION);
		mcpcall_take_session(c, s);
		return s ? 0
			 : err_set(reterr, CORDON_NOT_FOUND,
				   "there is no sandbox '%.100s': it was never made, was "
				   "destroyed, "
				   "or was unused for longest when room was needed",
				   id);
	}
	if (c->mcp->options.is_stateless)
		return mcptool_open(c, guest, NULL, MCPTOOL_IMPLICIT, reterr);
	return find_default(c, guest, reterr);
}

int mcptool_find_named(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *id = NULL;
	int r = c->may_use_default && !c->mcp->options.is_stateless
			? 0
			: mcpcall_need(c, "sandbox_id", &id, reterr);

	return r < 0 ? r : mcptool_find(c, "sh", reterr);
}

int mcptool_create(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *name = mcpcall_arg(c, "language");
	struct mcplang language = { .guest = "sh" };
	int r = name ? mcplang_find(name, &language, reterr) : 0;

	if (r == 0)
		r = mcptool_open(c, language.guest, mcpcall_arg(c, "label"), MCPTOOL_NAMED, reterr);
	if (r == 0)
		json_object_set_new(c->structured, "sandbox_id", json_string(c->cs->id));
	return r;
}

struct sandboxes {
	const struct client_sessions *all;
	json_t *list;
};

static json_t *names_of(const struct client_session *s)
{
	json_t *a = json_array();

	for (const char *const *name = languages; s->has_contexts && *name; name++)
		json_array_append_new(a, json_string(*name));
	if (!s->has_contexts)
		json_array_append_new(a, json_string(s->guest));
	return a;
}

static void add_sandbox(const struct client_session *s, void *arg_sandboxes)
{
	struct sandboxes *x = arg_sandboxes;
	bool is_busy = client_session_is_busy(x->all, s);
	json_t *j = json_object();

	json_object_set_new(j, "sandbox_id", json_string(s->id));
	json_object_set(j, "label", s->label ? s->label : json_null());
	json_object_set_new(j, "language", json_string(s->guest));
	json_object_set_new(j, "languages", names_of(s));
	json_object_set_new(j, "state",
			    json_string(s->is_suspended ? "suspended"
					: is_busy       ? "running"
							: "idle"));
	json_array_append_new(x->list, j);
}

int mcptool_sandboxes(struct mcpcall *c, struct cordon_error **reterr)
{
	struct sandboxes x = { &c->mcp->sessions, json_array() };

	(void)reterr;
	client_sessions_visit(&c->mcp->sessions, add_sandbox, &x);
	json_object_set_new(c->structured, "sandboxes", x.list);
	return 0;
}

int mcptool_destroy(struct mcpcall *c, struct cordon_error **reterr)
{
	int r = mcptool_find_named(c, reterr);

	if (r < 0)
		return r;
	client_session_close(&c->mcp->sessions, mcpcall_leave_session(c));
	cleanup_free char *loss = client_sessions_take_loss(&c->mcp->sessions);
	return loss ? err_set(reterr, CORDON_OS, "%s", loss) : 0;
}

int mcptool_fork(struct mcpcall *c, struct cordon_error **reterr)
{
	struct client_sessions *sessions = &c->mcp->sessions;
	struct cordon_session *session = NULL;
	struct client_session *cs = NULL;
	int r = mcptool_find_named(c, reterr);

	if (r == 0)
		r = client_session_new(sessions, true, &cs, reterr);
	if (r < 0 || !cs)
		return r;
	r = client_session_charge(sessions, cs, session_memory_bytes(c->cs->session), reterr);
	if (r == 0)
		r = cordon_session_fork(c->cs->session, &session, reterr);
	if (r < 0) {
		client_session_fail(sessions, cs);
		return r;
	}
	(void)str_copy(cs->guest, sizeof(cs->guest), c->cs->guest);
	cs->has_contexts = c->cs->has_contexts;
	client_session_open_session(sessions, cs, session);
	json_object_set_new(c->structured, "sandbox_id", json_string(cs->id));
	client_session_put(sessions, cs);
	return 0;
}

int mcptool_suspend(struct mcpcall *c, struct cordon_error **reterr)
{
	int r = mcptool_find_named(c, reterr);

	return r < 0 ? r : client_session_suspend(&c->mcp->sessions, c->cs, reterr);
}

int mcptool_resume(struct mcpcall *c, struct cordon_error **reterr)
{
	int r = mcptool_find_named(c, reterr);

	if (r == 0)
		client_session_resume(&c->mcp->sessions, c->cs);
	return r;
}

static int find_context(struct mcpcall *c, const char *guest, struct client_session **ret,
			struct cordon_error **reterr)
{
	if (!c->cs->has_contexts || !guest || str_eq(guest, c->cs->guest)) {
		*ret = client_session_ref(&c->mcp->sessions, c->cs);
		return 0;
	}
	return client_session_context(&c->mcp->sessions, c->cs, guest, NULL, ret, reterr);
}

static bool is_over(void *arg)
{
	return mcpcall_is_cancelled(arg);
}

int mcptool_begin(struct mcpcall *c, const char *guest, struct client_session **ret,
		  struct cordon_error **reterr)
{
	struct client_session *context = NULL;
	int r = find_context(c, guest, &context, reterr);

	if (r < 0)
		return r;
	r = client_session_begin_in_turn(&c->mcp->sessions, context, c->number, is_over, c, reterr);
	if (r < 0)
		client_session_put(&c->mcp->sessions, context);
	else
		*ret = context;
	return r;
}

void mcptool_end(struct mcpcall *c, struct client_session *context)
{
	client_session_end(&c->mcp->sessions, context);
	client_session_put(&c->mcp->sessions, context);
}

static int restart_context(struct mcpcall *c, const char *guest, struct cordon_error **reterr)
{
	struct client_session *context = NULL;
	int r = mcptool_begin(c, guest, &context, reterr);

	if (r < 0)
		return r;
	r = cordon_session_restart(context->session, reterr);
	mcptool_end(c, context);
	return r;
}

/* The sandbox with all its interpreters, or one language of it. */
static int restart(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *name = mcpcall_arg(c, "language");
	struct mcplang language = { 0 };
	int r = name ? mcplang_find(name, &language, reterr) : 0;

	if (r == 0)
		r = mcptool_find_named(c, reterr);
	if (r == 0)
		r = restart_context(c, language.guest, reterr);
	if (r == 0)
		c->text = str_printf("%s started anew: variables and processes are gone, files "
				     "are kept.",
				     name && c->cs->has_contexts ? "The interpreter was"
								 : "The sandbox was");
	return r;
}

/* Commas and white space separate names. A comma in a version (a>=1,<2) does not. */
static int split_names(const char *text, struct strlist *ret)
{
	while (*(text += strspn(text, ", \t\n"))) {
		size_t len = strcspn(text, ", \t\n");
		while (text[len] == ',' && text[len + 1] && strchr("<>=!~", text[len + 1]))
			len += 1 + strcspn(text + len + 1, ", \t\n");
		cleanup_free char *name = str_ndup(text, len);
		if (!name || strlist_add(ret, name) < 0)
			return -CORDON_NOMEM;
		text += len;
	}
	return 0;
}

static int install(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *name = mcpcall_arg(c, "language"), *text = NULL;
	struct mcplang language = { .guest = "python" };
	cleanup_strlist struct strlist names = { 0 };
	cleanup_free char *said = NULL;
	int r = mcpcall_need(c, "packages", &text, reterr);

	if (r == 0 && name)
		r = mcplang_find(name, &language, reterr);
	if (r == 0)
		r = mcptool_find_named(c, reterr);
	if (r == 0 && split_names(text, &names) < 0)
		r = err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r < 0)
		return r;
	struct cordon_install_options o = { .language = language.guest,
					    .names = (const char *const *)names.items };
	r = client_session_begin_in_turn(&c->mcp->sessions, c->cs, c->number, is_over, c, reterr);
	if (r == 0) {
		r = client_session_pass(&c->mcp->sessions, c->cs, reterr);
		if (r == 0)
			r = cordon_session_install(c->cs->session, &o, &said, reterr);
		client_session_end(&c->mcp->sessions, c->cs);
	}
	if (r == 0)
		c->text = str_printf("installed: %s", said);
	return r;
}

int mcptool_manage(struct mcpcall *c, struct cordon_error **reterr)
{
	static const struct {
		const char *name;
		mcptool_fn fn;
		bool may_use_default;
		const char *said; /* if it answers nothing else */
	} actions[] = {
		{ "list", mcptool_sandboxes, false, NULL },
		{ "create", mcptool_create, false, NULL },
		{ "install", install, true, NULL },
		{ "restart", restart, true, NULL },
		{ "snapshot", mcptool_snapshot, true, NULL },
		{ "restore", mcptool_restore, true,
		  "The files and the environment are those of the snapshot; variables and "
		  "processes are gone." },
		{ "fork", mcptool_fork, true, NULL },
		{ "export", mcptool_export, true, NULL },
		{ "import", mcptool_import, false, NULL },
		{ "suspend", mcptool_suspend, false,
		  "The sandbox is suspended: calls wait until it is resumed." },
		{ "resume", mcptool_resume, false, "The sandbox is resumed." },
		{ "destroy", mcptool_destroy, false, "The sandbox and its files are gone." },
	};
	const char *action = NULL;
	int r = mcpcall_need(c, "action", &action, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
		if (str_eq(action, actions[i].name)) {
			c->may_use_default = actions[i].may_use_default;
			r = actions[i].fn(c, reterr);
			if (r == 0 && !c->text && actions[i].said)
				c->text = str_dup(actions[i].said);
			return r;
		}
	return err_set(
		reterr, CORDON_INVALID,
		"the action is list, create, install, restart, snapshot, restore, fork, export, "
		"import, suspend, resume or destroy");
}
