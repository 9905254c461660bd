/* policy/list.c - lists of words: "*" or names, plain names, and NAME=value settings. */
#include <string.h>

#include "policy/kind.h"

enum { LIST_MAX = 4096, ENV_MAX_BYTES = 128 * 1024 };

static int refuse_entry(const struct field *f, size_t index, const json_t *item,
			struct cordon_error **reterr)
{
	cleanup_free char *label = str_printf("%s[%zu]", f->name, index);

	return label ? kind_refuse(label, f->entry, item, reterr) : kind_nomem(reterr);
}

/* Reads an array of valid strings; drops duplicates. */
static int read_words(const struct field *f, const json_t *j, struct strlist *ret,
		      struct cordon_error **reterr)
{
	cleanup_strlist struct strlist l = { 0 };
	size_t i;
	json_t *item;

	if (json_array_size(j) > LIST_MAX)
		return err_set(reterr, CORDON_INVALID, "%s has %zu entries, at most %d are allowed",
			       f->name, json_array_size(j), LIST_MAX);
	json_array_foreach(j, i, item)
	{
		const char *s = kind_string(item);
		if (!s || (f->is_name && !f->is_name(s)))
			return refuse_entry(f, i, item, reterr);
		if (!strlist_has(&l, s) && strlist_add(&l, s) < 0)
			return kind_nomem(reterr);
	}
	*ret = l;
	l = (struct strlist){ 0 };
	return 0;
}

static json_t *write_words(const struct strlist *l)
{
	cleanup_json json_t *array = json_array();

	for (size_t i = 0; array && i < l->count; i++)
		if (json_array_append_new(array, json_string(l->items[i])) < 0)
			return NULL;
	return TAKE_PTR(array);
}

/* "*" or names. */

static void list_done(const struct field *f, struct policy *p)
{
	struct policy_list *l = kind_value(f, p);

	strlist_done(&l->names);
	*l = (struct policy_list){ 0 };
}

/* `modules` accepts the name of a level, whose list is then used. */
static const char *named_list(const struct field *f, const char *word)
{
	enum policy_level level = word ? policy_level_from_name(word) : LEVEL_NONE;

	return level == LEVEL_NONE ? NULL : f->named[level - 1];
}

/* "*" or ["*"], which can mean nothing else. */
static bool is_star(const json_t *j)
{
	if (json_array_size(j) == 1)
		j = json_array_get(j, 0);
	return str_eq(json_string_value(j), "*");
}

static int list_read(const struct field *f, struct policy *p, const json_t *j,
		     struct cordon_error **reterr)
{
	struct policy_list fresh = { .all = is_star(j) };
	const char *named = named_list(f, json_string_value(j));
	cleanup_json json_t *words = NULL;
	int r = 0;

	if (named) {
		r = kind_parse_array(f, named, &words, reterr);
		if (r < 0)
			return r;
		j = words;
	}
	if (!fresh.all && !json_is_array(j))
		return kind_refuse(f->name, "\"*\" or a list of names", j, reterr);
	if (!fresh.all)
		r = read_words(f, j, &fresh.names, reterr);
	if (r < 0)
		return r;
	list_done(f, p);
	*(struct policy_list *)kind_value(f, p) = fresh;
	return 0;
}

static int list_parse(const struct field *f, const char *text, json_t **ret,
		      struct cordon_error **reterr)
{
	if (!str_eq(text, "*") && !named_list(f, text))
		return kind_parse_array(f, text, ret, reterr);
	*ret = json_string(text);
	return *ret ? 0 : kind_nomem(reterr);
}

static json_t *list_write(const struct field *f, const struct policy *p, bool with_secrets)
{
	const struct policy_list *l = kind_value(f, p);

	(void)with_secrets;
	return l->all ? json_string("*") : write_words(&l->names);
}

static int list_copy(const struct field *f, struct policy *dst, const struct policy *src)
{
	struct policy_list *to = kind_value(f, dst);
	const struct policy_list *from = kind_value(f, src);

	to->all = from->all;
	return strlist_copy(&to->names, &from->names);
}

static int list_say(const struct field *f, const struct policy *p, struct buf *b)
{
	const struct policy_list *l = kind_value(f, p);

	return l->all ? buf_add_char(b, '*') : kind_say_words(&l->names, b);
}

static enum kind_extent list_extent(const struct field *f, const struct policy *p)
{
	const struct policy_list *l = kind_value(f, p);

	return l->all ? EXTENT_ALL : l->names.count ? EXTENT_SOME : EXTENT_NONE;
}

const struct kind kind_list = {
	.read = list_read,
	.parse = list_parse,
	.write = list_write,
	.copy = list_copy,
	.done = list_done,
	.say = list_say,
	.extent = list_extent,
};

/* Plain names. */

static void names_done(const struct field *f, struct policy *p)
{
	strlist_done(kind_value(f, p));
	*(struct strlist *)kind_value(f, p) = (struct strlist){ 0 };
}

static int names_read(const struct field *f, struct policy *p, const json_t *j,
		      struct cordon_error **reterr)
{
	struct strlist fresh = { 0 };

	if (!json_is_array(j))
		return kind_refuse(f->name, "a list of names", j, reterr);
	int r = read_words(f, j, &fresh, reterr);
	if (r < 0)
		return r;
	names_done(f, p);
	*(struct strlist *)kind_value(f, p) = fresh;
	return 0;
}

static json_t *names_write(const struct field *f, const struct policy *p, bool with_secrets)
{
	(void)with_secrets;
	return write_words(kind_value(f, p));
}

static int names_copy(const struct field *f, struct policy *dst, const struct policy *src)
{
	return strlist_copy(kind_value(f, dst), kind_value(f, src));
}

static int names_say(const struct field *f, const struct policy *p, struct buf *b)
{
	return kind_say_words(kind_value(f, p), b);
}

static enum kind_extent names_extent(const struct field *f, const struct policy *p)
{
	const struct strlist *l = kind_value(f, p);

	return l->count ? EXTENT_SOME : EXTENT_NONE;
}

const struct kind kind_names = {
	.read = names_read,
	.parse = kind_parse_array,
	.write = names_write,
	.copy = names_copy,
	.done = names_done,
	.say = names_say,
	.extent = names_extent,
};

/* Ports: names that may also be numbers in JSON. */

static int ports_read(const struct field *f, struct policy *p, const json_t *j,
		      struct cordon_error **reterr)
{
	cleanup_json json_t *words = json_array();
	size_t i;
	json_t *item;

	if (!words)
		return kind_nomem(reterr);
	if (!json_is_array(j))
		return kind_refuse(f->name, "a list of ports", j, reterr);
	json_array_foreach(j, i, item)
	{
		json_t *word = json_is_integer(item)
				       ? json_sprintf("%lld", (long long)json_integer_value(item))
				       : json_incref(item);
		if (json_array_append_new(words, word) < 0)
			return kind_nomem(reterr);
	}
	return names_read(f, p, words, reterr);
}

const struct kind kind_ports = {
	.read = ports_read,
	.parse = kind_parse_array,
	.write = names_write,
	.copy = names_copy,
	.done = names_done,
	.say = names_say,
	.extent = names_extent,
};

/* NAME=value: an object in JSON, a list of assignments in --set. */

static int add_setting(const struct field *f, struct strlist *l, const char *name,
		       const json_t *value, struct cordon_error **reterr)
{
	const char *text = kind_string(value);

	if (!f->is_name(name))
		return err_set(reterr, CORDON_INVALID, "%s: '%.80s' is not %s", f->name, name,
			       f->entry);
	cleanup_free char *label = str_printf("%s.%s", f->name, name);
	if (!label)
		return kind_nomem(reterr);
	if (!text || strlen(text) > ENV_MAX_BYTES)
		return kind_refuse(label, "a text of at most 128 KiB without NUL", value, reterr);
	cleanup_free char *setting = str_printf("%s=%s", name, text);
	if (!setting || strlist_add(l, setting) < 0)
		return kind_nomem(reterr);
	return 0;
}

/* Turns ["A=1", "B=2"] into {"A": "1", "B": "2"}. */
static int object_of_assignments(const struct field *f, const json_t *array, json_t *ret,
				 struct cordon_error **reterr)
{
	size_t i;
	json_t *item;

	json_array_foreach(array, i, item)
	{
		const char *s = kind_string(item), *equals = s ? strchr(s, '=') : NULL;
		if (!equals)
			return kind_refuse(f->name, "an object, or a list of NAME=value", item,
					   reterr);
		cleanup_free char *name = str_ndup(s, (size_t)(equals - s));
		if (!name)
			return kind_nomem(reterr);
		if (json_object_get(ret, name))
			return err_set(reterr, CORDON_INVALID, "%s sets '%.80s' twice", f->name,
				       name);
		if (json_object_set_new(ret, name, json_string(equals + 1)) < 0)
			return kind_nomem(reterr);
	}
	return 0;
}

static int env_read(const struct field *f, struct policy *p, const json_t *j,
		    struct cordon_error **reterr)
{
	cleanup_strlist struct strlist l = { 0 };
	cleanup_json json_t *object = json_object();
	const char *name;
	json_t *value;
	int r = 0;

	if (!object)
		return kind_nomem(reterr);
	if (!json_is_array(j) && !json_is_object(j))
		return kind_refuse(f->name, "an object of names and texts", j, reterr);
	if (json_is_array(j))
		r = object_of_assignments(f, j, object, reterr);
	if (r == 0 && json_object_size(j) + json_array_size(j) > LIST_MAX)
		r = err_set(reterr, CORDON_INVALID, "%s has more than %d entries", f->name,
			    LIST_MAX);
	json_object_foreach((json_t *)(uintptr_t)(json_is_object(j) ? j : object), name, value)
	{
		if (r == 0)
			r = add_setting(f, &l, name, value, reterr);
	}
	if (r < 0)
		return r;
	names_done(f, p);
	*(struct strlist *)kind_value(f, p) = l;
	l = (struct strlist){ 0 };
	return 0;
}

static json_t *env_write(const struct field *f, const struct policy *p, bool with_secrets)
{
	const struct strlist *l = kind_value(f, p);
	cleanup_json json_t *object = json_object();

	(void)with_secrets;
	for (size_t i = 0; object && i < l->count; i++) {
		const char *equals = strchr(l->items[i], '=');
		if (!equals)
			continue;
		cleanup_free char *name = str_ndup(l->items[i], (size_t)(equals - l->items[i]));
		if (!name || json_object_set_new(object, name, json_string(equals + 1)) < 0)
			return NULL;
	}
	return TAKE_PTR(object);
}

const struct kind kind_env = {
	.read = env_read,
	.parse = kind_parse_array,
	.write = env_write,
	.copy = names_copy,
	.done = names_done,
	.say = names_say,
	.extent = names_extent,
};
