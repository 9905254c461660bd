/* tests/behaviour/belongings.h - what this process has that sessions could leave behind. */
#pragma once

struct belongings {
	unsigned descriptors, threads, children, groups;
};

struct belongings count_belongings(void);
/* Ends the test if there is more than before. Releases the templates first. */
void must_be_as_before(const struct belongings *before);
