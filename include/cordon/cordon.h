/* cordon/cordon.h - the whole public API of libcordon.
 *
 * Threads: any, at any time, but for cordon_prove. Its `progress` runs in the thread that proves.
 */
#pragma once

#include <cordon/audit.h>
#include <cordon/command.h>
#include <cordon/error.h>
#include <cordon/expose.h>
#include <cordon/fetch.h>
#include <cordon/files.h>
#include <cordon/packages.h>
#include <cordon/pod.h>
#include <cordon/policy.h>
#include <cordon/session.h>
#include <cordon/tools.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* "0.1.0" */
const char *cordon_version(void);
/* What this machine can enforce, as JSON; the caller frees it. */
int cordon_doctor(char **ret_json, struct cordon_error **reterr);

struct cordon_prove_options {
	const char *only;  /* one attack by name; NULL: all */
	const char *guest; /* in the sandbox of this guest only; NULL: of all installed guests */
	const char *allow_host; /* with the network open to this host, through the gateway; NULL: no
				   network */
	bool control;           /* try each attack outside too, where it should work */
	bool quick;             /* do not find out which layers stopped it */
	void (*progress)(const char *attack, const char *outcome, void *arg);
	void *progress_arg;
};
/* Runs every known attack through the same launch path as all code. JSON, to be freed: user,
 * allow_host, held, open, broken, attacks: [{name, attack, outcome, said, guests, layers,
 * control}]. Do not call it while other threads start processes: it leaves a descriptor open on
 * purpose. */
int cordon_prove(const struct cordon_prove_options *opts, char **ret_json,
		 struct cordon_error **reterr);
/* The known attacks, without running them, as JSON that the caller frees: [{name, attack}]. */
int cordon_attacks(char **ret_json, struct cordon_error **reterr);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
