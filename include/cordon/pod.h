/* cordon/pod.h - adds commands to the pod's image: WASI programs, compiled inside a sandbox.
 *
 * Threads: any, at any time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cordon/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct cordon_pod_add_options {
	bool replace;        /* a command of that name that was added before */
	uint64_t timeout_ms; /* for compiling; 0: 600000 */
};

/* Makes a WebAssembly module (preview 1, with _start) a command of every pod session opened from
 * now on. It is checked, translated and compiled in a sandbox, and cached by its SHA-256.
 * CORDON_INVALID says what is wrong with it. */
int cordon_pod_add(const char *name, const void *bytes, size_t len,
		   const struct cordon_pod_add_options *opts, struct cordon_error **reterr);
int cordon_pod_remove(const char *name, struct cordon_error **reterr);
/* JSON, to be freed: {"image": DIR or null, "programs": [{"name", "version", "commands": [...]}],
 * "added": [{"name", "sha256", "bytes", "imports": [...], "is_current"}]}. */
int cordon_pod_list(char **ret_json, struct cordon_error **reterr);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
