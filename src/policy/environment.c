/* policy/environment.c - which variables may be copied from the host. */
#include "policy/policy.h"

/* These control what an interpreter or the loader runs, or belong to Cordon. */
static const char *const forbidden_prefixes[] = {
	"LD_",     "PYTHON", "R_",    "CORDON_", "SECURER_", "BASH_FUNC_",
	"MALLOC_", "DYLD_",  "NODE_", "PERL5",   "RUBY",
};
static const char *const forbidden_names[] = {
	"BASH_ENV",    "ENV",     "IFS",         "GLIBC_TUNABLES",
	"GCONV_PATH",  "LOCPATH", "NLSPATH",     "SHELLOPTS",
	"BASHOPTS",    "PS4",     "HOSTALIASES", "RESOLV_HOST_CONF",
	"GETCONF_DIR", "TZDIR",   "PERLLIB",
};
bool policy_env_is_forbidden(const char *name)
{
	for (size_t i = 0; i < sizeof(forbidden_prefixes) / sizeof(*forbidden_prefixes); i++)
		if (str_starts(name, forbidden_prefixes[i]))
			return true;
	for (size_t i = 0; i < sizeof(forbidden_names) / sizeof(*forbidden_names); i++)
		if (str_eq(name, forbidden_names[i]))
			return true;
	return false;
}
