/* net/gateway/fake_address.c - see fake_address.h. */
#include "net/gateway/fake_address.h"

#include <string.h>

#include "base/mem.h"

enum { TABLE = 2 * FAKE_ADDRESS_MAX, FIRST = 16 };

struct fake_address {
	struct host *names[FAKE_ADDRESS_MAX];
	unsigned count;
	unsigned short table[TABLE]; /* open addressing by name; index + 1, 0: free */
};

int fake_address_new(struct fake_address **ret, struct cordon_error **reterr)
{
	struct fake_address *f = mem_alloc(sizeof(*f));
	if (!f)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*ret = f;
	return 0;
}

struct fake_address *fake_address_free(struct fake_address *f)
{
	for (unsigned i = 0; f && i < f->count; i++)
		free(f->names[i]);
	free(f);
	return NULL;
}

static void make(unsigned index, struct address *ret_v4, struct address *ret_v6)
{
	struct address_block v4, v6;
	unsigned n = FIRST + index;

	(void)address_parse_block(FAKE_ADDRESS_V4_BLOCK, &v4);
	(void)address_parse_block(FAKE_ADDRESS_V6_BLOCK, &v6);
	v4.base.bytes[2] = (uint8_t)(n >> 8);
	v4.base.bytes[3] = (uint8_t)n;
	v6.base.bytes[14] = (uint8_t)(n >> 8);
	v6.base.bytes[15] = (uint8_t)n;
	*ret_v4 = v4.base;
	*ret_v6 = v6.base;
}

static unsigned hash(const char *s)
{
	unsigned h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

int fake_address_add(struct fake_address *f, const struct host *name, struct address *ret_v4,
		     struct address *ret_v6)
{
	unsigned slot = hash(name->name) % TABLE;

	for (; f->table[slot]; slot = (slot + 1) % TABLE) {
		unsigned index = f->table[slot] - 1u;
		if (host_equal(f->names[index], name)) {
			make(index, ret_v4, ret_v6);
			return 0;
		}
	}
	if (f->count == FAKE_ADDRESS_MAX)
		return -CORDON_LIMIT;
	struct host *copy = mem_dup(name, sizeof(*name));
	if (!copy)
		return -CORDON_NOMEM;
	make(f->count, ret_v4, ret_v6);
	f->names[f->count++] = copy;
	f->table[slot] = (unsigned short)f->count;
	return 0;
}

const struct host *fake_address_find(const struct fake_address *f, const struct address *a)
{
	struct address_block block;
	size_t size = a->family == 4 ? 4 : 16;

	if (!address_parse_block(a->family == 4 ? FAKE_ADDRESS_V4_BLOCK : FAKE_ADDRESS_V6_BLOCK,
				 &block) ||
	    !address_in_block(a, &block))
		return NULL;
	unsigned n = (unsigned)a->bytes[size - 2] << 8 | a->bytes[size - 1];
	struct address v4, v6;
	if (n < FIRST || n - FIRST >= f->count)
		return NULL;
	make(n - FIRST, &v4, &v6); /* compare all bytes with the address that we gave out */
	return address_equal(a, a->family == 4 ? &v4 : &v6) ? f->names[n - FIRST] : NULL;
}
