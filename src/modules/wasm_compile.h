/* modules/wasm_compile.h - a sandbox in which a WebAssembly module becomes native code. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum { WASM_COMPILE_OBJECT_BYTES = 64 << 20 };

struct wasm_compile_job {
	const void *bytes;
	size_t len;
	uint64_t timeout_ms;
};

struct wasm_compiled {
	struct buf object;  /* for cordon-pod --modules */
	struct buf imports; /* names, separated by blanks */
};

void wasm_compiled_init(struct wasm_compiled *c);
void wasm_compiled_done(struct wasm_compiled *c);
#define cleanup_wasm_compiled CLEANUP(wasm_compiled_done)

/* image: the pod's, with its directory translate/. CORDON_INVALID: the module is not valid, and the
 * error says why; CORDON_TIMEOUT; CORDON_LIMIT; CORDON_UNSUPPORTED: no compiler is installed. */
int wasm_compile_run(const char *image, const struct wasm_compile_job *job,
		     struct wasm_compiled *ret, struct cordon_error **reterr);
