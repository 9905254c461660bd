/* modules/wasm_cache.h - compiled WebAssembly modules that the pod can map, cached by their
 * hash. */
#pragma once

#include <limits.h>

#include "modules/wasm_compile.h"

enum { WASM_CACHE_HASH = 65 }; /* hex digits of a SHA-256 and a NUL */

/* The pod's image and the version of the objects that it accepts. */
struct wasm_cache_image {
	char path[PATH_MAX];
	char abi[32];
};
int wasm_cache_find_image(struct wasm_cache_image *ret, struct cordon_error **reterr);
void wasm_cache_hash(const void *bytes, size_t len, char ret[static WASM_CACHE_HASH]);
/* From the cache; otherwise compiled now and cached. */
int wasm_cache_make(const struct wasm_cache_image *image, const char *hash,
		    const struct wasm_compile_job *job, struct wasm_compiled *ret,
		    struct cordon_error **reterr);
/* Creates the directories above it; replaces the file atomically. */
int wasm_cache_save(const char *path, mode_t mode, const void *bytes, size_t len,
		    struct cordon_error **reterr);
