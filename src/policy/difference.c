/* policy/difference.c - compares two policies. */
#include "policy/difference.h"

#include <string.h>

#include "policy/kind.h"

enum { TEXT_MAX_BYTES = 4 * 1024 * 1024, VALUE_MAX_BYTES = 200 };

static bool has(const json_t *array, const json_t *item)
{
	for (size_t i = 0; i < json_array_size(array); i++)
		if (json_equal(json_array_get(array, i), item))
			return true;
	return false;
}

static bool is_subset(const json_t *of, const json_t *a)
{
	for (size_t i = 0; i < json_array_size(a); i++)
		if (!has(of, json_array_get(a, i)))
			return false;
	return true;
}

/* Whether b contains more than a: 1 more, -1 less, 0 neither. null and "*" are the most. */
static int growth(const json_t *a, const json_t *b)
{
	bool most_a = json_is_null(a) || json_is_string(a),
	     most_b = json_is_null(b) || json_is_string(b);

	if (most_a || most_b)
		return (int)most_b - (int)most_a;
	if (json_is_integer(a) && json_is_integer(b))
		return json_integer_value(b) > json_integer_value(a) ? 1 : -1;
	if (json_is_boolean(a) && json_is_boolean(b))
		return json_is_true(b) ? 1 : -1;
	if (!json_is_array(a) || !json_is_array(b))
		return 0;
	return (int)is_subset(b, a) - (int)is_subset(a, b);
}

static const char *direction(const struct field *f, const json_t *a, const json_t *b)
{
	int more = growth(a, b);

	if (f->sense == SENSE_TIGHTER)
		more = -more;
	if (f->sense == SENSE_NONE || more == 0)
		return "";
	return more > 0 ? " (looser)" : " (tighter)";
}

static int add_value(struct buf *b, const json_t *j)
{
	cleanup_free char *text = json_is_null(j) ? str_dup("none") : json_text(j, NULL);

	if (!text)
		return -CORDON_NOMEM;
	if (strlen(text) <= VALUE_MAX_BYTES)
		return buf_add_str(b, text);
	size_t len = VALUE_MAX_BYTES;
	while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	text[len] = '\0';
	return buf_printf(b, "%s...", text);
}

static int add_change(struct buf *b, const struct field *f, const json_t *a, const json_t *z)
{
	int r = buf_printf(b, "%s: ", f->name);

	if (r == 0)
		r = add_value(b, a);
	if (r == 0)
		r = buf_add_str(b, " -> ");
	if (r == 0)
		r = add_value(b, z);
	return r < 0 ? r : buf_printf(b, "%s\n", direction(f, a, z));
}

static int compare(const struct field *f, const struct policy *a, const struct policy *z,
		   struct buf *b)
{
	cleanup_json json_t *full_a = f->kind->write(f, a, true),
			    *full_z = f->kind->write(f, z, true);
	cleanup_json json_t *shown_a = f->kind->write(f, a, false),
			    *shown_z = f->kind->write(f, z, false);

	if (!full_a || !full_z || !shown_a || !shown_z)
		return -CORDON_NOMEM;
	if (json_equal(full_a, full_z))
		return 0;
	if (json_equal(shown_a, shown_z))
		return buf_printf(b, "%s: the values differ\n", f->name);
	return add_change(b, f, shown_a, shown_z);
}

char *difference_of(const struct field *f, const struct policy *a, const struct policy *b)
{
	cleanup_buf struct buf line = { 0 };

	buf_init(&line, TEXT_MAX_BYTES);
	if (compare(f, a, b, &line) < 0)
		return NULL;
	return str_ndup(buf_text(&line), line.len ? line.len - 1 : 0);
}

char *policy_diff(const struct policy *a, const struct policy *b)
{
	cleanup_buf struct buf text = { 0 };
	int r = 0;

	buf_init(&text, TEXT_MAX_BYTES);
	for (size_t i = 0; r == 0 && i < field_count; i++)
		r = compare(&field_table[i], a, b, &text);
	if (r == 0 && text.len == 0)
		return str_dup("");
	return r == 0 ? buf_take(&text) : NULL;
}
