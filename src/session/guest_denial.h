/* session/guest_denial.h - denials that only the guest reports. Its code may lie, so a claim is
 * checked against the policy, worded by the host, and marked `claimed`. */
#pragma once

#include "files/workspace.h"
#include "policy/policy.h"
#include "session/result.h"

/* The guest's exception message, parsed. */
struct guest_denial {
	int os_errno;    /* 0: the message names none */
	char *path;      /* as written in the message; NULL: none */
	bool is_library; /* it was to be mapped as code */
};

/* Python's "[Errno 13] Permission denied: '/x'", Node's "EACCES: permission denied, open '/x'", and
 * the loader's "/x: failed to map segment from shared object", which is EACCES here. */
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
/* The same for what programs wrote to stderr: "cat: /x: Permission denied", also R's warnings.
 * Returns whether a denial was added. */
bool guest_denial_lines(const char *text, const struct guest_denial_setting *s,
			struct cordon_result *r);
/* The guest's import hook refused the module that the message quotes first. */
void guest_denial_module(const char *message, const struct policy *p, struct cordon_result *r);
/* The kernel refused something that names no path and that pid 1 does not see: a signal to pid 1,
 * a higher priority. */
void guest_denial_rights(struct cordon_result *r);
/* What failed code says if there is no network: that certificates are missing, for which some
 * programs look before they connect. Where code may make sockets (`expose`), pid 1 sees no refused
 * call, so what it says about addresses and names counts too. text: the exception's message, or
 * stderr; may be NULL. */
void guest_denial_network(const char *text, const struct policy *p, struct cordon_result *r);
/* The guest's agent says that this command was requested and refused. Adds a denial unless the
 * policy allows the command or the host does not have it. */
void guest_denial_command(const char *name, const struct policy *p, struct cordon_result *r);
/* The same for what a shell that the code started wrote to stderr: "sh: 1: ls: not found". */
void guest_denial_not_found(const char *text, const struct policy *p, struct cordon_result *r);
