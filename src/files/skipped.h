/* files/skipped.h - what an archive leaves out, and why. */
#pragma once

#include "base/json.h"

struct skipped {
	json_t *entries; /* array of {"path", "reason"}, at most 1000 */
	uint64_t count;  /* of all */
};

/* 0 or -ENOMEM. */
int skipped_init(struct skipped *s);
void skipped_done(struct skipped *s);
int skipped_add(struct skipped *s, const char *path, const char *reason);
