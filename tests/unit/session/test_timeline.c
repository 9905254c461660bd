/* unit/session/test_timeline.c - each step has a time of its own. */
#include "session/timeline.h"

#include "harness/test.h"

TEST(nobody_wants_to_know)
{
	timeline_mark(NULL, TIMELINE_OPEN);
}

TEST(a_mark_sets_its_own_step_only)
{
	for (int i = 0; i < TIMELINE_COUNT; i++) {
		struct timeline t = { { 0 } };
		uint64_t before = clock_now_ns();

		timeline_mark(&t, (enum timeline_mark)i);
		uint64_t after = clock_now_ns();
		for (int k = 0; k < TIMELINE_COUNT; k++)
			ASSERT(k == i ? t.at[k] >= before && t.at[k] <= after : t.at[k] == 0);
	}
}

TEST(later_steps_have_later_times)
{
	struct timeline t = { { 0 } };

	for (int i = 0; i < TIMELINE_COUNT; i++)
		timeline_mark(&t, (enum timeline_mark)i);
	for (int i = 1; i < TIMELINE_COUNT; i++)
		ASSERT(t.at[i] >= t.at[i - 1]);
}
