/* base/jsonguard.c - see jsonguard.h. */
#include "base/jsonguard.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* What jansson may still ask for after the first failure: the token's buffer doubled, the token as
 * a string and as a key, and 200 bytes for each of the bytes that it has been given. */
enum { PIECE = 128, FIXED_BYTES = 64 << 10, TIMES = 4, ALIGN = 16 };

struct reserve {
	char *bytes;
	size_t size, used;
	const char *text; /* what is left of it */
	size_t len;
	bool is_hit;
};

static _Thread_local struct reserve *reserve; /* of the parse that runs in this thread */

static void *guarded_malloc(size_t size)
{
	struct reserve *r = reserve;
	void *p = mem_fault() ? NULL : malloc(size);

	if (p || !r)
		return p;
	r->is_hit = true;
	if (size > r->size - r->used)
		return NULL;
	p = r->bytes + r->used;
	size = (size + ALIGN - 1) / ALIGN * ALIGN;
	r->used += size < r->size - r->used ? size : r->size - r->used;
	return p;
}

static void guarded_free(void *p)
{
	const struct reserve *r = reserve;
	uintptr_t at = (uintptr_t)p;

	if (r && at >= (uintptr_t)r->bytes && at < (uintptr_t)r->bytes + r->size)
		return;
	free(p);
}

void jsonguard_install(void)
{
	json_set_alloc_funcs(guarded_malloc, guarded_free);
}

/* A little at a time, for it must be able to end soon. */
static size_t feed(void *buffer, size_t room, void *arg)
{
	struct reserve *r = arg;
	size_t n = r->len < PIECE ? r->len : PIECE;

	if (r->is_hit)
		return 0;
	n = n < room ? n : room;
	memcpy(buffer, r->text, n);
	r->text += n;
	r->len -= n;
	return n;
}

json_t *jsonguard_parse(const char *text, size_t len, size_t flags, json_error_t *e,
			bool *ret_nomem)
{
	struct reserve r = { .text = text, .len = len };
	size_t size;

	*ret_nomem = true;
	if (!size_mul(len, TIMES, &size) || !size_add(size, FIXED_BYTES, &r.size) || mem_fault())
		return NULL;
	r.bytes = malloc(r.size); /* not touched, so it costs nothing */
	if (!r.bytes)
		return NULL;
	reserve = &r;
	json_t *j = json_load_callback(feed, &r, flags, e);
	if (r.is_hit) {
		json_decref(j);
		j = NULL;
	}
	reserve = NULL;
	free(r.bytes);
	*ret_nomem = r.is_hit;
	return j;
}
