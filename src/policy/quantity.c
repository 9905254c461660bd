/* policy/quantity.c - parses durations and sizes with units. */
#include <string.h>

#include "policy/kind.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit durations[] = {
	{ "", 1 },        { "ms", 1 },      { "s", 1000 },     { "m", 60000 },
	{ "min", 60000 }, { "h", 3600000 }, { "d", 86400000 },
};

/* All units are powers of 1024: a limit of 512MB means 512 MiB. */
static const struct unit sizes[] = {
	{ "", 1 },           { "b", 1 },          { "k", 1ULL << 10 },
	{ "m", 1ULL << 20 }, { "g", 1ULL << 30 }, { "t", 1ULL << 40 },
};

/* Up to 6 digits after the point, in millionths. */
enum { FRACTION_DIGITS = 6, FRACTION_ONE = 1000000 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads "12" or "12.5"; *ret_unit: what follows. */
static bool read_number(const char *text, uint64_t *ret_whole, uint64_t *ret_millionths,
			const char **ret_unit)
{
	uint64_t whole = 0, millionths = 0;
	const char *s = text;

	if (!is_digit(*s))
		return false;
	for (; is_digit(*s); s++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole))
			return false;
	if (*s == '.') {
		uint64_t place = FRACTION_ONE / 10;
		if (!is_digit(*++s))
			return false;
		for (; is_digit(*s); s++, place /= 10) {
			if (place == 0)
				return false;
			millionths += (uint64_t)(*s - '0') * place;
		}
	}
	*ret_whole = whole;
	*ret_millionths = millionths;
	*ret_unit = s;
	return true;
}

static bool scale(const char *text, const struct unit *units, size_t count, uint64_t *ret)
{
	uint64_t whole, millionths, part;
	const char *name;

	if (!read_number(text, &whole, &millionths, &name))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!str_eq(name, units[i].name))
			continue;
		if (millionths && units[i].factor == 1)
			return false;
		part = units[i].factor * millionths / FRACTION_ONE;
		return !__builtin_mul_overflow(whole, units[i].factor, ret) &&
		       !__builtin_add_overflow(*ret, part, ret) && *ret > 0 && *ret <= INT64_MAX;
	}
	return false;
}

int policy_parse_duration(const char *text, uint64_t *ret_ms, struct cordon_error **reterr)
{
	uint64_t ms;

	if (!scale(text, durations, sizeof(durations) / sizeof(*durations), &ms))
		return err_set(
			reterr, CORDON_INVALID,
			"'%.40s' is not a duration: write a positive number of milliseconds, or "
			"250ms, 5s, 2m, 1h",
			text);
	*ret_ms = ms;
	return 0;
}

int policy_parse_size(const char *text, uint64_t *ret_bytes, struct cordon_error **reterr)
{
	/* "512MiB", "512MB", "512m" and "512M" are the same. */
	char plain[32] = "";
	uint64_t bytes;
	size_t len = strlen(text);
	bool fits = len < sizeof(plain);

	for (size_t i = 0; fits && i <= len; i++)
		plain[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
	if (fits && len > 3 && str_ends(plain, "ib") && !is_digit(plain[len - 3]))
		plain[len - 2] = '\0';
	else if (fits && len > 2 && str_ends(plain, "b") && !is_digit(plain[len - 2]))
		plain[len - 1] = '\0';
	if (!fits || !scale(plain, sizes, sizeof(sizes) / sizeof(*sizes), &bytes))
		return err_set(
			reterr, CORDON_INVALID,
			"'%.40s' is not a size: write a positive number of bytes, or 64k, 256M, 1G",
			text);
	*ret_bytes = bytes;
	return 0;
}
