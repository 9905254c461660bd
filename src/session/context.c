/* session/context.c - see context.h. */
#include "session/context.h"

#include <errno.h>
#include <string.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "session/place.h"
#include "session/session_audit.h"
#include "session/session_process.h"

/* A cancel that comes before an execution has begun is lost, so it is repeated. */
enum { SHUT_AGAIN_MS = 5 };

static bool is_context_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len < CONTEXT_NAME_BYTES && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
		       len;
}

static struct cordon_session *find(struct cordon_session *root, enum guest_kind kind,
				   const char *name)
{
	for (struct cordon_session *c = root->contexts; c; c = c->next_context)
		if (c->kind == kind && str_eq(c->name, name))
			return c;
	return NULL;
}

/* A context begins with its own environment: what a shell must make as it was is so there. */
static json_t *without_resets(json_t *env)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(env, next, name, value) if (json_is_false(value))(void)
		json_object_del(env, name);
	return env;
}

/* Everything of a context that is not the owner's. */
static int init(struct cordon_session *c, struct cordon_session *root, enum guest_kind kind,
		struct cordon_error **reterr)
{
	c->owner = root;
	c->kind = kind;
	int r = session_init_parts(c, reterr);
	if (r == 0)
		r = policy_copy(&c->policy, &root->policy, reterr);
	if (r < 0)
		return r;
	c->is_cold = true;
	c->directory = str_dup(root->directory);
	c->tools = root->tools ? cordon_tools_ref(root->tools) : NULL;
	c->pre_execute = root->pre_execute;
	c->pre_execute_arg = root->pre_execute_arg;
	c->approval = root->approval;
	c->approval_arg = root->approval_arg;
	c->audit = root->audit;
	c->env = without_resets(session_env(root));
	if (root->directory && !c->directory)
		return err_errno(reterr, ENOMEM, "open a context");
	struct tool_calls_options calls = { .tools = c->tools,
					    .policy = &c->policy,
					    .session = session_audit_id(c),
					    .audit = c->audit,
					    .approval = c->approval,
					    .approval_arg = c->approval_arg };
	return tool_calls_new(&calls, &c->calls, reterr);
}

/* The list's lock is held. */
static int add(struct cordon_session *root, struct cordon_session *c, struct cordon_error **reterr)
{
	if (root->context_count >= CONTEXTS_MAX)
		return err_set(reterr, CORDON_LIMIT,
			       "a session has at most %d contexts and commands at a time",
			       CONTEXTS_MAX);
	root->context_count++;
	c->next_context = root->contexts;
	root->contexts = c;
	return 0;
}

/* The list's lock is held. */
static int make(struct cordon_session *root, enum guest_kind kind, const char *name,
		struct cordon_session **ret, struct cordon_error **reterr)
{
	struct cordon_session *c = mem_alloc(sizeof(*c));

	if (!c)
		return err_errno(reterr, ENOMEM, "open a context");
	(void)str_copy(c->name, sizeof(c->name), name);
	c->is_once = !name[0];
	int r = init(c, root, kind, reterr);
	if (r == 0)
		r = add(root, c, reterr);
	if (r < 0) {
		(void)session_destroy(c, NULL);
		return r;
	}
	*ret = c;
	return 0;
}

int context_new(struct cordon_session *root, enum guest_kind kind, const char *name,
		struct cordon_session **ret, struct cordon_error **reterr)
{
	pthread_mutex_lock(&root->contexts_lock);
	int r = session_is_closed(root) ? err_set(reterr, CORDON_STATE, "Session is not running.")
					: make(root, kind, name, ret, reterr);
	pthread_mutex_unlock(&root->contexts_lock);
	return r;
}

/* The owner waits until a context that leaves its list has been freed too. */
static void unlink_context(struct cordon_session *c)
{
	struct cordon_session *root = c->owner;

	pthread_mutex_lock(&root->contexts_lock);
	for (struct cordon_session **p = &root->contexts; *p; p = &(*p)->next_context)
		if (*p == c) {
			*p = c->next_context;
			root->leaving++;
			break;
		}
	pthread_mutex_unlock(&root->contexts_lock);
}

void context_close(struct cordon_session *c)
{
	struct cordon_session *root = c->owner;

	session_shut(c);
	unlink_context(c);
	if (c->name[0])
		(void)session_audit_session(c, "context_close", NULL);
	(void)session_destroy(c, NULL);
	pthread_mutex_lock(&root->contexts_lock);
	root->leaving--;
	root->context_count--;
	pthread_mutex_unlock(&root->contexts_lock);
}

/* Tells all contexts to end. True: none executes, and those that end by themselves, commands, have
 * been freed. */
static bool are_quiet(struct cordon_session *root)
{
	pthread_mutex_lock(&root->contexts_lock);
	bool is_quiet = root->leaving == 0;
	for (struct cordon_session *c = root->contexts; c; c = c->next_context) {
		is_quiet = !session_doom(c) && !c->is_once && is_quiet;
	}
	pthread_mutex_unlock(&root->contexts_lock);
	return is_quiet;
}

/* The list is not locked meanwhile: a callback of an execution may look at it. */
void context_shut_all(struct cordon_session *root)
{
	while (!are_quiet(root)) {
		pthread_mutex_lock(&root->lock);
		(void)condvar_wait(&root->idle, &root->lock, deadline_after_ms(SHUT_AGAIN_MS));
		pthread_mutex_unlock(&root->lock);
	}
	session_process_end_all(root);
}

void context_free_all(struct cordon_session *root)
{
	root->processes = session_process_free_all(root->processes);
	while (root->contexts) {
		struct cordon_session *c = root->contexts;

		root->contexts = c->next_context;
		(void)session_destroy(c, NULL);
	}
}

int cordon_session_context(struct cordon_session *s, const char *language, const char *name,
			   struct cordon_session **ret, struct cordon_error **reterr)
{
	struct cordon_session *root = session_root(s), *c = NULL;
	enum guest_kind kind = language ? guest_from_name(language) : root->kind;
	bool is_new = false;

	if (!name)
		name = "default";
	if (kind == GUEST_KIND_NONE)
		return err_set(reterr, CORDON_INVALID,
			       "unknown language '%.64s'; there are: python, r, node, sh",
			       language);
	if (!is_context_name(name))
		return err_set(reterr, CORDON_INVALID,
			       "a context's name has 1 to %d letters, digits, '_', '.' and '-'",
			       CONTEXT_NAME_BYTES - 1);
	int r = place_check_language(root, kind, reterr);
	if (r < 0)
		return r;
	if (kind == root->kind && str_eq(name, "default")) {
		*ret = root;
		return 0;
	}
	pthread_mutex_lock(&root->contexts_lock);
	if (session_is_closed(root))
		r = err_set(reterr, CORDON_STATE, "Session is not running.");
	else if (!(c = find(root, kind, name))) {
		r = make(root, kind, name, &c, reterr);
		is_new = r == 0;
	}
	pthread_mutex_unlock(&root->contexts_lock);
	if (is_new)
		r = session_audit_session(c, "context_open", reterr);
	if (r == 0)
		*ret = c;
	else if (is_new)
		context_close(c);
	return r;
}

static json_t *describe_one(struct cordon_session *c)
{
	pthread_mutex_lock(&c->lock);
	const char *state = c->is_busy ? "executing" : c->engine ? "idle" : "not started";
	pthread_mutex_unlock(&c->lock);
	return json_pack("{s:s, s:s, s:s, s:s}", "language", guest_name(c->kind), "name",
			 c->owner ? c->name : "default", "session", c->id, "state", state);
}

void context_describe(struct cordon_session *s, json_t *o)
{
	struct cordon_session *root = session_root(s);

	if (!root->languages)
		return;
	json_t *languages = json_array(), *contexts = json_array();
	for (enum guest_kind kind = GUEST_KIND_PYTHON; kind <= GUEST_KIND_POD; kind++)
		if (root->languages & 1U << kind)
			json_array_append_new(languages, json_string(guest_name(kind)));
	json_array_append_new(contexts, describe_one(root));
	pthread_mutex_lock(&root->contexts_lock);
	for (struct cordon_session *c = root->contexts; c; c = c->next_context)
		if (c->name[0])
			json_array_append_new(contexts, describe_one(c));
	pthread_mutex_unlock(&root->contexts_lock);
	json_object_set_new(o, "languages", languages);
	json_object_set_new(o, "contexts", contexts);
	json_object_set_new(o, "processes", session_process_json(root));
	if (s->owner)
		json_object_set_new(o, "sandbox", json_string(root->id));
}

int context_resolve(struct cordon_session *root, const struct context_verdict *v,
		    struct cordon_error **reterr)
{
	int r = -CORDON_NOT_FOUND;

	pthread_mutex_lock(&root->contexts_lock);
	for (struct cordon_session *c = root->contexts; c && r == -CORDON_NOT_FOUND;
	     c = c->next_context)
		r = tool_calls_resolve(c->calls, v->id, v->allow, v->value_json, v->reason, NULL);
	pthread_mutex_unlock(&root->contexts_lock);
	if (r != -CORDON_NOT_FOUND)
		return r < 0 ? err_set(reterr, (enum cordon_code) - r, "the approval failed") : 0;
	return tool_calls_resolve(root->calls, v->id, v->allow, v->value_json, v->reason, reterr);
}
