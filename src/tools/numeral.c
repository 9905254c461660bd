/* tools/numeral.c - see numeral.h. */
#include "tools/numeral.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "tools/valuetype.h"

/* A double has at most 767 significant digits. A tagged value has at most 4,096 characters
 * (form.c). */
enum { DOUBLE_DIGITS = 766, DIGITS_MAX = 4096, EXPONENT_MAX = 1000000000 };

/* 0.DIGITS * 10^exponent, without leading or trailing zeros. No digits: zero. */
struct decimal {
	bool is_negative;
	int64_t exponent;
	size_t count;
	char digits[DIGITS_MAX + 1];
};

/* The payload of a tagged value, or the value itself. */
static const json_t *inside(const json_t *value)
{
	return json_is_object(value) ? json_object_get(value, "v") : value;
}

bool numeral_is(const json_t *value)
{
	const char *tag = valuetype_tag(value);

	if (json_is_number(value))
		return true;
	return str_eq(tag, "int") || str_eq(tag, "float") || str_eq(tag, "decimal") ||
	       str_eq(tag, "duration");
}

static enum numeral_order order(bool is_less, bool is_more)
{
	return is_less ? NUMERAL_LESS : is_more ? NUMERAL_MORE : NUMERAL_EQUAL;
}

static enum numeral_order reverse(enum numeral_order o)
{
	return o == NUMERAL_LESS ? NUMERAL_MORE : o == NUMERAL_MORE ? NUMERAL_LESS : o;
}

/* Compares without rounding. A double outside the range of int64_t is decided by its sign.
 * Otherwise its whole part is compared as an integer, and if equal, its fraction decides. */
static enum numeral_order compare_mixed(int64_t i, double d)
{
	if (isnan(d))
		return NUMERAL_UNORDERED;
	if (d >= 0x1p63)
		return NUMERAL_LESS;
	if (d < -0x1p63)
		return NUMERAL_MORE;
	double whole = trunc(d);
	int64_t n = (int64_t)whole;
	if (i != n)
		return order(i<n, i> n);
	return order(whole<d, whole> d);
}

static enum numeral_order compare_plain(const json_t *a, const json_t *b)
{
	if (json_is_integer(a) && json_is_integer(b))
		return order(json_integer_value(a) < json_integer_value(b),
			     json_integer_value(a) > json_integer_value(b));
	if (json_is_integer(a))
		return compare_mixed(json_integer_value(a), json_real_value(b));
	if (json_is_integer(b))
		return reverse(compare_mixed(json_integer_value(b), json_real_value(a)));
	return order(json_real_value(a) < json_real_value(b),
		     json_real_value(a) > json_real_value(b));
}

/* The exponent after 'e'. A huge one is cut at EXPONENT_MAX. */
static bool read_exponent(const char *s, int64_t *ret)
{
	bool is_negative = *s == '-';
	int64_t n = 0;

	s += *s == '-' || *s == '+';
	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		n = n < EXPONENT_MAX ? n * 10 + (*s - '0') : n;
	}
	*ret = is_negative ? -n : n;
	return true;
}

/* A leading zero only moves the point. False: too many digits. */
static bool add_digit(struct decimal *d, char digit, bool is_behind_point)
{
	bool is_leading = d->count == 0 && digit == '0';

	d->exponent += is_behind_point ? -is_leading : !is_leading;
	if (is_leading)
		return true;
	if (d->count >= DIGITS_MAX)
		return false;
	d->digits[d->count++] = digit;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* digits [. digits]; *ret_end: what follows. */
static bool read_digits(const char *s, struct decimal *d, const char **ret_end)
{
	size_t digits = 0;

	for (; is_digit(*s); s++, digits++)
		if (!add_digit(d, *s, false))
			return false;
	s += *s == '.';
	for (; is_digit(*s); s++, digits++)
		if (!add_digit(d, *s, true))
			return false;
	*ret_end = s;
	return digits > 0;
}

/* [sign] digits [. digits] [e [sign] digits] */
static bool read_decimal(const char *s, struct decimal *ret)
{
	int64_t exponent = 0;

	ret->is_negative = *s == '-';
	ret->exponent = 0;
	ret->count = 0;
	s += *s == '-' || *s == '+';
	if (!read_digits(s, ret, &s) || (*s && *s != 'e' && *s != 'E'))
		return false;
	if (*s && !read_exponent(s + 1, &exponent))
		return false;
	while (ret->count > 0 && ret->digits[ret->count - 1] == '0')
		ret->count--;
	ret->digits[ret->count] = '\0';
	ret->exponent += exponent;
	return true;
}

/* All digits of a double. The host's locale may use another decimal point. */
static char *double_text(double d)
{
	char room[DOUBLE_DIGITS + 64];
	char *digits = room;

	snprintf(room, sizeof(room), "%.*e", DOUBLE_DIGITS, d);
	digits += *digits == '-';
	size_t point = 1 + strcspn(digits + 1, "0123456789");
	return str_printf("%s%c.%s", digits > room ? "-" : "", *digits, digits + point);
}

/* The value's number as text; the caller frees it. as_written: a double gets its shortest notation,
 * so that the decimal 0.1 equals the double 0.1. */
static char *text_of(const json_t *value, bool as_written)
{
	const json_t *v = inside(value);

	if (json_is_real(v) && !as_written)
		return double_text(json_real_value(v));
	if (json_is_string(v))
		return str_dup(json_string_value(v));
	return json_is_number(v) ? json_text(v, NULL) : NULL;
}

static int infinity(const char *s)
{
	return str_eq(s, "inf") ? 1 : str_eq(s, "-inf") ? -1 : 0;
}

/* Compares absolute values. */
static int compare_sizes(const struct decimal *a, const struct decimal *b)
{
	if (a->count == 0 || b->count == 0)
		return (a->count > 0) - (b->count > 0);
	if (a->exponent != b->exponent)
		return a->exponent > b->exponent ? 1 : -1;
	return strcmp(a->digits, b->digits);
}

static enum numeral_order compare_texts(const char *a, const char *b)
{
	struct decimal x, y;
	int ia = infinity(a), ib = infinity(b);
	bool is_read = (ia || read_decimal(a, &x)) && (ib || read_decimal(b, &y));

	if (!is_read)
		return NUMERAL_UNORDERED;
	if (ia || ib)
		return order(ia<ib, ia> ib);
	x.is_negative = x.is_negative && x.count > 0;
	y.is_negative = y.is_negative && y.count > 0;
	if (x.is_negative != y.is_negative)
		return x.is_negative ? NUMERAL_LESS : NUMERAL_MORE;
	int size = compare_sizes(&x, &y);
	enum numeral_order o = order(size<0, size> 0);
	return x.is_negative ? reverse(o) : o;
}

enum numeral_order numeral_compare(const json_t *a, const json_t *b)
{
	if (!numeral_is(a) || !numeral_is(b))
		return NUMERAL_UNORDERED;
	if (json_is_number(inside(a)) && json_is_number(inside(b)))
		return compare_plain(inside(a), inside(b));
	bool as_written =
		str_eq(valuetype_tag(a), "decimal") || str_eq(valuetype_tag(b), "decimal");
	cleanup_free char *text_a = text_of(a, as_written), *text_b = text_of(b, as_written);
	return text_a && text_b ? compare_texts(text_a, text_b) : NUMERAL_UNORDERED;
}
