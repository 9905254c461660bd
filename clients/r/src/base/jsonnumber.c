/* base/jsonnumber.c - see jsonnumber.h. Without strtod: no locale, no copy. */
#include "base/jsonnumber.h"

#include <string.h>

/* The digits read so far: the first 17 significant ones as a number, and the power of ten. */
struct digits {
	uint64_t lead;   /* the first `kept` significant digits */
	unsigned kept;   /* at most 17 */
	int64_t tens;    /* decimal exponent of the first significant digit */
	int64_t integer; /* digits before the point, without leading zeros */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void note(struct digits *d, char c)
{
	if (d->kept == 0 && c == '0')
		return;
	if (d->kept < 17) {
		d->lead = d->lead * 10 + (uint64_t)(c - '0');
		d->kept++;
	}
}

static bool fits_int(const char *p, const char *end)
{
	static const char most[] = "9223372036854775807", least[] = "9223372036854775808";
	bool is_negative = *p == '-';
	size_t len = (size_t)(end - p) - is_negative;

	if (len != 19)
		return len < 19;
	return memcmp(p + is_negative, is_negative ? least : most, 19) <= 0;
}

static bool is_finite(struct digits *d, int64_t exponent)
{
	if (d->kept == 0)
		return true;
	exponent += d->tens;
	if (exponent != 308)
		return exponent < 308;
	for (; d->kept < 17; d->kept++)
		d->lead *= 10;
	return d->lead <= 17976931348623157U; /* DBL_MAX is 1.7976931348623157e308 */
}

/* After 'e': reads the exponent, saturating. NULL: no digits. */
static const char *exponent_end(const char *p, const char *end, int64_t *ret)
{
	bool is_negative = p < end && *p == '-';
	int64_t e = 0;

	if (p < end && (*p == '-' || *p == '+'))
		p++;
	if (p == end || !is_digit(*p))
		return NULL;
	for (; p < end && is_digit(*p); p++)
		if (e < 1000000000)
			e = e * 10 + (*p - '0');
	*ret = is_negative ? -e : e;
	return p;
}

static const char *fraction_end(const char *p, const char *end, struct digits *d)
{
	int64_t place = -1;

	if (p == end || !is_digit(*p))
		return NULL;
	for (; p < end && is_digit(*p); p++, place--) {
		bool was_empty = d->kept == 0;
		note(d, *p);
		if (was_empty && d->kept == 1)
			d->tens = place;
	}
	return p;
}

/* The whole part: "0", or digits without a leading zero. NULL: none. */
static const char *integer_end(const char *p, const char *end, struct digits *d)
{
	if (p == end || !is_digit(*p))
		return NULL;
	if (*p == '0' && p + 1 < end && is_digit(p[1]))
		return NULL;
	for (; p < end && is_digit(*p); p++) {
		note(d, *p);
		d->integer += d->kept > 0;
	}
	d->tens = d->integer - 1;
	return p;
}

static bool is_at(const char *p, const char *end, const char *set)
{
	return p && p < end && *p && strchr(set, *p);
}

struct jsonnumber jsonnumber_scan(const char *p, const char *end)
{
	const char *start = p;
	struct digits d = { 0 };
	int64_t exponent = 0;

	p = integer_end(is_at(p, end, "-") ? p + 1 : p, end, &d);
	if (!is_at(p, end, ".eE"))
		return (struct jsonnumber){ .end = p, .fits = p && fits_int(start, p) };
	if (is_at(p, end, "."))
		p = fraction_end(p + 1, end, &d);
	if (is_at(p, end, "eE"))
		p = exponent_end(p + 1, end, &exponent);
	return (struct jsonnumber){ .end = p, .is_real = true, .fits = is_finite(&d, exponent) };
}

int64_t jsonnumber_int(const char *p, size_t len)
{
	bool is_negative = *p == '-';
	uint64_t magnitude = 0;

	for (size_t i = is_negative; i < len; i++)
		magnitude = magnitude * 10 + (uint64_t)(p[i] - '0');
	return (int64_t)(is_negative ? 0 - magnitude : magnitude);
}
