/* audit/chain.c - see chain.h. */
#include "audit/chain.h"

#include <sodium.h>
#include <string.h>

#include "base/random.h"

#define ZEROS "0000000000000000"
const char chain_genesis[CHAIN_HEX + 1] = ZEROS ZEROS ZEROS ZEROS;

static const char prev_key[] = ",\"prev\":\"", hash_key[] = "\",\"hash\":\"", tail[] = "\"}";

static void hash_hex(char ret[static CHAIN_HEX + 1], const char *bytes, size_t len)
{
	unsigned char digest[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(digest, (const unsigned char *)bytes, len);
	hex_encode(ret, digest, sizeof(digest));
}

size_t chain_seal(char *line, size_t len, char head[static CHAIN_HEX + 1])
{
	char *p = line + len;

	p = mempcpy(p, prev_key, sizeof(prev_key) - 1);
	p = mempcpy(p, head, CHAIN_HEX);
	*p++ = '"'; /* the hash covers everything before this */
	hash_hex(head, line, (size_t)(p - line));
	p = mempcpy(p, hash_key + 1, sizeof(hash_key) - 2);
	p = mempcpy(p, head, CHAIN_HEX);
	p = mempcpy(p, tail, sizeof(tail) - 1);
	*p = '\0';
	return (size_t)(p - line);
}

static bool is_hex(const char *p)
{
	for (int i = 0; i < CHAIN_HEX; i++)
		if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f')))
			return false;
	return true;
}

enum chain_verdict chain_check(const char *line, size_t len, const char *head,
			       char ret_head[CHAIN_HEX + 1])
{
	char want[CHAIN_HEX + 1];

	if (len < CHAIN_SEAL_BYTES + 2 || line[0] != '{')
		return CHAIN_NO_SEAL;
	const char *seal = line + len - CHAIN_SEAL_BYTES;
	const char *prev = seal + sizeof(prev_key) - 1;
	const char *hash = prev + CHAIN_HEX + sizeof(hash_key) - 1;
	if (memcmp(seal, prev_key, sizeof(prev_key) - 1) != 0 ||
	    memcmp(prev + CHAIN_HEX, hash_key, sizeof(hash_key) - 1) != 0 ||
	    memcmp(hash + CHAIN_HEX, tail, sizeof(tail) - 1) != 0 || !is_hex(prev) || !is_hex(hash))
		return CHAIN_NO_SEAL;
	hash_hex(want, line, (size_t)(prev + CHAIN_HEX + 1 - line));
	if (memcmp(want, hash, CHAIN_HEX) != 0)
		return CHAIN_BAD_HASH;
	if (head && memcmp(head, prev, CHAIN_HEX) != 0)
		return CHAIN_BAD_PREV;
	if (ret_head)
		memcpy(ret_head, want, sizeof(want));
	return CHAIN_GOOD;
}
