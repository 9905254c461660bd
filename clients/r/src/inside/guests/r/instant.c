/* inside/guests/r/instant.c - dates and times as text, in UTC, without the C library's time
 * zones. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside/guests/r/cordon_r.h"

#define SECONDS_MAX 1e15
#define YEAR_MAX 10000000000000000 /* its days still fit */

/* Days since 1970-01-01 of a Gregorian date, and back (Hinnant's algorithms). */
static long long days_of(long long y, int m, int d)
{
	y -= m <= 2;
	long long era = (y >= 0 ? y : y - 399) / 400;
	long long yoe = y - era * 400;
	long long doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void date_of(long long z, long long *y, int *m, int *d)
{
	z += 719468;
	long long era = (z >= 0 ? z : z - 146096) / 146097;
	long long doe = z - era * 146097;
	long long yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	long long doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	long long mp = (5 * doy + 2) / 153;
	*d = (int)(doy - (153 * mp + 2) / 5 + 1);
	*m = (int)(mp < 10 ? mp + 3 : mp - 9);
	*y = yoe + era * 400 + (*m <= 2);
}

void instant_date(struct bytes *b, double days)
{
	long long y;
	int m, d;
	date_of((long long)floor(days), &y, &m, &d);
	bytes_format(b, "%04lld-%02d-%02d", y, m, d);
}

/* The digits of a fraction after "0"; the shortest from 6 on that give the same instant when they
 * are added to whole. Returns their number, or -1: there are none. */
static int fraction(double seconds, double whole, char text[40])
{
	if (seconds == whole)
		return 0;
	for (int digits = 6; digits <= 20; digits++) {
		snprintf(text, 40, "%.*f", digits, seconds - whole);
		if (text[0] == '0' && whole + strtod(text, NULL) == seconds)
			return digits;
	}
	return -1;
}

int instant_digits(double seconds)
{
	char text[40];
	return fabs(seconds) < SECONDS_MAX ? fraction(seconds, floor(seconds), text) : -1;
}

double instant_unit(const char *name)
{
	return !strcmp(name, "secs")    ? 1
	       : !strcmp(name, "mins")  ? 60
	       : !strcmp(name, "hours") ? 3600
	       : !strcmp(name, "days")  ? 86400
	       : !strcmp(name, "weeks") ? 604800
					: 0;
}

void instant_datetime(struct bytes *b, double seconds)
{
	char digits[40] = "";
	double whole = floor(seconds);
	bool is_whole = fraction(seconds, whole, digits) <= 0;
	long long s = (long long)whole;
	long long day = (s >= 0 ? s : s - 86399) / 86400, rest = s - day * 86400;
	instant_date(b, (double)day);
	bytes_format(b, "T%02lld:%02lld:%02lld", rest / 3600, rest / 60 % 60, rest % 60);
	if (!is_whole)
		bytes_text(b, digits + 1);
	bytes_text(b, "+00:00");
}

/* The text of a JSON string, if it can be a date. */
static bool text_of(struct json v, char out[64])
{
	if (json_kind(v) != '"' || v.len < 2 || v.len > 60)
		return false;
	memcpy(out, v.at + 1, v.len - 2);
	out[v.len - 2] = 0;
	return true;
}

/* An integer of at most this size either way; *p is behind it then, and else where it was. */
static bool take_integer(char **p, long long most, long long *ret)
{
	char *end;
	errno = 0;
	long long n = strtoll(*p, &end, 10);
	if (end == *p || errno || n > most || n < -most)
		return false;
	*p = end;
	*ret = n;
	return true;
}

static bool take_char(char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

bool instant_parse_date(struct json v, double *ret)
{
	char t[64], *p = t;
	long long y, m, d;
	if (!text_of(v, t) || !take_integer(&p, YEAR_MAX, &y) || !take_char(&p, '-') ||
	    !take_integer(&p, INT_MAX, &m) || !take_char(&p, '-') || !take_integer(&p, INT_MAX, &d))
		return false;
	*ret = (double)days_of(y, (int)m, (int)d);
	return true;
}

/* Minutes that the text's zone is ahead of UTC: "+05:30", "-7". */
static long long take_zone(char *p)
{
	long long hours, minutes = 0;
	char sign = *p;
	if ((sign != '+' && sign != '-') || !*++p || !take_integer(&p, INT_MAX, &hours))
		return 0;
	if (take_char(&p, ':'))
		(void)take_integer(&p, INT_MAX, &minutes);
	return (sign == '-' ? -1 : 1) * (hours * 60 + minutes);
}

bool instant_parse_datetime(struct json v, double *ret)
{
	char t[64];
	long long hour = 0, minute = 0, second = 0, zone = 0;
	double rest = 0, days;
	if (!text_of(v, t) || !instant_parse_date(v, &days))
		return false;
	char *p = t + strcspn(t, "T ");
	if (*p++ && take_integer(&p, INT_MAX, &hour) && take_char(&p, ':') &&
	    take_integer(&p, INT_MAX, &minute)) {
		if (take_char(&p, ':') && take_integer(&p, INT_MAX, &second) && *p == '.')
			rest = strtod(p, &p);
		zone = take_zone(p);
	}
	/* The fraction last: then the whole seconds are exact. */
	*ret = days * 86400 + (double)(hour * 3600 + (minute - zone) * 60 + second) + rest;
	return true;
}
