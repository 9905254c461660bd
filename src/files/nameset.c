/* files/nameset.c - see nameset.h. */
#include "files/nameset.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"

void nameset_init(struct nameset *s)
{
	*s = (struct nameset){ 0 };
	random_bytes(s->key, sizeof(s->key));
}

void nameset_done(struct nameset *s)
{
	free(s->slots);
	free(s->names);
	*s = (struct nameset){ 0 };
}

static uint64_t hash_of(const struct nameset *s, const char *name, size_t len)
{
	uint64_t h;
	_Static_assert(crypto_shorthash_BYTES == sizeof(h), "one word");
	_Static_assert(crypto_shorthash_KEYBYTES == sizeof(s->key), "the key's size");
	crypto_shorthash((unsigned char *)&h, (const unsigned char *)name, len, s->key);
	return h;
}

static struct nameset_slot *probe(const struct nameset *s, const char *name, uint64_t hash)
{
	size_t mask = s->slot_count - 1;
	for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
		struct nameset_slot *slot = &s->slots[i];
		if (!slot->name || (slot->hash == hash && !strcmp(s->names + slot->name - 1, name)))
			return slot;
	}
}

static int make_room(struct nameset *s, size_t len)
{
	if (s->names_len + len >= UINT32_MAX)
		return -E2BIG;
	if (s->names_len + len > s->names_cap) {
		size_t cap = s->names_cap * 2 > s->names_len + len ? s->names_cap * 2
								   : s->names_len + len + 4096;
		char *names = mem_grow(s->names, cap, 1);
		if (!names)
			return -ENOMEM;
		s->names = names;
		s->names_cap = cap;
	}
	if (s->count * 2 < s->slot_count)
		return 0;
	struct nameset bigger = *s;
	bigger.slot_count = s->slot_count ? s->slot_count * 2 : 256;
	bigger.slots = mem_array(bigger.slot_count, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < s->slot_count; i++)
		if (s->slots[i].name)
			*probe(&bigger, s->names + s->slots[i].name - 1, s->slots[i].hash) =
				s->slots[i];
	free(s->slots);
	*s = bigger;
	return 0;
}

int nameset_add(struct nameset *s, const char *name, uint32_t **ret)
{
	size_t len = strlen(name);
	int r = make_room(s, len + 1);
	if (r < 0)
		return r;
	uint64_t hash = hash_of(s, name, len);
	struct nameset_slot *slot = probe(s, name, hash);
	*ret = &slot->value;
	if (slot->name)
		return 1;
	memcpy(s->names + s->names_len, name, len + 1);
	*slot = (struct nameset_slot){ .hash = hash, .name = (uint32_t)s->names_len + 1 };
	s->names_len += len + 1;
	s->count++;
	return 0;
}

uint32_t *nameset_find(struct nameset *s, const char *name)
{
	if (!s->slot_count)
		return NULL;
	struct nameset_slot *slot = probe(s, name, hash_of(s, name, strlen(name)));
	return slot->name ? &slot->value : NULL;
}
