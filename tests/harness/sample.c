/* harness/sample.c - tests that pass, fail, crash, hang and skip, for tests/harness/run. */
#include "harness/fault.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

TEST(passes)
{
	ASSERT_EQ(1, 1);
}

TEST(fails)
{
	ASSERT_STREQ("got", "want");
}

TEST(crashes)
{
	abort();
}

TEST_WITHIN(hangs, 1)
{
	if (fork() == 0)
		execl("/bin/sleep", "sleep", "7654", NULL);
	pause();
}

TEST(skips)
{
	test_skip("no reason");
}

TEST(needs_the_moon)
{
	needs(false, "moon");
}

static int allocates_twice(void)
{
	cleanup_free char *a = str_dup("a");
	cleanup_free char *b = a ? str_dup("b") : NULL;

	return b ? 0 : -CORDON_NOMEM;
}

TEST(fault_loop_reaches_every_allocation)
{
	int rounds = 0, hits = 0;

	FAULT_LOOP
	{
		ASSERT_FAULT(allocates_twice());
		rounds++;
		hits += fault_was_hit();
	}
	ASSERT_EQ(rounds, 7); /* one undisturbed, then twice: two with a fault, one beyond */
	ASSERT_EQ(hits, 4);
}

TEST(fault_loop_sees_a_swallowed_fault)
{
	FAULT_LOOP
	{
		(void)allocates_twice();
		ASSERT_FAULT(0);
	}
}

TEST(fault_loop_sees_a_descriptor)
{
	FAULT_LOOP
	{
		if (allocates_twice() < 0)
			(void)open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
}
