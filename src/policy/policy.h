/* policy/policy.h - what code may do, and its limits: plain data, no kernel calls. A zeroed policy
 * permits nothing. Start with policy_init_level(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"

#define POLICY_UNLIMITED UINT64_MAX

enum policy_level { LEVEL_NONE, LEVEL_PERMISSIVE, LEVEL_STANDARD, LEVEL_STRICT };

/* "*" or a list. Zero: permits nothing. */
struct policy_list {
	bool all;
	struct strlist names;
};

enum policy_mount_mode {
	MOUNT_SNAPSHOT, /* copied at mount time, read-only; zero, because it is the safest */
	MOUNT_LIVE_RO,
	MOUNT_LIVE_RW,
};

struct policy_mount {
	char *host;  /* absolute host path; NULL: bytes are given by value */
	char *guest; /* absolute guest path */
	enum policy_mount_mode mode;
	char *bytes; /* by value */
	size_t bytes_len;
};

struct policy_secret {
	char *name;   /* the guest sees cordon-secret-NAME */
	char *value;  /* never leaves the host */
	char *host;   /* bound to this host name */
	char *header; /* put into this header; default Authorization */
};

/* One entry of network.allow or network.block; the net room interprets host patterns. */
struct policy_net_rule {
	char *host;             /* exact name, "*.suffix", "*", IP literal or CIDR */
	uint16_t port;          /* 0: 80 and 443 */
	struct strlist methods; /* empty: any */
	char *path_prefix;      /* NULL: any */
};

struct policy_network {
	struct policy_net_rule *allow, *block;
	size_t allow_count, block_count;
	uint64_t request_bytes, response_bytes; /* per request; 10 MiB each */
	uint64_t timeout_ms;  /* per request, and for silence in a tunnel; 30000 */
	uint64_t tunnel_ms;   /* lifetime of a tunnel; 600000 */
	uint64_t connections; /* at the same time; 64 */
	uint64_t total_bytes; /* per execution; 100 MiB */
	bool ask;             /* every request needs approval */
	char *upstream_proxy; /* "http://…", "environment" (HTTPS_PROXY of the host), or NULL */
};

/* Packages of one package manager (docs/packages.md). Zero: none may be installed. */
struct policy_registry {
	struct policy_list names; /* that may be asked for; their dependencies come along */
	struct strlist sources;   /* first the registry: a URL, or a directory of the host; then
				     URLs of other hosts that its files may come from */
	char *lock;               /* the host's path of a lockfile, or NULL */
};

/* Layers of the sandbox. A required layer that is missing is an error before any code runs. */
enum policy_layer {
	LAYER_USERNS = 1 << 0,
	LAYER_PIDNS = 1 << 1,
	LAYER_MOUNTNS = 1 << 2,
	LAYER_NETNS =
		1 << 3, /* an empty network namespace, which may be shared with the template */
	LAYER_IPCNS = 1 << 4,
	LAYER_UTSNS = 1 << 5,
	LAYER_CGROUPNS = 1 << 6,
	LAYER_LANDLOCK = 1 << 7,
	LAYER_SECCOMP = 1 << 8,
	LAYER_RLIMITS = 1 << 9,
	LAYER_CGROUPS = 1 << 10,      /* kernel accounting for memory, processes and CPU */
	LAYER_OWN_NETNS = 1 << 11,    /* a network namespace that only this session uses */
	LAYER_LANDLOCK_NET = 1 << 12, /* Landlock's TCP rules, if the policy opens no network */
	LAYER_LANDLOCK_SCOPE =
		1 << 13, /* Landlock's scopes: no signals and abstract sockets to the outside */
	LAYERS_NAMESPACES = LAYER_USERNS | LAYER_PIDNS | LAYER_MOUNTNS | LAYER_NETNS | LAYER_IPCNS |
			    LAYER_UTSNS | LAYER_CGROUPNS | LAYER_OWN_NETNS,
};

struct policy {
	enum policy_level level;
	/* Limits. POLICY_UNLIMITED is valid only where the table says so. */
	uint64_t timeout_ms;  /* wall clock per execution; POLICY_UNLIMITED: none */
	uint64_t grace_ms;    /* from the interrupt at the deadline to the kill; 0: no interrupt */
	uint64_t cpu_seconds; /* CPU time per execution */
	uint64_t cpu_percent; /* 100: one core; POLICY_UNLIMITED: none */
	uint64_t memory_bytes, processes, open_files, file_bytes, stack_bytes;
	uint64_t fs_bytes, file_count;
	uint64_t stdout_bytes, stderr_bytes,
		output_lines;   /* output_lines: POLICY_UNLIMITED default */
	uint64_t code_bytes;    /* of a program */
	uint64_t command_bytes; /* of a shell command */
	uint64_t message_bytes, rpc_bytes;
	uint64_t value_bytes;    /* of the binary columns of one value */
	uint64_t tool_calls;     /* per execution; POLICY_UNLIMITED: none */
	uint64_t max_executions; /* per session; POLICY_UNLIMITED: none */
	uint64_t approval_timeout_ms;
	uint64_t approval_total_ms; /* how long the clock may stop in one execution */
	/* Permissions. */
	struct policy_list modules;  /* Python imports; advisory */
	struct policy_list commands; /* programs; POLICY_SHELLS_ALL */
	bool workspace_exec;         /* files of the workspace and of mounts may be executed */
	bool pty;                    /* commands may run on a terminal of their own */
	struct policy_list tools;    /* registered tools that this session may call */
	struct policy_mount *mounts;
	size_t mount_count;
	struct policy_network network;
	struct strlist expose;   /* ports that the host may connect to: "8000", "3000-3010" */
	struct strlist env_pass; /* names copied from the host's environment */
	struct strlist env_set;  /* NAME=value */
	struct policy_secret *secrets;
	size_t secret_count;
	struct policy_list packages; /* of pods */
	uint64_t package_bytes, package_count;
	struct policy_registry pip, npm, cran;
	uint64_t install_bytes; /* workspace of an installation */
	uint64_t install_count; /* packages that one installs, dependencies too */
	uint64_t install_ms;    /* time that it may take */
	uint32_t require;       /* enum policy_layer bits */
	/* Guests and audit log. */
	char *python, *r, *node, *shell; /* interpreter paths; NULL: the system's */
	struct strlist preload;          /* modules that a template imports in advance */
	char *result_name; /* variable used as result instead of the last expression: "result" */
	char *audit;       /* path of the audit log or NULL */
	bool audit_required;
	char *audit_sync;            /* "never", "close" or "always"; NULL: never */
	uint64_t audit_rotate_bytes; /* a larger log is rotated; POLICY_UNLIMITED: never */
	uint64_t audit_keep;         /* rotated logs to keep; POLICY_UNLIMITED: all */
	bool sanitize_errors;
	bool validate; /* check the syntax before anything runs */
	/* No field of the table: processes and threads that the interpreters of a sandbox with
	 * several languages have of their own. They count besides `processes`. */
	uint64_t interpreter_tasks;
};

/* The limit on processes and threads of a sandbox. */
static inline uint64_t policy_tasks(const struct policy *p)
{
	return p->processes + p->interpreter_tasks;
}

/* Fills *ret (uninitialised memory) with the level's values. */
int policy_init_level(struct policy *ret, enum policy_level level, struct cordon_error **reterr);
int policy_copy(struct policy *ret, const struct policy *src, struct cordon_error **reterr);
void policy_done(struct policy *p);
#define cleanup_policy CLEANUP(policy_done)

enum policy_level policy_level_from_name(const char *name); /* LEVEL_NONE: unknown */
const char *policy_level_name(enum policy_level level);

/* Applies a JSON object to *p. Unknown fields are refused with the nearest valid name; lists
 * replace lists. A "level" is applied first. On failure *p may be partly changed, so parse into a
 * copy. */
int policy_apply_json(struct policy *p, const json_t *obj, struct cordon_error **reterr);
int policy_apply_file(struct policy *p, const char *path, struct cordon_error **reterr);
/* "key=value" of --set: a number, a size or duration with unit, a word, "*", or a comma list. Dots
 * reach inner fields. "key+=value" adds to a list. */
int policy_apply_set(struct policy *p, const char *assignment, struct cordon_error **reterr);
/* Refuses a policy that contradicts itself, naming the fields. */
int policy_check(const struct policy *p, struct cordon_error **reterr);
/* CORDON_DENIED: p permits something that limit does not; the error names the field. */
int policy_narrows(const struct policy *limit, const struct policy *p,
		   struct cordon_error **reterr);
/* Takes over what is the host's own choice: interpreters, templates, the audit log. */
int policy_inherit(struct policy *p, const struct policy *from, struct cordon_error **reterr);
/* The whole policy as JSON, in the order of the table, without the values of secrets. */
json_t *policy_to_json(const struct policy *p);
/* SHA-256 of the canonical JSON, including secrets. Policies with the same hash may share a
 * template. */
int policy_hash(const struct policy *p, uint8_t ret[static 32]);

/* policy_explain: the policy in sentences, one per line. policy_diff: what changes from a to b, one
 * field per line, empty if equal. The caller frees it; NULL: out of memory. */
char *policy_explain(const struct policy *p);
char *policy_diff(const struct policy *a, const struct policy *b);

/* An entry of `commands`: every command for shells, pods and host commands. Python, R and Node
 * start only what is named beside it. */
#define POLICY_SHELLS_ALL "sh:*"
bool policy_shells_run_all(const struct policy *p);
/* Whether shells, pods and host commands may run it. */
bool policy_shells_run(const struct policy *p, const char *command);
/* Whether `commands` names a program that Python, R and Node may start. */
bool policy_names_program(const struct policy *p);

/* Whether the host may connect to this port of the sandbox. */
bool policy_exposes(const struct policy *p, unsigned port);
/* A port of `expose` on which the gateway listens; 0: none. */
unsigned policy_gateway_port(const struct policy *p);
/* Whether the code may make TCP sockets, which reach nothing but the sandbox's own loopback. */
bool policy_has_sockets(const struct policy *p);

/* Whether the sandbox itself provides this path, so that no mount can. */
bool policy_is_own_path(const char *guest_path);

/* Variables that are never copied from the host (LD_*, PYTHON*, R_*, ...). */
bool policy_env_is_forbidden(const char *name);

/* "5s", "250ms", "2m", "1h" or a plain number of milliseconds; "256M", "1G", "64k" or plain
 * bytes. */
int policy_parse_duration(const char *text, uint64_t *ret_ms, struct cordon_error **reterr);
int policy_parse_size(const char *text, uint64_t *ret_bytes, struct cordon_error **reterr);
/* "host:guest[:ro|rw|snapshot]" */
int policy_parse_mount(const char *text, struct policy_mount *ret, struct cordon_error **reterr);

/* The name of a layer: "user", "pid", "mount", "net", "ipc", "uts", "cgroup", "landlock",
 * "seccomp", "rlimits", "cgroups", "own-net", "landlock-net" or "landlock-scope". */
const char *policy_layer_name(enum policy_layer layer);
