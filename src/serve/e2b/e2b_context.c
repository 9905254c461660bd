/* serve/e2b/e2b_context.c - see e2b_context.h. */
#include "serve/e2b/e2b_context.h"

#include <string.h>

#include "base/condvar.h"
#include "base/language_name.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "serve/e2b/e2b_entry.h"
#include "serve/e2b/e2b_state.h"
#include "session/session.h"

enum { LOOK_MS = 200 };

static void context_free(struct e2b_context *c)
{
	free(c->cwd);
	free(c);
}

/* The clients' word for a language. */
static int read_language(const char *name, struct e2b_context *c, struct cordon_error **reterr)
{
	struct language_name known;

	if (!name || !*name)
		name = "python";
	if (!language_name_find(name, &known))
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "there is no interpreter for '%.40s'; there are python, r, "
			       "javascript, typescript and bash",
			       name);
	c->guest = known.guest;
	c->is_typescript = known.is_typescript;
	const char *word = known.is_typescript           ? "typescript"
			   : str_eq(known.guest, "node") ? "javascript"
			   : str_eq(known.guest, "sh")   ? "bash"
							 : known.guest;
	(void)str_copy(c->language, sizeof(c->language), word);
	return 0;
}

/* Its interpreter starts with the first execution, so its directory can be set until then. */
static int open_context(struct e2b_sandbox *b, struct e2b_context *c, struct cordon_error **reterr)
{
	const char *name = c->is_default ? (c->is_typescript ? "typescript" : NULL) : c->id;
	int r = cordon_session_context(b->session, c->guest, name, &c->session, reterr);

	if (r < 0 || c->session == b->session || !c->cwd)
		return r;
	free(c->session->directory);
	c->session->directory = str_dup(c->cwd);
	return c->session->directory ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int make(struct e2b_sandbox *b, const char *language, const char *cwd, bool is_default,
		struct e2b_context **ret, struct cordon_error **reterr)
{
	struct e2b_context *c = mem_alloc(sizeof(*c));
	struct cordon_file_info info;

	if (!c)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = read_language(language, c, reterr);
	random_hex(c->id, 32);
	c->is_default = is_default;
	c->cwd = e2b_entry_path(cwd ? cwd : "");
	if (r == 0 && !c->cwd)
		r = err_set(reterr, CORDON_LIMIT, "cwd is too long");
	if (r == 0 && cwd && cordon_file_stat(b->session, c->cwd, &info, NULL) < 0)
		r = err_set(reterr, CORDON_INVALID, "cwd '%.200s' is not in the workspace", cwd);
	if (r == 0 && b->context_count >= E2B_CONTEXTS_MAX)
		r = err_set(reterr, CORDON_LIMIT, "a sandbox has at most %d contexts",
			    E2B_CONTEXTS_MAX);
	if (r == 0)
		r = open_context(b, c, reterr);
	if (r < 0) {
		context_free(c);
		return r;
	}
	c->refs = 1;
	*ret = c;
	return 0;
}

/* At the end of the list: the newest is last. Called with the lock held. */
static void add(struct e2b_sandbox *b, struct e2b_context *c)
{
	struct e2b_context **at = &b->contexts;

	while (*at)
		at = &(*at)->next;
	*at = c;
	b->context_count++;
}

/* Called with the lock held. */
static struct e2b_context *find(struct e2b_sandbox *b, const char *id,
				const struct e2b_context *like)
{
	for (struct e2b_context *c = b->contexts; c; c = c->next)
		if (!c->is_removed &&
		    (id ? str_eq(c->id, id) : c->is_default && str_eq(c->language, like->language)))
			return c;
	return NULL;
}

int e2b_context_get(struct e2b_sandbox *b, const char *id, const char *language,
		    struct e2b_context **ret, struct cordon_error **reterr)
{
	struct e2b_context like = { 0 }, *c = NULL, *made = NULL;
	int r = id ? 0 : read_language(language, &like, reterr);

	if (r < 0)
		return r;
	pthread_mutex_lock(&b->lock);
	c = find(b, id, &like);
	pthread_mutex_unlock(&b->lock);
	if (!c && id)
		return err_set(reterr, CORDON_NOT_FOUND, "there is no context '%.64s'", id);
	if (!c) {
		r = make(b, language, NULL, true, &made, reterr);
		if (r < 0)
			return r;
	}
	pthread_mutex_lock(&b->lock);
	c = find(b, id, &like); /* another thread may have made it */
	if (!c && made) {
		add(b, made);
		c = TAKE_PTR(made);
	}
	if (c)
		c->refs++;
	pthread_mutex_unlock(&b->lock);
	if (made)
		context_free(made);
	if (!c)
		return err_set(reterr, CORDON_NOT_FOUND, "the context was removed");
	*ret = c;
	return 0;
}

void e2b_context_put(struct e2b_sandbox *b, struct e2b_context *c)
{
	pthread_mutex_lock(&b->lock);
	bool is_last = --c->refs == 0;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
	if (is_last)
		context_free(c);
}

int e2b_context_begin(struct e2b_sandbox *b, struct e2b_context *c, struct httpd_exchange *stream,
		      const _Atomic bool *is_over, uint64_t *ret, struct cordon_error **reterr)
{
	int r = 0;

	pthread_mutex_lock(&b->lock);
	if (c->waiting >= E2B_WAITING_MAX)
		r = err_set(reterr, CORDON_LIMIT, "%d executions wait for this context already",
			    E2B_WAITING_MAX);
	c->waiting++;
	while (r == 0 && c->is_busy && b->state == E2B_RUNNING && !c->is_removed && !*is_over)
		(void)condvar_wait(&b->changed, &b->lock, deadline_after_ms(LOOK_MS));
	c->waiting--;
	if (r == 0 && (b->state != E2B_RUNNING || c->is_removed))
		r = err_set(reterr, CORDON_NOT_FOUND, "the context has ended");
	else if (r == 0 && *is_over)
		r = err_set(reterr, CORDON_CANCELLED, "the client is gone");
	if (r == 0) {
		c->is_busy = true;
		c->is_abandoned = false;
		c->stream = stream;
		*ret = ++c->executions;
	}
	pthread_mutex_unlock(&b->lock);
	return r;
}

void e2b_context_end(struct e2b_sandbox *b, struct e2b_context *c)
{
	pthread_mutex_lock(&b->lock);
	c->is_busy = false;
	c->stream = NULL;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

void e2b_context_abandon(struct e2b_sandbox *b, struct e2b_context *c)
{
	pthread_mutex_lock(&b->lock);
	c->is_abandoned = c->is_busy;
	if (c->is_busy)
		(void)cordon_session_cancel(c->session, NULL);
	pthread_mutex_unlock(&b->lock);
}

/* A cancel that comes before the code runs has no effect. */
void e2b_context_cancel_all(struct e2b_sandbox *b)
{
	pthread_mutex_lock(&b->lock);
	for (struct e2b_context *c = b->contexts; c; c = c->next)
		if (c->is_busy && c->is_abandoned)
			(void)cordon_session_cancel(c->session, NULL);
	pthread_mutex_unlock(&b->lock);
}

/* A thread that waits for a slow client must not hold the end up. Called with the lock held. */
static void kill_execution(struct e2b_context *c)
{
	if (c->stream)
		httpd_stream_hurry(c->stream);
	(void)cordon_session_kill(c->session, NULL);
}

void e2b_context_end_all(struct e2b_sandbox *b)
{
	pthread_mutex_lock(&b->lock);
	for (struct e2b_context *c = b->contexts; c; c = c->next)
		if (c->is_busy)
			kill_execution(c);
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

int e2b_context_restart_all(struct e2b_sandbox *b, struct cordon_error **reterr)
{
	pthread_mutex_lock(&b->lock);
	struct e2b_context *c = b->contexts;
	for (; c; c = c->next)
		c->executions = 0;
	pthread_mutex_unlock(&b->lock);
	/* The owner's restart makes a new sandbox with the same files; contexts follow. */
	return cordon_session_restart(b->session, reterr);
}

void e2b_context_free_all(struct e2b_sandbox *b)
{
	while (b->contexts) {
		struct e2b_context *c = b->contexts;

		b->contexts = c->next;
		context_free(c);
	}
}

/* ---- /contexts */

static json_t *describe(const struct e2b_context *c)
{
	return json_pack("{s:s, s:s, s:s}", "id", c->id, "language", c->language, "cwd", c->cwd);
}

/* Those that are there from the start are made when somebody asks. */
void e2b_context_list(struct httpd_exchange *x, void *arg)
{
	static const char *const first[] = { "python", "javascript" };
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_target(arg, x);
	json_t *all;

	if (!b)
		return;
	for (size_t i = 0; i < 2; i++) {
		struct e2b_context *c = NULL;

		if (e2b_context_get(b, NULL, first[i], &c, NULL) == 0)
			e2b_context_put(b, c);
	}
	all = json_array();
	pthread_mutex_lock(&b->lock);
	for (const struct e2b_context *c = b->contexts; c; c = c->next)
		if (!c->is_removed)
			json_array_append_new(all, describe(c));
	pthread_mutex_unlock(&b->lock);
	e2b_answer_json(x, 200, all);
}

void e2b_context_create(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *j = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_target(arg, x);
	const char *language = NULL, *cwd = NULL;
	struct e2b_context *c = NULL;

	if (!b)
		return;
	int r = e2b_read_json(x, &j, &e);
	if (r == 0 && !json_is_null(json_object_get(j, "language")))
		r = json_get_string(j, "", "language", &language, &e);
	if (r == 0 && !json_is_null(json_object_get(j, "cwd")))
		r = json_get_string(j, "", "cwd", &cwd, &e);
	if (r == 0)
		r = make(b, language, cwd, false, &c, &e);
	if (r < 0 || !c) {
		e2b_fail_error(x, e);
		return;
	}
	json_t *answer = describe(c);
	pthread_mutex_lock(&b->lock);
	add(b, c);
	pthread_mutex_unlock(&b->lock);
	e2b_answer_json(x, 200, answer);
}

/* The one that the path names; NULL: the answer is given. */
static struct e2b_context *named(struct e2b_sandbox *b, struct httpd_exchange *x)
{
	cleanup_error struct cordon_error *e = NULL;
	struct e2b_context *c = NULL;

	if (e2b_context_get(b, httpd_param(x, "context"), NULL, &c, &e) < 0)
		e2b_fail_error(x, e);
	return c;
}

/* Ends what it executes and waits for that. Called with the lock held. */
static void end_execution(struct e2b_sandbox *b, struct e2b_context *c)
{
	while (c->is_busy) {
		kill_execution(c);
		(void)condvar_wait(&b->changed, &b->lock, deadline_after_ms(LOOK_MS));
	}
}

void e2b_context_remove(struct httpd_exchange *x, void *arg)
{
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_target(arg, x);
	struct e2b_context *c = b ? named(b, x) : NULL;

	if (!c)
		return;
	pthread_mutex_lock(&b->lock);
	bool is_first = !c->is_removed;
	c->is_removed = true;
	end_execution(b, c);
	while (c->refs > 2) /* the list's and ours: others wait for a turn and leave */
		pthread_cond_wait(&b->changed, &b->lock);
	for (struct e2b_context **at = &b->contexts; *at && is_first; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			b->context_count--;
			c->refs--;
			break;
		}
	pthread_mutex_unlock(&b->lock);
	/* That of the session itself stays; its variables go. */
	if (is_first && c->session == b->session)
		(void)cordon_session_restart(c->session, NULL);
	else if (is_first)
		cordon_session_close(c->session);
	e2b_context_put(b, c);
	httpd_answer(x, 204, NULL, NULL, 0);
}

void e2b_context_restart(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_target(arg, x);
	struct e2b_context *c = b ? named(b, x) : NULL;
	static const _Atomic bool never;
	uint64_t number = 0;

	if (!c)
		return;
	pthread_mutex_lock(&b->lock);
	end_execution(b, c);
	pthread_mutex_unlock(&b->lock);
	int r = e2b_context_begin(b, c, NULL, &never, &number, &e);
	if (r == 0) {
		r = cordon_session_restart(c->session, &e);
		pthread_mutex_lock(&b->lock);
		c->executions = 0;
		pthread_mutex_unlock(&b->lock);
		e2b_context_end(b, c);
	}
	e2b_context_put(b, c);
	if (r < 0)
		e2b_fail_error(x, e);
	else
		httpd_answer(x, 204, NULL, NULL, 0);
}
