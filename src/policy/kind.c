/* policy/kind.c - what all kinds of values share: errors, joining, splitting. */
#include "policy/kind.h"

#include <string.h>

enum { GOT_MAX_BYTES = 80 };

int kind_nomem(struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* Cuts at a character boundary and removes what could control a terminal. */
static void make_presentable(char *s)
{
	size_t len = strlen(s);

	if (len > GOT_MAX_BYTES + 3) {
		len = GOT_MAX_BYTES;
		while (len > 0 && ((unsigned char)s[len] & 0xc0) == 0x80)
			len--;
		memcpy(s + len, "...", 4);
	}
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
}

int kind_refuse(const char *label, const char *want, const json_t *j, struct cordon_error **reterr)
{
	cleanup_free char *got =
		json_is_string(j) ? str_printf("%s", json_string_value(j)) : json_text(j, NULL);
	if (!got)
		return kind_nomem(reterr);
	make_presentable(got);
	return err_set(reterr, CORDON_INVALID, "%s must be %s, got: %s", label, want, got);
}

const char *kind_string(const json_t *j)
{
	const char *s = json_string_value(j);

	return s && strlen(s) == json_string_length(j) ? s : NULL;
}

static int parse_words(const char *text, json_t **ret, struct cordon_error **reterr)
{
	cleanup_json json_t *array = json_array();
	if (!array)
		return kind_nomem(reterr);

	for (const char *at = text; *text;) {
		size_t len = strcspn(at, ",");
		if (json_array_append_new(array, json_stringn(at, len)) < 0)
			return kind_nomem(reterr);
		if (!at[len])
			break;
		at += len + 1;
	}
	*ret = TAKE_PTR(array);
	return 0;
}

int kind_parse_array(const struct field *f, const char *text, json_t **ret,
		     struct cordon_error **reterr)
{
	if (text[0] != '[' && text[0] != '{')
		return parse_words(text, ret, reterr);
	int r = json_parse(text, strlen(text), 0, ret, reterr);
	return r < 0 ? err_wrap(reterr, r, "%s is not valid JSON", f->name) : 0;
}

int kind_say_words(const struct strlist *l, struct buf *b)
{
	int r = 0;

	for (size_t i = 0; i < l->count && r == 0; i++)
		r = buf_printf(b, "%s%s", i ? ", " : "", l->items[i]);
	return r;
}
