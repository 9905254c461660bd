/* wire/keyset.h - the keys seen in a JSON text, to find duplicates in linear time. It stores only
 * keyed 64-bit hashes: a guest that does not know the key cannot cause collisions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEYSET_FIXED = 32 };

struct keyset {
	uint64_t fixed[KEYSET_FIXED];
	uint64_t *slots; /* = fixed until that is three quarters full */
	size_t cap, used;
	uint8_t key[16];
	bool is_keyed;
};

enum keyset_answer { KEYSET_NEW, KEYSET_SEEN, KEYSET_NOMEM };

void keyset_init(struct keyset *k);
void keyset_done(struct keyset *k);
/* Adds a key of the object with this number. */
enum keyset_answer keyset_add(struct keyset *k, uint64_t object, const char *key, size_t len);
