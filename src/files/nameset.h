/* files/nameset.h - names met so far, each with a number. Keyed hashing: the names are hostile. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct nameset {
	struct nameset_slot {
		uint64_t hash;
		uint32_t name; /* offset + 1; 0: empty */
		uint32_t value;
	} * slots;
	size_t slot_count, count;
	char *names;
	size_t names_len, names_cap;
	unsigned char key[16];
};

void nameset_init(struct nameset *s);
void nameset_done(struct nameset *s);
/* Adds the name, or finds it: *ret points to its value, new ones are 0; valid until the next call.
 * 1: it was there; 0: it is new; -ENOMEM or -E2BIG. */
int nameset_add(struct nameset *s, const char *name, uint32_t **ret);
/* NULL when it is not there. */
uint32_t *nameset_find(struct nameset *s, const char *name);
#define cleanup_nameset CLEANUP(nameset_done)
