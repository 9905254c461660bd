/* The interface of walls: each operation is there, and a box speaks to its own wall. */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "harness/test.h"
#include "wall/wall.h"

TEST(every_operation_is_there)
{
	const struct wall *w = wall_choose(NULL);
	const char *at = (const char *)w;

	/* Only pointers: a new operation that a wall does not have is found here, not in a call. */
	for (size_t i = 0; i < sizeof(*w); i += sizeof(void *)) {
		void *p;

		memcpy(&p, at + i, sizeof(p));
		if (!p)
			test_fail(__FILE__, __LINE__, "%s: operation %zu is missing", w->name,
				  i / sizeof(void *));
	}
}

TEST(attacks_come_with_what_carries_them_out)
{
	const struct wall_attacks a = wall_choose(NULL)->attacks();

	ASSERT(a.count > 100);
	ASSERT(a.program_len > 0 && a.python_len > 0);
	for (size_t i = 0; i < a.count; i++)
		ASSERT(a.table[i].name && a.table[i].words && a.table[i].holds);
}

static unsigned ended;

static void end(struct box *b)
{
	(void)b;
	ended++;
}

static struct box_state look(const struct box *b)
{
	(void)b;
	return (struct box_state){ .stage = BOX_EXITED, .wait_status = 7 << 8 };
}

TEST(a_box_speaks_to_its_own_wall)
{
	static const struct wall other = { .name = "other", .end = end, .look = look };
	struct box b = { .wall = &other };

	box_end(&b);
	ASSERT_EQ(ended, 1U);
	ASSERT_EQ(box_look(&b).wait_status, 7 << 8);
	ASSERT(box_free(NULL) == NULL);
}

TEST(only_owned_descriptors_are_closed)
{
	int own = dup(0), borrowed = dup(0);
	struct box_fork_fds f = { .fds = { own, borrowed, -1, -1, -1, -1, -1 }, .owned = 1 };

	box_fork_fds_done(&f);
	ASSERT(fcntl(own, F_GETFD) < 0);
	ASSERT(fcntl(borrowed, F_GETFD) >= 0);
	box_fork_fds_done(&f);
	close(borrowed);
}
