/* modules/installer.h - runs a package manager in a sandbox of its own, and copies what it
 * installed into a session's workspace. */
#pragma once

#include "modules/package_request.h"

struct cordon_session;

/* The policy of that sandbox: the session's, with another network, other mounts and limits. */
int install_policy(const struct package_manager *m, const struct policy *from, struct policy *ret,
		   struct cordon_error **reterr);
/* The variable `request` of that code, as a JSON object. names: ended by NULL. The caller frees it.
 * NULL: out of memory. */
char *install_request(const struct package_manager *m, const struct policy *p,
		      const struct strlist *names);

/* Turns the result of an installation into an error, unless it was successful. *ret_packages: the
 * names and versions that it says, or NULL; a new reference. */
struct cordon_result;
int install_verdict(const struct package_manager *m, const struct policy *p,
		    struct cordon_result *result, json_t **ret_packages,
		    struct cordon_error **reterr);

/* How many packages are among the results in this sandbox's workspace. More than the policy allows,
 * and more files than the session's workspace can hold, are errors. */
int install_count(const struct package_manager *m, struct cordon_session *s, const struct policy *p,
		  uint64_t *ret, struct cordon_error **reterr);
int install_files_error(const struct policy *p, struct cordon_error **reterr);

/* For a session that is being opened with names. As cordon_session_install. */
int installer_open(struct cordon_session *s, const char *const *names,
		   struct cordon_error **reterr);
