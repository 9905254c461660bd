/* base/random.h - random bytes from the kernel, and hex text. */
#pragma once

#include <stddef.h>

/* Fills with the kernel's randomness; cannot fail on a kernel that boots. */
void random_bytes(void *ret, size_t len);
/* Writes len lower-case hex digits and a NUL: ret needs len + 1 bytes. */
void random_hex(char *ret, size_t len);
/* 1 if equal, else 0; in constant time. */
int random_equal(const void *a, const void *b, size_t len);
void hex_encode(char *ret, const void *bytes, size_t len); /* 2 * len + 1 bytes */
