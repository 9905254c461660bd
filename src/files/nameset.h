/* files/nameset.h - a set of names, each with a number. Uses a keyed hash, because untrusted code
 * chooses the names. */
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
/* Adds or finds the name. *ret points to its value, 0 for a new name, and is valid until the next
 * call. 1: it existed; 0: it is new; -ENOMEM or -E2BIG. */
int nameset_add(struct nameset *s, const char *name, uint32_t **ret);
/* NULL: not in the set. */
uint32_t *nameset_find(struct nameset *s, const char *name);
#define cleanup_nameset CLEANUP(nameset_done)
