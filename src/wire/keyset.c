/* wire/keyset.c - see keyset.h. An open-addressed hash table. */
#include "wire/keyset.h"

#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"

void keyset_init(struct keyset *k)
{
	*k = (struct keyset){ .cap = KEYSET_FIXED };
}

void keyset_done(struct keyset *k)
{
	free(k->slots);
	k->slots = NULL;
}

/* The slot of this hash, or the empty slot where it belongs. */
static uint64_t *slot_of(uint64_t *slots, size_t cap, uint64_t hash)
{
	size_t i = (size_t)hash & (cap - 1);

	while (slots[i] != 0 && slots[i] != hash)
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static bool grow(struct keyset *k)
{
	uint64_t *old = k->slots ? k->slots : k->fixed;
	uint64_t *wider = mem_array(k->cap * 4, sizeof(*wider));

	if (!wider)
		return false;
	for (size_t i = 0; i < k->cap; i++)
		if (old[i] != 0)
			*slot_of(wider, k->cap * 4, old[i]) = old[i];
	free(k->slots);
	k->slots = wider;
	k->cap *= 4;
	return true;
}

/* Getting a key from the kernel takes longer than handling most messages, so one key serves many
 * sets of this thread. A guest learns only whether its own keys differ. */
enum { KEY_SERVES = 4096 };

static void take_key(struct keyset *k)
{
	static _Thread_local struct {
		uint8_t key[sizeof(k->key)];
		unsigned left;
	} drawn;

	if (drawn.left == 0) {
		random_bytes(drawn.key, sizeof(drawn.key));
		drawn.left = KEY_SERVES;
	}
	drawn.left--;
	memcpy(k->key, drawn.key, sizeof(k->key));
	k->is_keyed = true;
}

enum keyset_answer keyset_add(struct keyset *k, uint64_t object, const char *key, size_t len)
{
	uint8_t sip_key[16];
	uint64_t hash, word;

	if (!k->is_keyed)
		take_key(k);
	if (k->used >= k->cap / 4 * 3 && !grow(k))
		return KEYSET_NOMEM;
	memcpy(sip_key, k->key, sizeof(sip_key));
	memcpy(&word, sip_key, sizeof(word));
	word ^= object;
	memcpy(sip_key, &word, sizeof(word));
	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)key, len, sip_key);
	if (hash == 0)
		hash = 1; /* zero marks an empty slot */

	uint64_t *slot = slot_of(k->slots ? k->slots : k->fixed, k->cap, hash);
	if (*slot == hash)
		return KEYSET_SEEN;
	*slot = hash;
	k->used++;
	return KEYSET_NEW;
}
