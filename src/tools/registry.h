/* tools/registry.h - the inside of struct cordon_tools. Tools are only added, never changed or
 * removed, so a pointer to a tool is valid as long as its registry. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/json.h"
#include "cordon/tools.h"
#include "policy/policy.h"

struct command;

struct tool {
	/* description is never NULL; the others may be */
	char *name, *description, *category, *usage, *python_package;
	json_t *examples; /* an array of strings; NULL: none */
	json_t *schema;
	cordon_tool_fn fn;
	void *arg;
	struct command *host;           /* a host command to run instead of fn; NULL: none */
	uint64_t max_calls, timeout_ms; /* 0: the default (no limit; for timeout_ms 30000) */
	uint64_t result_bytes,
		argument_bytes; /* as given; registry_*_max() return the effective limits */
	bool approval, command;
	size_t index; /* from 0, in order of registration */
};

struct cordon_tools {
	atomic_uint refs;
	pthread_rwlock_t lock;
	struct tool **items;
	size_t count;
};

/* NULL: no such tool. */
const struct tool *registry_find(struct cordon_tools *t, const char *name);
/* The tool with this index, or NULL past the last. */
const struct tool *registry_at(struct cordon_tools *t, size_t index);
/* Like cordon_tools_add, with a host command. On success the tool owns the command. */
int registry_add(struct cordon_tools *t, const struct cordon_tool *tool, struct command *host,
		 struct cordon_error **reterr);
/* One tool as in the welcome (docs/wire.md) and in cordon_tools_json. NULL: out of memory. */
json_t *registry_describe(const struct tool *tool);
/* All tools, or those that the policy lets a session call (NULL: all). A new reference. */
json_t *registry_list(struct cordon_tools *t, const struct policy *policy);
/* The effective limits of a tool under this policy, in bytes of JSON text. */
uint64_t registry_argument_max(const struct tool *tool, const struct policy *policy);
/* The largest registry_argument_max() of the tools that the policy allows; 0: there is none. */
uint64_t registry_argument_most(struct cordon_tools *t, const struct policy *policy);
uint64_t registry_result_max(const struct tool *tool, const struct policy *policy);
/* All names that can be file names, and `extensions`. 0 or -CORDON_NOMEM. */
int registry_names(struct cordon_tools *t, struct strlist *ret);
/* The policy field that denies the tool to this session: "tools" or, for a command, "commands".
 * NULL: allowed. */
const char *registry_denied_by(const struct policy *policy, const struct tool *tool);
