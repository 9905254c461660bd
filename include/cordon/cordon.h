/* cordon/cordon.h - the whole public API of libcordon. */
#pragma once

#include <cordon/audit.h>
#include <cordon/error.h>
#include <cordon/fetch.h>
#include <cordon/files.h>
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
/* The ladder of this machine as JSON, to be freed. */
int cordon_doctor(char **ret_json, struct cordon_error **reterr);

struct cordon_prove_options {
	const char *only;  /* one attack by name; NULL: all */
	const char *guest; /* under the wall of this guest only; NULL: of all that are installed */
	const char *allow_host; /* with the gateway on, which opens this host; NULL: no network */
	bool control;           /* try each attack outside too, where it should work */
	bool quick;             /* do not look which layers stopped it */
	void (*progress)(const char *attack, const char *outcome, void *arg);
	void *progress_arg;
};
/* Carries out every known attack through the launch path that all code takes. JSON, to be freed:
 * user, allow_host, held, open, broken, attacks: [{name, attack, outcome, said, guests, layers,
 * control}]. Not for use while other threads start processes: it leaves a descriptor open on
 * purpose. */
int cordon_prove(const struct cordon_prove_options *opts, char **ret_json,
		 struct cordon_error **reterr);
/* The attacks that it knows, without carrying any out. JSON, to be freed: [{name, attack}]. */
int cordon_attacks(char **ret_json, struct cordon_error **reterr);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
