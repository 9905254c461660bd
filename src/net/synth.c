/* net/synth.c - synthetic addresses. */
#include "net/synth.h"

#include <string.h>

#include "base/mem.h"

enum { TABLE = 2 * SYNTH_MAX, FIRST = 16 };

struct synth {
	struct host *names[SYNTH_MAX];
	unsigned count;
	unsigned short table[TABLE]; /* open addressing by name; index + 1, 0 is free */
};

int synth_new(struct synth **ret, struct cordon_error **reterr)
{
	struct synth *s = mem_alloc(sizeof(*s));
	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*ret = s;
	return 0;
}

struct synth *synth_free(struct synth *s)
{
	for (unsigned i = 0; s && i < s->count; i++)
		free(s->names[i]);
	free(s);
	return NULL;
}

static void make(unsigned index, struct address *ret_v4, struct address *ret_v6)
{
	struct address_block v4, v6;
	unsigned n = FIRST + index;

	(void)address_parse_block(SYNTH_V4_BLOCK, &v4);
	(void)address_parse_block(SYNTH_V6_BLOCK, &v6);
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

int synth_add(struct synth *s, const struct host *name, struct address *ret_v4,
	      struct address *ret_v6)
{
	unsigned slot = hash(name->name) % TABLE;

	for (; s->table[slot]; slot = (slot + 1) % TABLE) {
		unsigned index = s->table[slot] - 1u;
		if (host_equal(s->names[index], name)) {
			make(index, ret_v4, ret_v6);
			return 0;
		}
	}
	if (s->count == SYNTH_MAX)
		return -CORDON_LIMIT;
	struct host *copy = mem_dup(name, sizeof(*name));
	if (!copy)
		return -CORDON_NOMEM;
	make(s->count, ret_v4, ret_v6);
	s->names[s->count++] = copy;
	s->table[slot] = (unsigned short)s->count;
	return 0;
}

const struct host *synth_find(const struct synth *s, const struct address *a)
{
	struct address_block block;
	size_t size = a->family == 4 ? 4 : 16;

	if (!address_parse_block(a->family == 4 ? SYNTH_V4_BLOCK : SYNTH_V6_BLOCK, &block) ||
	    !address_in_block(a, &block))
		return NULL;
	unsigned n = (unsigned)a->bytes[size - 2] << 8 | a->bytes[size - 1];
	struct address v4, v6;
	if (n < FIRST || n - FIRST >= s->count)
		return NULL;
	make(n - FIRST, &v4, &v6); /* the bytes between must be those that we gave out */
	return address_equal(a, a->family == 4 ? &v4 : &v6) ? s->names[n - FIRST] : NULL;
}
