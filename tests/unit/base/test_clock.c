/* unit/base/test_clock.c - deadlines. */
#include "base/clock.h"
#include "harness/test.h"

#include <limits.h>

TEST(never_is_never_over)
{
	ASSERT(!deadline_is_over(0));
	ASSERT_EQ(deadline_poll_ms(0), -1);
}

TEST(now_is_over)
{
	deadline_ns d = deadline_after_ms(0);

	ASSERT(d != 0 && deadline_is_over(d));
	ASSERT_EQ(deadline_poll_ms(d), 0);
}

TEST(far_away_saturates)
{
	ASSERT_EQ(deadline_poll_ms(deadline_after_ms(UINT64_MAX)), INT_MAX);
	ASSERT(deadline_after_ms(UINT64_MAX) == UINT64_MAX);
	ASSERT(!deadline_is_over(deadline_after_ms(UINT64_MAX)));
}

TEST(what_is_left_is_rounded_up)
{
	int left = deadline_poll_ms(deadline_after_ms(100000));
	ASSERT(left > 50000 && left <= 100000);
	ASSERT_EQ(deadline_poll_ms(clock_now_ns() + 900000000), 900);
}

TEST(time_does_not_go_back)
{
	uint64_t a = clock_now_ns();
	ASSERT(clock_now_ns() >= a);
}

TEST(utc_text_has_its_form)
{
	char text[CLOCK_UTC_SIZE];
	int y, mo, d, h, mi, s, ms, end = 0;

	clock_utc_text(text);
	ASSERT_EQ(
		sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &y, &mo, &d, &h, &mi, &s, &ms, &end),
		7);
	ASSERT_EQ(end, CLOCK_UTC_SIZE - 1);
	ASSERT(y >= 2024 && mo >= 1 && mo <= 12 && d >= 1 && d <= 31 && h < 24 && mi < 60 &&
	       s < 61);
}
