/* policy/word.c - single words: levels, flags, texts and layers. */
#include <string.h>

#include "policy/kind.h"

static int parse_word(const struct field *f, const char *text, json_t **ret,
		      struct cordon_error **reterr)
{
	(void)f;
	*ret = json_string(text);
	return *ret ? 0 : kind_nomem(reterr);
}

/* Levels. */

static int level_read(const struct field *f, struct policy *p, const json_t *j,
		      struct cordon_error **reterr)
{
	const char *name = kind_string(j);
	enum policy_level level = name ? policy_level_from_name(name) : LEVEL_NONE;

	if (level == LEVEL_NONE)
		return kind_refuse(f->name, "permissive, standard or strict", j, reterr);
	p->level = level;
	return 0;
}

/* A level resets every other field, so as an assignment it would undo those before it. */
static int level_parse(const struct field *f, const char *text, json_t **ret,
		       struct cordon_error **reterr)
{
	(void)text;
	(void)ret;
	return err_set(reterr, CORDON_INVALID,
		       "%s resets every other field and cannot be assigned: choose it with --level "
		       "or in the "
		       "policy file",
		       f->name);
}

static json_t *level_write(const struct field *f, const struct policy *p, bool with_secrets)
{
	(void)f;
	(void)with_secrets;
	return json_string(policy_level_name(p->level));
}

static int level_say(const struct field *f, const struct policy *p, struct buf *b)
{
	(void)f;
	return buf_add_str(b, policy_level_name(p->level));
}

const struct kind kind_level = {
	.read = level_read,
	.parse = level_parse,
	.write = level_write,
	.say = level_say,
};

/* Flags. */

static int flag_read(const struct field *f, struct policy *p, const json_t *j,
		     struct cordon_error **reterr)
{
	if (!json_is_boolean(j))
		return kind_refuse(f->name, "true or false", j, reterr);
	*(bool *)kind_value(f, p) = json_is_true(j);
	return 0;
}

static int flag_parse(const struct field *f, const char *text, json_t **ret,
		      struct cordon_error **reterr)
{
	static const char *const yes[] = { "true", "yes", "on" }, *const no[] = { "false", "no",
										  "off" };

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		if (str_eq(text, yes[i]) || str_eq(text, no[i])) {
			*ret = json_boolean(str_eq(text, yes[i]));
			return 0;
		}
	return parse_word(f, text, ret, reterr);
}

static json_t *flag_write(const struct field *f, const struct policy *p, bool with_secrets)
{
	(void)with_secrets;
	return json_boolean(*(bool *)kind_value(f, p));
}

static int flag_say(const struct field *f, const struct policy *p, struct buf *b)
{
	return buf_add_str(b, *(bool *)kind_value(f, p) ? "true" : "false");
}

static enum kind_extent flag_extent(const struct field *f, const struct policy *p)
{
	return *(bool *)kind_value(f, p) ? EXTENT_ALL : EXTENT_NONE;
}

const struct kind kind_flag = {
	.read = flag_read,
	.parse = flag_parse,
	.write = flag_write,
	.say = flag_say,
	.extent = flag_extent,
};

/* Texts. */

static void text_done(const struct field *f, struct policy *p)
{
	free_ptrp(kind_value(f, p));
}

static int text_read(const struct field *f, struct policy *p, const json_t *j,
		     struct cordon_error **reterr)
{
	const char *s = kind_string(j);
	char *copy = NULL;

	if (!json_is_null(j)) {
		if (!s || !f->is_name(s))
			return kind_refuse(f->name, f->entry, j, reterr);
		copy = str_dup(s);
		if (!copy)
			return kind_nomem(reterr);
	}
	text_done(f, p);
	*(char **)kind_value(f, p) = copy;
	return 0;
}

static json_t *text_write(const struct field *f, const struct policy *p, bool with_secrets)
{
	const char *s = *(char **)kind_value(f, p);

	(void)with_secrets;
	return s ? json_string(s) : json_null();
}

static int text_copy(const struct field *f, struct policy *dst, const struct policy *src)
{
	const char *s = *(char **)kind_value(f, src);

	if (!s)
		return 0;
	char *copy = str_dup(s);
	*(char **)kind_value(f, dst) = copy;
	return copy ? 0 : -CORDON_NOMEM;
}

static int text_say(const struct field *f, const struct policy *p, struct buf *b)
{
	return buf_add_str(b, *(char **)kind_value(f, p));
}

static enum kind_extent text_extent(const struct field *f, const struct policy *p)
{
	return *(char **)kind_value(f, p) ? EXTENT_SOME : EXTENT_NONE;
}

const struct kind kind_text = {
	.read = text_read,
	.parse = parse_word,
	.write = text_write,
	.copy = text_copy,
	.done = text_done,
	.say = text_say,
	.extent = text_extent,
};

/* Layers. */

static const char *const layer_names[] = {
	"user",     "pid",     "mount",   "net",     "ipc",     "uts",          "cgroup",
	"landlock", "seccomp", "rlimits", "cgroups", "own-net", "landlock-net", "landlock-scope",
};
enum {
	LAYER_COUNT = sizeof(layer_names) / sizeof(*layer_names),
	LAYER_ALL = (1 << LAYER_COUNT) - 1
};

const char *policy_layer_name(enum policy_layer layer)
{
	for (unsigned int i = 0; i < LAYER_COUNT; i++)
		if ((unsigned int)layer == 1U << i)
			return layer_names[i];
	return "unknown";
}

/* 0: unknown. */
static uint32_t layer_from_name(const char *name)
{
	for (unsigned int i = 0; i < LAYER_COUNT; i++)
		if (str_eq(name, layer_names[i]))
			return 1U << i;
	return 0;
}

static int refuse_layer(const struct field *f, const json_t *j, struct cordon_error **reterr)
{
	const char *name = kind_string(j);
	const char *near = name ? str_nearest(name, layer_names, LAYER_COUNT) : NULL;

	if (!near)
		return kind_refuse(
			f->name,
			"\"*\" or a list of layers (user, pid, mount, net, ipc, uts, cgroup, "
			"landlock, seccomp, rlimits, cgroups, own-net, landlock-net, "
			"landlock-scope)",
			j, reterr);
	return err_set(reterr, CORDON_INVALID,
		       "%s: unknown layer '%.40s'. Did you mean '%s'? Valid layers: user, pid, "
		       "mount, net, "
		       "ipc, uts, cgroup, landlock, seccomp, rlimits, cgroups, own-net, "
		       "landlock-net, landlock-scope",
		       f->name, name, near);
}

static int layers_read(const struct field *f, struct policy *p, const json_t *j,
		       struct cordon_error **reterr)
{
	uint32_t bits = 0;
	size_t i;
	json_t *item;

	if (str_eq(json_string_value(j), "*"))
		bits = LAYER_ALL;
	else if (!json_is_array(j))
		return refuse_layer(f, j, reterr);
	json_array_foreach(j, i, item)
	{
		const char *name = kind_string(item);
		uint32_t bit = name ? layer_from_name(name) : 0;
		if (!bit)
			return refuse_layer(f, item, reterr);
		bits |= bit;
	}
	*(uint32_t *)kind_value(f, p) = bits;
	return 0;
}

static int layers_parse(const struct field *f, const char *text, json_t **ret,
			struct cordon_error **reterr)
{
	return str_eq(text, "*") ? parse_word(f, text, ret, reterr)
				 : kind_parse_array(f, text, ret, reterr);
}

static json_t *layers_write(const struct field *f, const struct policy *p, bool with_secrets)
{
	uint32_t bits = *(uint32_t *)kind_value(f, p);
	cleanup_json json_t *array = json_array();

	(void)with_secrets;
	for (unsigned int i = 0; array && i < LAYER_COUNT; i++)
		if (bits & 1U << i && json_array_append_new(array, json_string(layer_names[i])) < 0)
			return NULL;
	return TAKE_PTR(array);
}

static int layers_say(const struct field *f, const struct policy *p, struct buf *b)
{
	uint32_t bits = *(uint32_t *)kind_value(f, p);
	const char *between = "";
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < LAYER_COUNT; i++)
		if (bits & 1U << i) {
			r = buf_printf(b, "%s%s", between, layer_names[i]);
			between = ", ";
		}
	return r;
}

static enum kind_extent layers_extent(const struct field *f, const struct policy *p)
{
	return *(uint32_t *)kind_value(f, p) ? EXTENT_SOME : EXTENT_NONE;
}

const struct kind kind_layers = {
	.read = layers_read,
	.parse = layers_parse,
	.write = layers_write,
	.say = layers_say,
	.extent = layers_extent,
};
