/* cli/base_option.h - the options --with and --venv: what the code finds installed. */
#pragma once

#include <cordon/policy.h>

#include "base/str.h"
#include "cli/option.h"

#define BASE_OPTIONS                                                                               \
	{ "with", 0, "NAME,...",                                                                   \
	  "install these packages of the guest's language first, as far as the policy names them", \
	  true },                                                                                  \
	{                                                                                          \
		"venv", 0, "DIR",                                                                  \
			"a virtual environment of the host, or a folder with node_modules, "       \
			"read-only",                                                               \
			false                                                                      \
	}

/* The names of --with, in the form of cordon_session_options: ended by NULL. NULL: none. The list
 * owns them. */
int base_packages(const struct cli *c, struct strlist *list, const char *const **ret,
		  struct cordon_error **reterr);
/* Puts --venv into the policy. */
int base_venv(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr);
