/* policy/policy.c - see policy.h. Copies, frees and hashes policies. */
#include "policy/policy.h"

#include <sodium.h>
#include <string.h>

#include "policy/document.h"
#include "policy/kind.h"

void policy_done(struct policy *p)
{
	for (size_t i = 0; i < field_count; i++)
		if (field_table[i].kind->done)
			field_table[i].kind->done(&field_table[i], p);
	*p = (struct policy){ 0 };
}

/* Copies the bytes of a value that owns nothing. */
static void copy_plain(const struct field *f, struct policy *dst, const struct policy *src)
{
	size_t size = f->kind == &kind_number   ? sizeof(uint64_t)
		      : f->kind == &kind_flag   ? sizeof(bool)
		      : f->kind == &kind_layers ? sizeof(uint32_t)
						: sizeof(enum policy_level);

	memcpy(kind_value(f, dst), kind_value(f, src), size);
}

int policy_copy(struct policy *ret, const struct policy *src, struct cordon_error **reterr)
{
	cleanup_policy struct policy p = { 0 };

	for (size_t i = 0; i < field_count; i++) {
		const struct field *f = &field_table[i];
		if (!f->kind->copy)
			copy_plain(f, &p, src);
		else if (f->kind->copy(f, &p, src) < 0)
			return kind_nomem(reterr);
	}
	*ret = p;
	p = (struct policy){ 0 };
	return 0;
}

int policy_hash(const struct policy *p, uint8_t ret[static 32])
{
	cleanup_json json_t *j = document_write(p, true);
	size_t len;
	char *text = j ? json_text(j, &len) : NULL;

	if (!text)
		return -CORDON_NOMEM;
	(void)crypto_hash_sha256(ret, (const unsigned char *)text, len);
	sodium_memzero(text, len);
	free(text);
	return 0;
}
