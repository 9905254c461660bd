/* cordon/packages.h - installs packages of pip, npm and CRAN into a session's workspace, as far as
 * the policy names them (docs/packages.md).
 *
 * The package manager runs in a sandbox of its own, which lives only for the installation. It has
 * the wall, the requirements and the interpreters of the session's policy, none of its files,
 * mounts and tools, and reaches the named registry only. What it has installed is copied into the
 * workspace: ~/.local of Python, ~/node_modules of Node, ~/R of R. */
#pragma once

#include <stdint.h>

#include <cordon/error.h>
#include <cordon/session.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct cordon_install_options {
	const char *language; /* "python", "node" or "r"; NULL: the session's */
	const char *const
		*names;          /* ended by NULL. With versions: "a==1.2", "b@^2"; or the words
				    requirements.txt, package-lock.json for the policy's lockfile */
	uint64_t timeout_ms;     /* 0: the policy's packages.timeout_ms, which it cannot exceed */
	cordon_output_fn output; /* what the package manager prints; NULL: nothing */
	void *output_arg;
};

/* *ret_json, to be freed; may be NULL: {"manager", "packages": {name: version}, "count"}. The names
 * and versions are what the package manager says; the count is the host's. Installs again what was
 * installed before, together with the new names, so that versions fit. Holds the session as
 * execute does; cancel and kill end it. After an error the workspace has none of the packages, or,
 * if it has no room for them, some.
 *
 * CORDON_DENIED: the policy does not name a package, or the registry leads to a host that it does
 * not name. CORDON_NOT_FOUND: the registry has no such package or version. CORDON_UNSUPPORTED:
 * there is no package for this interpreter that needs no build, or no package manager.
 * CORDON_LIMIT, CORDON_TIMEOUT: packages.bytes, packages.count, packages.timeout_ms. CORDON_OS: the
 * registry cannot be reached, or the package manager failed. */
int cordon_session_install(struct cordon_session *s, const struct cordon_install_options *o,
			   char **ret_json, struct cordon_error **reterr);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
