/* policy/number.c - see number.h. */
#include "policy/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "policy/kind.h"

enum { TEXT_SIZE = 48 };

static bool is_unlimited(const json_t *j)
{
	const char *s = json_string_value(j);

	return json_is_null(j) || str_eq(s, "none") || str_eq(s, "unlimited");
}

/* Clients whose numbers are doubles send 536870912.0, which is exact up to 2^53. */
static bool whole_number(const struct field *f, const json_t *j, uint64_t *ret)
{
	int least = f->min == 0 ? 0 : 1;

	if (json_is_integer(j) && json_integer_value(j) >= least) {
		*ret = (uint64_t)json_integer_value(j);
		return true;
	}
	double d = json_real_value(j);
	if (json_is_real(j) && d >= least && d <= 9007199254740992.0 && d == (double)(uint64_t)d) {
		*ret = (uint64_t)d;
		return true;
	}
	return false;
}

/* "30 s", "512 MiB", "50 %", "16". */
static int number_text(uint64_t v, enum field_unit unit, char *ret, size_t size)
{
	static const struct {
		uint64_t ms;
		const char *name;
	} times[] = { { 3600000, "h" }, { 60000, "min" }, { 1000, "s" }, { 1, "ms" } };
	static const char *const powers[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	size_t i = 0;

	switch (unit) {
	case UNIT_SECONDS:
		return snprintf(ret, size, "%" PRIu64 " s", v);
	case UNIT_PERCENT:
		return snprintf(ret, size, "%" PRIu64 " %%", v);
	case UNIT_MS:
		while (i < 3 && (v == 0 || v % times[i].ms))
			i++;
		/* Uses only exact units: 90 min is clearer than 1.5 h. */
		return snprintf(ret, size, "%" PRIu64 " %s", v / times[i].ms, times[i].name);
	case UNIT_BYTES:
		for (; i < 4 && v && v % 1024 == 0; i++)
			v /= 1024;
		return snprintf(ret, size, "%" PRIu64 " %s", v, powers[i]);
	case UNIT_NONE:
		break;
	}
	return snprintf(ret, size, "%" PRIu64, v);
}

int number_read(const struct field *f, const char *label, const json_t *j, uint64_t *ret,
		struct cordon_error **reterr)
{
	uint64_t v;
	char bound[TEXT_SIZE], got[TEXT_SIZE];

	if (is_unlimited(j) && f->unlimited) {
		*ret = POLICY_UNLIMITED;
		return 0;
	}
	if (is_unlimited(j))
		return err_set(reterr, CORDON_INVALID,
			       "%s cannot be unlimited: give a single positive number", label);
	if (json_is_real(j) && json_real_value(j) > 0 && !whole_number(f, j, &v))
		return kind_refuse(label, "a single positive whole number", j, reterr);
	if (!whole_number(f, j, &v))
		return kind_refuse(label, "a single positive number", j, reterr);
	if (v >= f->min && v <= f->max) {
		*ret = v;
		return 0;
	}
	(void)number_text(v < f->min ? f->min : f->max, f->unit, bound, sizeof(bound));
	(void)number_text(v, f->unit, got, sizeof(got));
	return err_set(reterr, CORDON_INVALID,
		       "%s must be at %s %" PRIu64 " (%s), got: %" PRIu64 " (%s)", label,
		       v < f->min ? "least" : "most", v < f->min ? f->min : f->max, bound, v, got);
}

static int read_field(const struct field *f, struct policy *p, const json_t *j,
		      struct cordon_error **reterr)
{
	return number_read(f, f->name, j, kind_value(f, p), reterr);
}

static bool parse_value(enum field_unit unit, const char *text, uint64_t *ret)
{
	bool plain = text[0] && text[strspn(text, "0123456789")] == '\0';

	if (unit == UNIT_MS)
		return policy_parse_duration(text, ret, NULL) == 0;
	if (unit == UNIT_BYTES || plain)
		return policy_parse_size(text, ret, NULL) == 0;
	if (unit == UNIT_SECONDS && policy_parse_duration(text, ret, NULL) == 0) {
		*ret = (*ret + 999) / 1000;
		return true;
	}
	return false;
}

/* Text that is not a number is passed on as a string, so that read() reports it like any other. */
static int parse(const struct field *f, const char *text, json_t **ret,
		 struct cordon_error **reterr)
{
	uint64_t v = 0;
	bool is_zero = f->min == 0 && str_eq(text, "0");

	*ret = is_zero || parse_value(f->unit, text, &v) ? json_integer((json_int_t)v)
							 : json_string(text);
	return *ret ? 0 : kind_nomem(reterr);
}

static json_t *write_field(const struct field *f, const struct policy *p, bool with_secrets)
{
	const uint64_t *v = kind_value(f, p);

	(void)with_secrets;
	return *v == POLICY_UNLIMITED ? json_null() : json_integer((json_int_t)*v);
}

static int say(const struct field *f, const struct policy *p, struct buf *b)
{
	const uint64_t *v = kind_value(f, p);
	char text[TEXT_SIZE];

	(void)number_text(*v, f->unit, text, sizeof(text));
	return buf_add_str(b, text);
}

int number_range(const struct field *f, struct buf *b)
{
	char least[TEXT_SIZE], most[TEXT_SIZE];

	(void)number_text(f->min, f->unit, least, sizeof(least));
	(void)number_text(f->max, f->unit, most, sizeof(most));
	return buf_printf(b, " %s | %s |", least, most);
}

static enum kind_extent extent(const struct field *f, const struct policy *p)
{
	const uint64_t *v = kind_value(f, p);

	return *v == POLICY_UNLIMITED ? EXTENT_ALL : *v ? EXTENT_SOME : EXTENT_NONE;
}

const struct kind kind_number = {
	.read = read_field,
	.parse = parse,
	.write = write_field,
	.say = say,
	.extent = extent,
};
