/* cli/policy_file.h - writes a policy as a file for people to read and change. */
#pragma once

#include <cordon/policy.h>
#include <stdbool.h>

/* The level and what differs from it. CORDON_EXISTS: there is such a file, unless replaces.
 * CORDON_INVALID: it has secrets, whose values are never written. */
int policy_file_save(const struct cordon_policy *p, const char *path, bool replaces,
		     struct cordon_error **reterr);
/* Writes any text in the same way. */
int policy_file_save_text(const char *text, const char *path, bool replaces,
			  struct cordon_error **reterr);
