/* session/addition.h - modules as objects that the pod can map, kept by their hash. */
#pragma once

#include <limits.h>

#include "session/translator.h"

enum { ADDITION_HASH = 65 }; /* hex digits of a SHA-256 and a NUL */

/* The pod's image and the version of objects it takes. */
struct addition_image {
	char path[PATH_MAX];
	char abi[32];
};
int addition_find_image(struct addition_image *ret, struct cordon_error **reterr);
void addition_hash(const void *bytes, size_t len, char ret[static ADDITION_HASH]);
/* From the cache, or translated now and put there. */
int addition_make(const struct addition_image *image, const char *hash,
		  const struct translator_job *job, struct translation *ret,
		  struct cordon_error **reterr);
/* Makes the directories above it; replaces atomically. */
int addition_save(const char *path, mode_t mode, const void *bytes, size_t len,
		  struct cordon_error **reterr);
