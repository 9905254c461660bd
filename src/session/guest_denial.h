/* session/guest_denial.h - denials that only the guest reports. Its code may lie, so a claim is
 * checked against the policy, worded by the host, and marked `claimed`. */
#pragma once

#include "files/workspace.h"
#include "policy/policy.h"
#include "session/result.h"

/* The guest's exception message, parsed. */
struct guest_denial {
	int os_errno; /* 0: the message names none */
	char *path;   /* as written in the message; NULL: none */
};

/* Python's "[Errno 13] Permission denied: '/x'" and Node's "EACCES: permission denied, open '/x'".
 */
void guest_denial_parse(struct guest_denial *ret, const char *message);
void guest_denial_done(struct guest_denial *d);

struct guest_denial_setting {
	const struct policy *policy;
	struct workspace *workspace; /* NULL: no workspace to check against */
	const char *cwd;             /* NULL: /home/user */
	/* Without user namespaces, guest paths are host paths, and this is the guest's private
	 * directory. NULL: the guest has namespaces. */
	const char *private_dir;
};

/* True if the policy may have refused this access; then it is added to the denials of r, provided
 * that the message names a path. A path that the policy grants cannot have been refused by it. */
bool guest_denial_file(const struct guest_denial *d, const struct guest_denial_setting *s,
		       struct cordon_result *r);
/* The guest's agent says that this command was requested and refused. Adds a denial unless the
 * policy allows the command. */
void guest_denial_command(const char *name, const struct policy *p, struct cordon_result *r);
