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
	p.interpreter_tasks = src->interpreter_tasks;
	*ret = p;
	p = (struct policy){ 0 };
	return 0;
}

bool policy_shells_run_all(const struct policy *p)
{
	return p->commands.all || strlist_has(&p->commands.names, POLICY_SHELLS_ALL);
}

bool policy_shells_run(const struct policy *p, const char *command)
{
	return policy_shells_run_all(p) || strlist_has(&p->commands.names, command);
}

bool policy_names_program(const struct policy *p)
{
	return p->commands.names.count > strlist_has(&p->commands.names, POLICY_SHELLS_ALL);
}

int policy_hash(const struct policy *p, uint8_t ret[static 32])
{
	cleanup_json json_t *j = document_write(p, true);
	size_t len;
	char *text = j ? json_text(j, &len) : NULL;

	if (!text)
		return -CORDON_NOMEM;
	crypto_hash_sha256_state state;
	(void)crypto_hash_sha256_init(&state);
	(void)crypto_hash_sha256_update(&state, (const unsigned char *)text, len);
	if (p->interpreter_tasks > 0)
		(void)crypto_hash_sha256_update(&state,
						(const unsigned char *)&p->interpreter_tasks,
						sizeof(p->interpreter_tasks));
	(void)crypto_hash_sha256_final(&state, ret);
	sodium_memzero(text, len);
	free(text);
	return 0;
}
