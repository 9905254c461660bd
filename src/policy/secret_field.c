/* policy/secret_field.c - secrets: values that the gateway puts into requests and the guest never
 * sees. */
#include <sodium.h>
#include <string.h>

#include "policy/array.h"
#include "policy/name.h"
#include "policy/pattern.h"

enum { SECRETS_MAX = 64, VALUE_MAX_BYTES = 16 * 1024 };

static void item_done(void *item)
{
	struct policy_secret *s = item;

	if (s->value)
		sodium_memzero(s->value, strlen(s->value));
	free(s->name);
	free(s->value);
	free(s->host);
	free(s->header);
	*s = (struct policy_secret){ 0 };
}

/* Errors must never contain the value. */
static int set_value(struct policy_secret *s, const char *where, const char *value, const char *env,
		     struct cordon_error **reterr)
{
	if (!value == !env)
		return err_set(reterr, CORDON_INVALID,
			       "%s needs either value or env, the name of a variable of the host",
			       where);
	if (env) {
		value = name_is_variable(env) ? getenv(env) : NULL;
		if (!value)
			return err_set(reterr, CORDON_INVALID,
				       "%s: the host's environment has no variable '%.80s'", where,
				       env);
	}
	if (!value[0] || strlen(value) > VALUE_MAX_BYTES || strpbrk(value, "\r\n") ||
	    !str_is_utf8(value, strlen(value)))
		return err_set(reterr, CORDON_INVALID,
			       "%s: the value must be one line of 1 to %d bytes of UTF-8", where,
			       VALUE_MAX_BYTES);
	s->value = str_dup(value);
	return s->value ? 0 : kind_nomem(reterr);
}

static int set_host(struct policy_secret *s, const char *where, const char *host,
		    struct cordon_error **reterr)
{
	uint16_t port = 0;
	int r = pattern_parse(host, where, &s->host, &port, reterr);

	if (r == 0 && (port || strchr(s->host, '*') || strchr(s->host, '/')))
		r = err_set(reterr, CORDON_INVALID,
			    "%s: host must be one exact host name, got: %.100s", where, host);
	return r;
}

enum { NAME, VALUE, ENV, HOST, HEADER, KEY_COUNT };
static const char *const keys[KEY_COUNT] = { "name", "value", "env", "host", "header" };

static int read_texts(const char *where, const json_t *j, const char *text[static KEY_COUNT],
		      struct cordon_error **reterr)
{
	int r = array_keys(j, where, keys, KEY_COUNT, reterr);

	for (size_t i = 0; r == 0 && i < KEY_COUNT; i++) {
		const json_t *member = json_object_get(j, keys[i]);
		if (member)
			text[i] = kind_string(member);
		if (member && !text[i])
			r = err_set(reterr, CORDON_INVALID, "%s.%s must be a text", where, keys[i]);
	}
	return r;
}

static int item_read(void *item, const char *where, const json_t *j, struct cordon_error **reterr)
{
	struct policy_secret *s = item;
	const char *text[KEY_COUNT] = { [HEADER] = "Authorization" };
	int r;

	if (!json_is_object(j))
		return err_set(reterr, CORDON_INVALID,
			       "%s must be an object with name, host, and value or env", where);
	r = read_texts(where, j, text, reterr);
	if (r < 0)
		return r;
	if (!text[NAME] || !name_is_variable(text[NAME]))
		return err_set(
			reterr, CORDON_INVALID,
			"%s: name must be letters, digits and '_', not beginning with a digit",
			where);
	if (!text[HOST])
		return err_set(reterr, CORDON_INVALID, "%s needs host", where);
	if (!name_is_header(text[HEADER]))
		return err_set(reterr, CORDON_INVALID, "%s: header is not an HTTP header's name",
			       where);
	r = set_value(s, where, text[VALUE], text[ENV], reterr);
	if (r == 0)
		r = set_host(s, where, text[HOST], reterr);
	if (r < 0)
		return r;
	s->name = str_dup(text[NAME]);
	s->header = str_dup(text[HEADER]);
	return s->name && s->header ? 0 : kind_nomem(reterr);
}

static json_t *item_write(const void *item, bool with_secrets)
{
	const struct policy_secret *s = item;

	if (!with_secrets)
		return json_pack("{s:s, s:s, s:s}", "name", s->name, "host", s->host, "header",
				 s->header);
	return json_pack("{s:s, s:s, s:s, s:s}", "name", s->name, "value", s->value, "host",
			 s->host, "header", s->header);
}

static int item_copy(void *dst, const void *src)
{
	struct policy_secret *to = dst;
	const struct policy_secret *from = src;

	to->name = str_dup(from->name);
	to->value = str_dup(from->value);
	to->host = str_dup(from->host);
	to->header = str_dup(from->header);
	return to->name && to->value && to->host && to->header ? 0 : -CORDON_NOMEM;
}

static int item_say(const void *item, struct buf *b)
{
	const struct policy_secret *s = item;

	return buf_printf(b, "%s to %s in %s", s->name, s->host, s->header);
}

static const struct array_of items = {
	.size = sizeof(struct policy_secret),
	.max = SECRETS_MAX,
	.read = item_read,
	.write = item_write,
	.copy = item_copy,
	.done = item_done,
	.say = item_say,
};
const struct kind kind_secrets = ARRAY_KIND(&items);
