/* tools/registry.h - the inside of struct cordon_tools. Tools are added, never changed or removed,
 * so a found tool is good for as long as its registry is. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/json.h"
#include "cordon/tools.h"
#include "policy/policy.h"

struct command;

struct tool {
	/* description "", others may be NULL */
	char *name, *description, *category, *usage, *python_package;
	json_t *examples; /* an array of strings; NULL: none */
	json_t *schema;
	cordon_tool_fn fn;
	void *arg;
	struct command *host;                  /* runs this host command instead of fn; NULL: no */
	uint64_t max_calls, timeout_ms;        /* 0: no limit of its own, for timeout_ms 30000 */
	uint64_t result_bytes, argument_bytes; /* as given: registry_*_max() tell what holds */
	bool approval, command;
	size_t index; /* counts from 0 in the order of registration */
};

struct cordon_tools {
	atomic_uint refs;
	pthread_rwlock_t lock;
	struct tool **items;
	size_t count;
};

/* NULL when there is none. */
const struct tool *registry_find(struct cordon_tools *t, const char *name);
/* The tool with this index, or NULL past the last. */
const struct tool *registry_at(struct cordon_tools *t, size_t index);
/* As cordon_tools_add, with a host command that the tool takes over on success. */
int registry_add(struct cordon_tools *t, const struct cordon_tool *tool, struct command *host,
		 struct cordon_error **reterr);
/* One tool as docs/wire.md's welcome and cordon_tools_json show it. NULL: out of memory. */
json_t *registry_describe(const struct tool *tool);
/* All of them, or those that the policy (NULL: none) lets a session call; a new reference. */
json_t *registry_list(struct cordon_tools *t, const struct policy *policy);
/* The sizes that hold for a tool under this policy, in bytes of JSON text. */
uint64_t registry_argument_max(const struct tool *tool, const struct policy *policy);
/* The largest registry_argument_max() of the tools that the policy allows; 0: there is none. */
uint64_t registry_argument_most(struct cordon_tools *t, const struct policy *policy);
uint64_t registry_result_max(const struct tool *tool, const struct policy *policy);
/* All names that can be a file's, and `extensions`. 0 or -CORDON_NOMEM. */
int registry_names(struct cordon_tools *t, struct strlist *ret);
/* The policy's field that keeps it from this session: "tools", or "commands" of one that is a
 * command; NULL: none does. */
const char *registry_denied_by(const struct policy *policy, const struct tool *tool);
