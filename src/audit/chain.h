/* audit/chain.h - the hash chain of an audit file: how a line is sealed and checked.
 *
 * Every line ends with ,"prev":"P","hash":"H"} where P is the hash of the line before it (of 64
 * zeros for the first) and H is SHA-256, in hex, of the line's bytes before ,"hash". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CHAIN_HEX = 64 };

extern const char chain_genesis[CHAIN_HEX + 1];

/* The bytes that sealing appends to an object without its closing brace. */
enum { CHAIN_SEAL_BYTES = sizeof(",\"prev\":\"\",\"hash\":\"\"}") - 1 + CHAIN_HEX + CHAIN_HEX };

/* Seals the line in place: appends to line[len] (room for CHAIN_SEAL_BYTES + 1). head: the previous
 * hash, replaced by the new one. Returns the new length. */
size_t chain_seal(char *line, size_t len, char head[static CHAIN_HEX + 1]);

enum chain_verdict {
	CHAIN_GOOD,
	CHAIN_NO_SEAL,  /* it does not end with a seal */
	CHAIN_BAD_HASH, /* its bytes were changed */
	CHAIN_BAD_PREV, /* a line before it was removed, added or changed */
};

/* Checks one line (without newline) against head, the previous hash (NULL: any). Writes the line's
 * hash to ret_head unless that is NULL. */
enum chain_verdict chain_check(const char *line, size_t len, const char *head,
			       char ret_head[CHAIN_HEX + 1]);
