/* base/clock.c - see clock.h. */
#include "base/clock.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

enum { NS_PER_MS = 1000000, NS_PER_SECOND = 1000000000 };

uint64_t clock_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

deadline_ns deadline_after_ms(uint64_t ms)
{
	uint64_t now = clock_now_ns(), ns, at;

	if (__builtin_mul_overflow(ms, (uint64_t)NS_PER_MS, &ns) ||
	    __builtin_add_overflow(now, ns, &at))
		return UINT64_MAX;
	return at;
}

bool deadline_is_over(deadline_ns d)
{
	return d != 0 && clock_now_ns() >= d;
}

int deadline_poll_ms(deadline_ns d)
{
	if (d == 0)
		return -1;
	uint64_t now = clock_now_ns();
	if (now >= d)
		return 0;
	uint64_t left = d - now, ms = left / NS_PER_MS + (left % NS_PER_MS != 0);
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

void clock_utc_again(struct clock_utc *c, char ret[static CLOCK_UTC_SIZE])
{
	struct timespec now;
	struct tm utc;
	char text[80]; /* enough for any year; the compiler cannot know that it has four digits */

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (c->second != now.tv_sec || !c->text[0]) {
		(void)gmtime_r(&now.tv_sec, &utc);
		(void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.000Z",
			       utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
			       utc.tm_min, utc.tm_sec);
		for (size_t i = 0; i < CLOCK_UTC_SIZE - 1; i++)
			c->text[i] = text[i];
		c->text[CLOCK_UTC_SIZE - 1] = '\0';
		c->second = now.tv_sec;
	}
	int ms = (int)(now.tv_nsec / NS_PER_MS);
	for (size_t i = 0; i < CLOCK_UTC_SIZE; i++)
		ret[i] = c->text[i];
	ret[CLOCK_UTC_SIZE - 5] = (char)('0' + ms / 100);
	ret[CLOCK_UTC_SIZE - 4] = (char)('0' + ms / 10 % 10);
	ret[CLOCK_UTC_SIZE - 3] = (char)('0' + ms % 10);
}

void clock_utc_text(char ret[static CLOCK_UTC_SIZE])
{
	struct clock_utc fresh = { 0 };

	clock_utc_again(&fresh, ret);
}
