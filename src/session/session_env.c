/* session/session_env.c - the environment that a session gives its executions. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "session/session.h"

json_t *session_env(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	json_t *env = json_deep_copy(s->env);
	pthread_mutex_unlock(&s->lock);
	return env;
}

void session_exchange_env(struct cordon_session *s, json_t *next)
{
	pthread_mutex_lock(&s->lock);
	cleanup_json json_t *old = s->env;
	s->env = next;
	s->is_env_new = true;
	pthread_mutex_unlock(&s->lock);
}

bool session_tells_env(const struct cordon_session *s)
{
	return s->kind == GUEST_KIND_SH || s->kind == GUEST_KIND_POD;
}

json_t *session_take_env(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	bool is_due = s->is_env_new || !session_tells_env(s);
	json_t *env = is_due ? json_deep_copy(s->env) : NULL;
	s->is_env_new = false;
	pthread_mutex_unlock(&s->lock);
	return env;
}

void session_resend_env(struct cordon_session *s)
{
	pthread_mutex_lock(&s->lock);
	s->is_env_new = true;
	pthread_mutex_unlock(&s->lock);
}

bool session_is_variable(const char *name)
{
	bool good = name[0] && !(name[0] >= '0' && name[0] <= '9');

	for (const char *p = name; *p; p++)
		good = good && ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' ||
				(*p >= '0' && *p <= '9'));
	return good;
}

int cordon_session_setenv(struct cordon_session *s, const char *name, const char *value,
			  struct cordon_error **reterr)
{
	if (!session_is_variable(name))
		return err_set(reterr, CORDON_INVALID, "Invalid environment variable name: '%s'",
			       name);
	json_t *set = value ? json_string_lossy(value, strlen(value)) : json_null();
	pthread_mutex_lock(
		&s->lock); /* held throughout, so that two callers do not lose a change */
	json_t *next = s->env ? json_copy(s->env) : json_object();
	int r = json_object_set_new(next, name, set);
	cleanup_json json_t *old = r == 0 ? s->env : next;
	if (r == 0) {
		s->env = next;
		s->is_env_new = true;
	}
	pthread_mutex_unlock(&s->lock);
	return r == 0 ? 0 : err_errno(reterr, ENOMEM, "set an environment variable");
}

char *cordon_session_getenv(struct cordon_session *s, const char *name)
{
	session_learn_env(s);
	cleanup_json json_t *env = session_env(s);

	return str_dup(json_string_value(json_object_get(env, name)));
}
