/* cli/choice.h - the policy options that all verbs share. */
#pragma once

#include <cordon/policy.h>

#include "cli/option.h"

/* For a verb's table of options. */
#define CHOICE_OPTIONS                                                                             \
	{ "level", 'l', "LEVEL", "permissive, standard or strict", false },                        \
		{ "profile", 0, "NAME", "a policy for common work (cordon policy profiles)",       \
		  false },                                                                         \
		{ "policy", 'p', "FILE", "a policy file, applied after the level", true },         \
		{ "timeout", 't', "TIME", "time limit in seconds: 5, 0.5; or 250ms, 2m, 1h, none", \
		  false },                                                                         \
		{ "memory", 'm', "SIZE", "memory: 256M, 1G; at least 16M", false },                \
		{ "mount", 0, "HOST:GUEST[:MODE]", "mount a host path; snapshot, ro or rw",        \
		  true },                                                                          \
		{ "allow-host", 0, "HOST[:PORT]", "allow this host, through the gateway", true },  \
		{ "block-host", 0, "HOST[:PORT]", "block this host; opens all others", true },     \
		{ "env", 0, "NAME=VALUE", "set a variable", true },                                \
	{                                                                                          \
		"set", 0, "KEY=VALUE", "set any field of the policy", true                         \
	}

/* The checked policy of the options: the level or profile, then files, then single options, then
 * `--set`; later ones override. base: a file or a level's name that comes first, or NULL. */
int choice_policy(const struct cli *c, const char *base, struct cordon_policy **ret,
		  struct cordon_error **reterr);
/* The same with an extra step between files and options, for environment variables. */
typedef int (*choice_between_fn)(const struct cli *c, struct cordon_policy *p,
				 struct cordon_error **reterr);
int choice_policy_between(const struct cli *c, const char *base, choice_between_fn between,
			  struct cordon_policy **ret, struct cordon_error **reterr);
/* choice_policy for verbs that stream output. stdout_bytes, stderr_bytes and output_lines are
 * unlimited unless the options name them, because they only limit what a result keeps. */
int choice_policy_streamed(const struct cli *c, struct cordon_policy **ret,
			   struct cordon_error **reterr);
/* The policy of a level or a profile by its name, without any options. */
int choice_named(const char *name, struct cordon_policy **ret, struct cordon_error **reterr);
/* Whether any of the options above is given. */
bool choice_is_given(const struct cli *c);
/* A plain number of seconds, 12 or 0.5, gets its unit; other text is copied. The caller frees it.
 * NULL: out of memory. */
char *choice_seconds(const char *text);
/* Sets one field. key ends with the operator: "timeout_ms=", "network.allow+=", "env_set.". */
int choice_set(struct cordon_policy *p, const char *key, const char *value,
	       struct cordon_error **reterr);
/* Adds a mount as written on the command line, with any characters in its path. */
int choice_add_mount(struct cordon_policy *p, const char *mount, struct cordon_error **reterr);
/* Like cli_fail, but every policy error, even a missing file, is wrong usage: status 2. */
int choice_fail(const struct cli *c, const struct cordon_error *e);

static inline void choice_freep(struct cordon_policy **p)
{
	*p = cordon_policy_free(*p);
}
#define cleanup_choice CLEANUP(choice_freep)
