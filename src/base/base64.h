/* base/base64.h - RFC 4648 base64, standard alphabet, with padding. */
#pragma once

#include <stddef.h>

#include "base/error.h"

char *base64_encode(const void *bytes, size_t len, size_t *ret_len); /* NULL: out of memory */
/* Strict: no white space, correct padding. The caller frees *ret. */
int base64_decode(const char *text, size_t len, void **ret, size_t *ret_len,
		  struct cordon_error **reterr);
