/* harness/fault.h - the n-th allocation fails, for every n. Also jansson's.
 *
 *	FAULT_LOOP {
 *		int r = thing_new(&t, &err);
 *		ASSERT_FAULT(r);
 *		thing_free(t);
 *	}
 *
 * The body runs first undisturbed, then again with allocation 1, 2, 3, ... failing until none is
 *left to fail; then all of it once more with every allocation from the n-th on failing. After each
 *round no descriptor may be left over, and nothing leaked (seen in builds with AddressSanitizer).
 */
#pragma once

#include "harness/test.h"

struct fault {
	const char *file;
	int line;
	unsigned long n; /* which allocation fails; 0: none */
	bool sticky;
	int open_fds;
};

struct fault fault_begin(const char *file, int line);
bool fault_next(struct fault *f);
/* Whether an allocation was made to fail in this round. */
bool fault_was_hit(void);

#define FAULT_LOOP for (struct fault fault_ = fault_begin(__FILE__, __LINE__); fault_next(&fault_);)
/* r must be -CORDON_NOMEM in a round where an allocation failed, and 0 otherwise. */
#define ASSERT_FAULT(r)                                                                            \
	do {                                                                                       \
		int r_ = (r);                                                                      \
		if (r_ != (fault_was_hit() ? -CORDON_NOMEM : 0))                                   \
			test_fail(__FILE__, __LINE__, "%s is %d in round %lu%s", #r, r_, fault_.n, \
				  fault_.sticky ? " (sticky)" : "");                               \
	} while (0)
