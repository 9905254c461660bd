/* base/jsonscan.h - reads JSON text in place and strictly: grammar, UTF-8, depth, range of numbers.
 * It allocates nothing. Everything that reads or writes JSON text uses it: the wire checks a
 * guest's line with it (wire/scan.h), json_parse builds a tree with it (base/json.h), and the shell
 * guest reads the host's lines with it. docs/json.md says why. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSONSCAN_MAX_DEPTH = 64, JSONSCAN_ESCAPE_SIZE = 8 };

#define JSONSCAN_INVALID "not valid JSON"

struct jsonscan {
	const char *p, *end; /* the rest of the text */
	bool is_lenient;     /* accepts numbers of any size and NUL in keys: the caller decides */
	unsigned depth;      /* open brackets */
	bool has_nul;        /* the last string contained a NUL */
	bool has_escape;     /* the last string contained an escape */
	bool is_real;        /* the last number had a point or an exponent */
	uint64_t max_values; /* 0: no limit */
	uint64_t values, objects;
	/* Callbacks of jsonscan_value(); NULL: none. Keys are still escaped. */
	bool (*key)(struct jsonscan *s, uint64_t object, const char *key, size_t len);
	/* A member of the outermost object, whose value is from `value` to s->p. */
	void (*member)(struct jsonscan *s, const char *key, size_t len, const char *value);
	const char *why; /* the first error as text; p is where */
};

/* The functions below return false for invalid text, with the reason in s->why. */
bool jsonscan_fail(struct jsonscan *s, const char *why); /* always returns false */
void jsonscan_space(struct jsonscan *s);
/* Checks one value of any kind and moves past it. */
bool jsonscan_value(struct jsonscan *s);
/* Checks that only white space follows. */
bool jsonscan_end(struct jsonscan *s);

/* Piece by piece, for callers that keep what they read. */
bool jsonscan_string(struct jsonscan *s); /* from quote to quote */
bool jsonscan_number(struct jsonscan *s);
bool jsonscan_word(struct jsonscan *s, const char *word);
bool jsonscan_key(struct jsonscan *s, const char **ret_key, size_t *ret_len);
bool jsonscan_colon(struct jsonscan *s);
/* From the opening bracket to the first item; *ret_is_empty: there is none, and the bracket is
 * closed. */
bool jsonscan_enter(struct jsonscan *s, char close, bool *ret_is_empty);
/* From the end of an item to the next; !*ret_more: it was the last, and the bracket is closed. */
bool jsonscan_more(struct jsonscan *s, char close, bool *ret_more);

/* Decodes a checked string, without its quotes, and returns the length. out has room for len bytes
 * and may be the same memory. nul: the character to write for "\u0000". */
size_t jsonscan_decode(const char *in, size_t len, unsigned nul, char *out);
/* The length of the UTF-8 sequence at text, of which `left` > 0 bytes are available; 0: invalid. */
size_t jsonscan_utf8(const char *text, size_t left);
/* Writes the escape for a character that cannot be in a string as it is; returns its length. */
size_t jsonscan_escape(unsigned char c, char ret[static JSONSCAN_ESCAPE_SIZE]);
