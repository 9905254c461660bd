/* session/inspect.c - what a prompt asks the session's own guest about code that it does not run
 * yet: whether it is complete, and how its last word may go on. Also what a shell has exported. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "session/execution.h"
#include "session/renewal.h"
#include "session/session_execute.h"

enum { INSPECT_MS = 10000, CODE_MAX = 1 << 20, ANSWER_MAX = 1 << 20 };
enum { MATCHES_MAX = 500, MATCH_BYTES = 512 };
enum { VARIABLES_MAX = 1000 };

static const char *const questions[] = {
	[CORDON_IS_COMPLETE] = "is_complete", [CORDON_COMPLETE] = "complete"
};

/* The guest's answer as a new object, with nothing in it that was not asked for. An answer that
 * makes no sense is no error: the prompt does without it. */
static json_t *checked_status(const json_t *said)
{
	static const char *const known[] = { "complete", "incomplete", "invalid" };
	const char *status = json_string_value(json_object_get(said, "status"));

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (str_eq(status, known[i]))
			return json_pack("{s:s}", "status", known[i]);
	return json_pack("{s:s}", "status", "unknown");
}

static bool is_match(const json_t *m)
{
	size_t len = json_string_length(m);

	return json_is_string(m) && len > 0 && len <= MATCH_BYTES &&
	       !memchr(json_string_value(m), '\0', len);
}

/* The token must be what the code ends with: the matches take its place. */
static json_t *checked_matches(const json_t *said, const char *code, size_t len)
{
	const json_t *token = json_object_get(said, "token");
	json_t *list = json_array(), *m;
	size_t i, n = json_string_length(token);
	bool is_end = json_is_string(token) && n <= len && n <= MATCH_BYTES &&
		      memcmp(code + len - n, json_string_value(token), n) == 0;

	json_array_foreach(json_object_get(said, "matches"), i, m)
	{
		if (is_end && i < MATCHES_MAX && is_match(m))
			json_array_append(list, m);
	}
	return json_pack("{s:s, s:o}", "token", is_end ? json_string_value(token) : "", "matches",
			 list);
}

/* The holder has set s->question. */
static int ask(struct cordon_session *s, const struct cordon_inspect_options *o,
	       struct cordon_result **ret, bool *ret_alive, struct cordon_error **reterr)
{
	struct cordon_execute_options run = { .code = o->code,
					      .code_len = o->code_len,
					      .timeout_ms = INSPECT_MS,
					      .output = o->output,
					      .output_arg = o->output_arg,
					      .discard_output = true };
	bool had_stdin = s->engine->had_stdin;

	int r = execution_run(s, &run, ret, ret_alive, reterr);
	s->engine->had_stdin = had_stdin;
	return r;
}

/* The same with the session held, and with a new guest where the old one did not answer. */
static int ask_held(struct cordon_session *s, const struct cordon_inspect_options *o,
		    struct cordon_result **ret, struct cordon_error **reterr)
{
	cleanup_free char *lost = NULL;
	const char *why = NULL;
	bool alive = false;
	double start_ms = 0;
	int r = session_hold(s, "the session is busy", reterr);

	if (r < 0)
		return r;
	if (s->workspace && workspace_is_offloaded(s->workspace))
		r = err_set(reterr, CORDON_STATE, "the session is offloaded");
	if (r == 0)
		r = session_have_guest(s, &why, &lost, &start_ms, reterr);
	s->question = questions[o->question];
	if (r == 0)
		r = ask(s, o, ret, &alive, reterr);
	s->question = NULL;
	if (r == 0 && !alive)
		renewal_after(s, *ret);
	if (r == 0)
		(*ret)->restarted |= why != NULL;
	session_let_go(s);
	return r;
}

static bool is_asked_right(const struct cordon_inspect_options *o)
{
	return (unsigned)o->question < sizeof(questions) / sizeof(*questions) && o->code &&
	       o->code_len <= CODE_MAX && !memchr(o->code, '\0', o->code_len);
}

int cordon_session_inspect(struct cordon_session *s, const struct cordon_inspect_options *o,
			   char **ret_json, struct cordon_error **reterr)
{
	cleanup_result struct cordon_result *result = NULL;
	cleanup_json json_t *said = NULL, *answer = NULL;

	if (!is_asked_right(o))
		return err_set(reterr, CORDON_INVALID, "there is no code to inspect");
	int r = ask_held(s, o, &result, reterr);
	if (r < 0 || !result)
		return r;
	if (result->success && result->value_json)
		(void)json_parse(result->value_json, strlen(result->value_json), ANSWER_MAX, &said,
				 NULL);
	answer = o->question == CORDON_IS_COMPLETE ? checked_status(said)
						   : checked_matches(said, o->code, o->code_len);
	if (answer && result->restarted)
		json_object_set_new(answer, "restarted", json_true());
	*ret_json = answer ? json_text(answer, NULL) : NULL;
	return *ret_json ? 0 : err_errno(reterr, ENOMEM, "inspect");
}

/* ---- exported variables */

/* What the guest tells as a new object; NULL: it makes no sense. */
static json_t *checked_variables(const json_t *said)
{
	json_t *all = json_object_get(said, "environment"), *value;
	cleanup_json json_t *env = json_object();
	const char *name;

	if (!json_is_object(all) || json_object_size(all) > VARIABLES_MAX)
		return NULL;
	json_object_foreach(all, name, value)
	{
		bool is_good = json_is_null(value) ||
			       (json_is_string(value) &&
				strlen(json_string_value(value)) == json_string_length(value));
		if (!is_good || !session_is_variable(name))
			continue;
		if (json_object_set_new(env, name, json_copy(value)) != 0)
			return NULL;
	}
	return TAKE_PTR(env);
}

/* A change of the host that came in between wins: the guest is asked again later. */
static void take_variables(struct cordon_session *s, json_t *env)
{
	pthread_mutex_lock(&s->lock);
	cleanup_json json_t *old = s->is_env_new ? env : s->env;
	s->is_env_old = s->is_env_new;
	if (old != env)
		s->env = env;
	pthread_mutex_unlock(&s->lock);
}

static void learn(struct cordon_session *s)
{
	struct cordon_inspect_options o = { .code = "" };
	cleanup_result struct cordon_result *result = NULL;
	cleanup_json json_t *said = NULL;
	bool alive = false;

	s->question = "environment";
	int r = ask(s, &o, &result, &alive, NULL);
	s->question = NULL;
	if (r < 0 || !result)
		return;
	if (!alive)
		renewal_after(s, result);
	if (result->success && result->value_json)
		(void)json_parse(result->value_json, strlen(result->value_json), ANSWER_MAX, &said,
				 NULL);
	json_t *env = checked_variables(said);
	if (env)
		take_variables(s, env);
}

void session_learn_env_held(struct cordon_session *s)
{
	if (session_tells_env(s) && s->is_env_old && s->engine && s->workspace &&
	    !workspace_is_offloaded(s->workspace))
		learn(s);
}

void session_learn_env(struct cordon_session *s)
{
	if (!session_tells_env(s) || session_hold(s, "the session is busy", NULL) < 0)
		return;
	session_learn_env_held(s);
	session_let_go(s);
}
