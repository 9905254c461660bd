/* session/guest_denial.h - denials that only the guest reports. Its code may lie, so a claim is
 * checked against the policy, worded by the host, and marked `claimed`. */
#pragma once

#include "files/workspace.h"
#include "policy/policy.h"
#include "session/result.h"

/* The guest's sentence about its exception, taken apart. */
struct guest_denial {
	int os_errno; /* 0: it names none */
	char *path;   /* as it was said; NULL: it names none */
};

/* Python's "[Errno 13] Permission denied: '/x'" and Node's "EACCES: permission denied, open '/x'".
 */
void guest_denial_parse(struct guest_denial *ret, const char *message);
void guest_denial_done(struct guest_denial *d);

struct guest_denial_setting {
	const struct policy *policy;
	struct workspace *workspace; /* NULL: there is none to look into */
	const char *cwd;             /* NULL: /home/user */
	/* On the rung without namespaces: the directory of the host that is the guest's, where all
	 * paths are the host's. NULL: there are namespaces. */
	const char *private_dir;
};

/* Whether the policy may have refused it. Then it is put among the denials of r if a path is named:
 * what the policy gives cannot have been refused by it. */
bool guest_denial_file(const struct guest_denial *d, const struct guest_denial_setting *s,
		       struct cordon_result *r);
/* A command that the guest's agent says it was asked for; none if the policy names it. */
void guest_denial_command(const char *name, const struct policy *p, struct cordon_result *r);
