/* policy/field.c - the one table of policy fields. */
#include "policy/field.h"

#include <stddef.h>
#include <string.h>

#include "policy/kind.h"
#include "policy/name.h"
#include "policy/number.h"

#define KIB (1ULL << 10)
#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
#define TIB (1ULL << 40)
#define DAY_MS (24ULL * 60 * 60 * 1000)
#define NO_LIMIT POLICY_UNLIMITED

#define AT(member) .offset = offsetof(struct policy, member)
#define COUNT(member) .count_offset = offsetof(struct policy, member)
#define LEVELS(permissive, standard, strict) .number = { (permissive), (standard), (strict) }
#define EVERY(value) LEVELS(value, value, value)
#define WORDS(permissive, standard, strict) .words = { (permissive), (standard), (strict) }
#define RANGE(low, high) .min = (low), .max = (high)
#define LIMIT .kind = &kind_number, .sense = SENSE_LOOSER

#define NAMESPACES                                                                                 \
	(LAYER_USERNS | LAYER_PIDNS | LAYER_MOUNTNS | LAYER_NETNS | LAYER_IPCNS | LAYER_UTSNS |    \
	 LAYER_CGROUPNS)
/* Without cgroups: an ordinary user may have none, gets rlimits instead, and the result says so. */
#define USUAL_LAYERS (NAMESPACES | LAYER_LANDLOCK | LAYER_SECCOMP | LAYER_RLIMITS)

#define ENV_USUAL                                                                                  \
	"PATH,HOME,USER,LOGNAME,SHELL,TMPDIR,LANG,LANGUAGE,LC_ALL,LC_COLLATE,LC_CTYPE,"            \
	"LC_MESSAGES,LC_MONETARY,LC_NUMERIC,LC_TIME,TZ,TERM,COLORTERM,COLUMNS,LINES"

/* clang-format off */
const struct field field_table[] = {
	{ .name = "level", .kind = &kind_level, AT(level), LEVELS(1, 2, 3),
	  .enforced = "the preset that fills every other field",
	  .says = "The values start from the level {}." },

	{ .name = "timeout_ms", LIMIT, AT(timeout_ms), .unit = UNIT_MS, .unlimited = true,
	  RANGE(1, DAY_MS), LEVELS(60000, 30000, 10000),
	  .enforced = "the host's timer; interrupts the code, then kills all processes",
	  .says = "An execution is ended after {} of wall clock time.",
	  .says_all = "An execution may take any time by the wall clock." },
	{ .name = "grace_ms", LIMIT, AT(grace_ms), .unit = UNIT_MS, RANGE(0, DAY_MS), EVERY(1000),
	  .enforced = "the host's timer, after `timeout_ms` or a cancel",
	  .says = "It is interrupted first, and killed if it has not stopped after {}.",
	  .says_none = "It is killed at once, without an interrupt." },
	{ .name = "cpu_seconds", LIMIT, AT(cpu_seconds), .unit = UNIT_SECONDS, .unlimited = true,
	  RANGE(1, 31622400), LEVELS(60, 60, 10),
	  .enforced = "RLIMIT_CPU of each process; the host counts all of them, also between "
		      "executions",
	  .says = "It is ended after {} of CPU time.",
	  .says_all = "It may use any amount of CPU time." },
	{ .name = "cpu_percent", LIMIT, AT(cpu_percent), .unit = UNIT_PERCENT, .unlimited = true,
	  RANGE(1, 102400), LEVELS(NO_LIMIT, 100, 50),
	  .enforced = "cgroup cpu; one core also by affinity",
	  .says = "It gets at most {} of one core.", .says_all = "It may use every core." },
	{ .name = "memory_bytes", LIMIT, AT(memory_bytes), .unit = UNIT_BYTES,
	  RANGE(16 * MIB, 16 * TIB), LEVELS(GIB, 512 * MIB, 256 * MIB),
	  .enforced = "cgroup memory; RLIMIT_AS or DATA where there is none",
	  .says = "Memory: at most {}." },
	{ .name = "processes", LIMIT, AT(processes), RANGE(1, 4194304), LEVELS(50, 50, 16),
	  .enforced = "cgroup pids; RLIMIT_NPROC in the session's own user namespace",
	  .says = "Processes and threads at once: at most {}." },
	{ .name = "open_files", LIMIT, AT(open_files), RANGE(16, 1048576), EVERY(256),
	  .enforced = "RLIMIT_NOFILE, read back", .says = "Open files of a process: at most {}." },
	{ .name = "file_bytes", LIMIT, AT(file_bytes), .unit = UNIT_BYTES, .unlimited = true,
	  RANGE(1, 16 * TIB), EVERY(50 * MIB), .enforced = "RLIMIT_FSIZE, read back",
	  .says = "A file may grow to {}.", .says_all = "A file may fill the whole workspace." },
	{ .name = "stack_bytes", LIMIT, AT(stack_bytes), .unit = UNIT_BYTES,
	  RANGE(64 * KIB, 64 * GIB), EVERY(8 * MIB), .enforced = "RLIMIT_STACK, read back",
	  .says = "Stack: at most {}." },
	{ .name = "fs_bytes", LIMIT, AT(fs_bytes), .unit = UNIT_BYTES, RANGE(64 * KIB, 16 * TIB),
	  LEVELS(256 * MIB, 256 * MIB, 64 * MIB), .enforced = "tmpfs size",
	  .says = "The workspace holds {}." },
	{ .name = "file_count", LIMIT, AT(file_count), RANGE(16, 1ULL << 31),
	  LEVELS(65536, 65536, 4096), .enforced = "tmpfs inodes",
	  .says = "Files and directories in the workspace: at most {}." },

	{ .name = "stdout_bytes", LIMIT, AT(stdout_bytes), .unit = UNIT_BYTES, .unlimited = true,
	  RANGE(1, GIB), EVERY(MIB), .enforced = "the host keeps no more and sets `truncated`",
	  .says = "Of standard output the first {} are kept.",
	  .says_all = "All of standard output is passed on; a result keeps the first 1 GiB." },
	{ .name = "stderr_bytes", LIMIT, AT(stderr_bytes), .unit = UNIT_BYTES, .unlimited = true,
	  RANGE(1, GIB), EVERY(MIB), .enforced = "as `stdout_bytes`",
	  .says = "Of standard error the first {} are kept.",
	  .says_all = "All of standard error is passed on; a result keeps the first 1 GiB." },
	{ .name = "output_lines", LIMIT, AT(output_lines), .unlimited = true, RANGE(1, 1ULL << 40),
	  EVERY(NO_LIMIT), .enforced = "as `stdout_bytes`",
	  .says = "Lines of output that are kept: {}.",
	  .says_all = "Lines of output are not counted." },
	{ .name = "code_bytes", LIMIT, AT(code_bytes), .unit = UNIT_BYTES, RANGE(1, 64 * MIB),
	  EVERY(MIB), .enforced = "before parsing", .says = "A program may have {} of text." },
	{ .name = "command_bytes", LIMIT, AT(command_bytes), .unit = UNIT_BYTES,
	  RANGE(1, 64 * MIB), EVERY(64 * KIB), .enforced = "before parsing",
	  .says = "A shell command may have {} of text." },
	{ .name = "message_bytes", LIMIT, AT(message_bytes), .unit = UNIT_BYTES,
	  RANGE(1024, 256 * MIB), EVERY(MIB), .enforced = "before parsing",
	  .says = "A message from the code to the host may have {}." },
	{ .name = "rpc_bytes", LIMIT, AT(rpc_bytes), .unit = UNIT_BYTES, RANGE(1024, GIB),
	  EVERY(8 * MIB), .enforced = "before parsing", .says = "A request to Cordon may have {}." },
	{ .name = "value_bytes", LIMIT, AT(value_bytes), .unit = UNIT_BYTES, RANGE(1024, 16 * GIB),
	  EVERY(256 * MIB), .enforced = "before use; a value's binary columns (docs/values.md)",
	  .says = "A large value that crosses may have {}." },
	{ .name = "tool_calls", LIMIT, AT(tool_calls), .unlimited = true, RANGE(1, 1ULL << 40),
	  LEVELS(NO_LIMIT, NO_LIMIT, 100), .enforced = "the host, for each tool call",
	  .says = "Tool calls of an execution: at most {}.",
	  .says_all = "Tool calls are not counted." },
	{ .name = "max_executions", LIMIT, AT(max_executions), .unlimited = true,
	  RANGE(1, 1ULL << 40), EVERY(NO_LIMIT), .enforced = "session, in the host",
	  .says = "Executions of a session: at most {}.",
	  .says_all = "A session may execute any number of times." },
	{ .name = "approval_timeout_ms", LIMIT, AT(approval_timeout_ms), .unit = UNIT_MS,
	  .unlimited = true, RANGE(1, 31 * DAY_MS), EVERY(300000),
	  .enforced = "the host's timer; no answer means denied",
	  .says = "An approval without an answer is denied after {}.",
	  .says_all = "An approval waits until it is answered." },
	{ .name = "approval_total_ms", LIMIT, AT(approval_total_ms), .unit = UNIT_MS,
	  .unlimited = true, RANGE(1, 31 * DAY_MS), EVERY(900000),
	  .enforced = "the host's timer; after that `timeout_ms` continues",
	  .says = "While an approval is pending the clock stops, for at most {} in all.",
	  .says_all = "While an approval is pending the clock stops." },

	{ .name = "modules", .kind = &kind_list, .sense = SENSE_LOOSER, AT(modules),
	  WORDS("*", "*", "*"),
	  .named = { "pandas,math,statistics,json,numpy,datetime", "pandas,math,statistics,json",
		     "math,statistics,json" },
	  .is_name = name_is_module, .entry = "the name of a Python module",
	  .enforced = "import hook in the guest: advisory, not a boundary",
	  .says = "Python may import {} (advisory).",
	  .says_all = "Python may import every module.",
	  .says_none = "Python may import nothing (advisory)." },
	{ .name = "commands", .kind = &kind_list, .sense = SENSE_LOOSER, AT(commands),
	  WORDS("*", "*", POLICY_SHELLS_ALL), .is_name = name_is_command,
	  .entry = "the name of a command",
	  .enforced = "exec rule: Landlock and the mount view, the process table in a pod; the "
		      "host, for commands of the host",
	  .says = "The code may start these programs: {}.",
	  .says_all = "The code may start every program of /usr (a pod: of its image).",
	  .says_none = "The code may start no program." },
	{ .name = "workspace_exec", .kind = &kind_flag, .sense = SENSE_LOOSER, AT(workspace_exec),
	  LEVELS(true, false, false),
	  .enforced = "Landlock, and noexec mounts of all that the code can write; a pod ignores it",
	  .says_all = "Files of the workspace and of mounts may be executed.",
	  .says_none = "No file of the workspace or of a mount may be executed." },
	{ .name = "pty", .kind = &kind_flag, .sense = SENSE_LOOSER, AT(pty),
	  LEVELS(true, true, false),
	  .enforced = "the host makes each terminal, in a devpts of the sandbox; without it the "
		      "sandbox has none; a pod ignores it",
	  .says_all = "Commands may run on a terminal, which the host makes.",
	  .says_none = "No command may run on a terminal." },
	{ .name = "tools", .kind = &kind_list, .sense = SENSE_LOOSER, AT(tools),
	  WORDS("*", "*", "*"), .is_name = name_is_tool, .entry = "the name of a tool",
	  .enforced = "the host, for each tool call",
	  .says = "Of the tools that the host registers it may call {}.",
	  .says_all = "It may call every tool that the host registers.",
	  .says_none = "It may call no tool." },
	{ .name = "packages.pip", .kind = &kind_list, .sense = SENSE_LOOSER, AT(pip.names),
	  .is_name = name_is_package, .entry = "the name of a package",
	  .enforced = "the host, before pip runs in a sandbox of its own",
	  .says = "Packages of Python that may be installed: {}, and what they depend on.",
	  .says_all = "Every package of Python may be installed.",
	  .says_none = "No package of Python may be installed." },
	{ .name = "packages.pip_index", .kind = &kind_names, .sense = SENSE_LOOSER,
	  AT(pip.sources), .is_name = name_is_registry,
	  .entry = "a URL, or the absolute path of a directory",
	  .enforced = "gateway of the installation: these hosts, GET and HEAD; a directory is a "
		      "read-only mount without a network",
	  .says = "They come from {}.", .says_none = "No index is named for them." },
	{ .name = "packages.pip_lock", .kind = &kind_text, .sense = SENSE_LOOSER, AT(pip.lock),
	  .is_name = name_is_path, .entry = "an absolute path without '..'",
	  .enforced = "pip, with the hashes in the file",
	  .says = "What the file {} lists may be installed as requirements.txt.",
	  .says_none = "There is no requirements.txt to install from." },
	{ .name = "packages.npm", .kind = &kind_list, .sense = SENSE_LOOSER, AT(npm.names),
	  .is_name = name_is_npm, .entry = "the name of a package",
	  .enforced = "the host, before npm runs in a sandbox of its own",
	  .says = "Packages of Node that may be installed: {}, and what they depend on.",
	  .says_all = "Every package of Node may be installed.",
	  .says_none = "No package of Node may be installed." },
	{ .name = "packages.npm_registry", .kind = &kind_names, .sense = SENSE_LOOSER,
	  AT(npm.sources), .is_name = name_is_registry,
	  .entry = "a URL, or the absolute path of a directory",
	  .enforced = "as `packages.pip_index`", .says = "They come from {}.",
	  .says_none = "No registry is named for them." },
	{ .name = "packages.npm_lock", .kind = &kind_text, .sense = SENSE_LOOSER, AT(npm.lock),
	  .is_name = name_is_path, .entry = "an absolute path without '..'",
	  .enforced = "npm, with the hashes in the file",
	  .says = "What the file {} lists may be installed as package-lock.json.",
	  .says_none = "There is no package-lock.json to install from." },
	{ .name = "packages.cran", .kind = &kind_list, .sense = SENSE_LOOSER, AT(cran.names),
	  .is_name = name_is_cran, .entry = "the name of a package",
	  .enforced = "the host, before R runs in a sandbox of its own",
	  .says = "Packages of R that may be installed: {}, and what they depend on.",
	  .says_all = "Every package of R may be installed.",
	  .says_none = "No package of R may be installed." },
	{ .name = "packages.cran_repo", .kind = &kind_names, .sense = SENSE_LOOSER,
	  AT(cran.sources), .is_name = name_is_registry,
	  .entry = "a URL, or the absolute path of a directory",
	  .enforced = "as `packages.pip_index`", .says = "They come from {}.",
	  .says_none = "No repository is named for them." },
	{ .name = "packages.bytes", LIMIT, AT(install_bytes), .unit = UNIT_BYTES,
	  RANGE(MIB, 16 * TIB), LEVELS(512 * MIB, 512 * MIB, 128 * MIB),
	  .enforced = "tmpfs size of the installation, for downloads and installed files",
	  .says = "An installation may use {}." },
	{ .name = "packages.count", LIMIT, AT(install_count), RANGE(1, 10000),
	  LEVELS(200, 200, 50), .enforced = "the host, after an installation",
	  .says = "It may install {} packages, with all they depend on." },
	{ .name = "packages.timeout_ms", LIMIT, AT(install_ms), .unit = UNIT_MS,
	  RANGE(1000, DAY_MS), LEVELS(600000, 300000, 120000), .enforced = "the host's timer",
	  .says = "It is ended after {}." },
	{ .name = "packages.pod", .kind = &kind_list, .sense = SENSE_LOOSER, AT(packages),
	  .is_name = name_is_package, .entry = "the name of a package",
	  .enforced = "the host, before a pod starts",
	  .says = "Code in a pod may install {}.",
	  .says_all = "Code in a pod may install every package.",
	  .says_none = "Code in a pod may install no package." },
	{ .name = "package_bytes", LIMIT, AT(package_bytes), .unit = UNIT_BYTES,
	  RANGE(1, 32 * MIB), EVERY(5 * MIB), .enforced = "the host, before a pod starts",
	  .says = "A package may have {}." },
	{ .name = "package_count", LIMIT, AT(package_count), RANGE(1, 32), EVERY(16),
	  .enforced = "the host, before a pod starts",
	  .says = "Packages of a session: at most {}." },
	{ .name = "mounts", .kind = &kind_mounts, .sense = SENSE_LOOSER, AT(mounts),
	  COUNT(mount_count), .entry = "a list of mounts", .enforced = "mount plan",
	  .says = "It sees of the host: {}.", .says_none = "It sees no file of the host's data." },

	{ .name = "network.allow", .kind = &kind_rules, .sense = SENSE_LOOSER, AT(network.allow),
	  COUNT(network.allow_count), .entry = "a list of hosts",
	  .enforced = "gateway; without it an empty network namespace, socket() denied",
	  .says = "Through the gateway it reaches {}.", .says_none = "No host is allowed by name." },
	{ .name = "network.block", .kind = &kind_rules, AT(network.block),
	  COUNT(network.block_count), .entry = "a list of hosts",
	  .enforced = "gateway; without `network.allow` the rest is open",
	  .says = "The gateway refuses {}, unless allowed by name.",
	  .says_none = "No host is blocked by name." },
	{ .name = "network.request_bytes", LIMIT, AT(network.request_bytes), .unit = UNIT_BYTES,
	  RANGE(1, TIB), EVERY(10 * MIB), .enforced = "gateway", .says = "A request may send {}." },
	{ .name = "network.response_bytes", LIMIT, AT(network.response_bytes), .unit = UNIT_BYTES,
	  RANGE(1, TIB), EVERY(10 * MIB), .enforced = "gateway", .says = "A response may have {}." },
	{ .name = "network.timeout_ms", LIMIT, AT(network.timeout_ms), .unit = UNIT_MS,
	  RANGE(1, DAY_MS), EVERY(30000), .enforced = "gateway", .says = "A request may take {}, and a tunnel be silent as long." },
	{ .name = "network.tunnel_ms", LIMIT, AT(network.tunnel_ms), .unit = UNIT_MS,
	  RANGE(1, DAY_MS), EVERY(600000), .enforced = "gateway",
	  .says = "A tunnel may be open for {}." },
	{ .name = "network.connections", LIMIT, AT(network.connections), RANGE(1, 65536),
	  EVERY(64), .enforced = "gateway", .says = "Connections at once: at most {}." },
	{ .name = "network.total_bytes", LIMIT, AT(network.total_bytes), .unit = UNIT_BYTES,
	  .unlimited = true, RANGE(1, 16 * TIB), EVERY(100 * MIB), .enforced = "gateway",
	  .says = "An execution may transfer {} in all.",
	  .says_all = "An execution may transfer any amount in all." },
	{ .name = "network.ask", .kind = &kind_flag, AT(network.ask), EVERY(false),
	  .enforced = "gateway", .says_all = "Every request needs approval.",
	  .says_none = "Requests need no approval." },
	{ .name = "network.upstream_proxy", .kind = &kind_text, AT(network.upstream_proxy),
	  .is_name = name_is_proxy,
	  .entry = "\"environment\" or http://HOST[:PORT] without a user name",
	  .enforced = "gateway; the proxy resolves, so that only its network knows the addresses",
	  .says = "The gateway uses the host's proxy {}.",
	  .says_none = "The gateway uses no proxy of the host." },
	{ .name = "expose", .kind = &kind_ports, .sense = SENSE_LOOSER, AT(expose),
	  .is_name = name_is_ports, .entry = "a port or a range (\"8000\", \"3000-3010\") from 1024 to 65535",
	  .enforced = "the host connects, for each connection; the sandbox has no network but its own loopback",
	  .says = "The host may connect to these ports of the sandbox: {}.",
	  .says_none = "The host may connect to no port of the sandbox." },
	{ .name = "secrets", .kind = &kind_secrets, .sense = SENSE_LOOSER, AT(secrets),
	  COUNT(secret_count), .entry = "a list of secrets",
	  .enforced = "the gateway puts them into requests; the guest never sees them",
	  .says = "The gateway adds secrets that the code never sees: {}.",
	  .says_none = "The gateway adds no secret." },

	{ .name = "env", .kind = &kind_names, .sense = SENSE_LOOSER, AT(env_pass),
	  WORDS(ENV_USUAL, ENV_USUAL, "PATH,HOME,LANG,TZ"), .is_name = name_is_passable,
	  .entry = "a variable's name that may cross (LD_*, PYTHON*, R_* and their like never do)",
	  .enforced = "an environment built from scratch",
	  .says = "Variables it gets where the host has them: {}; HOME, PATH, USER and their like "
		  "with values of its own, never the host's.",
	  .says_none = "It gets no variable of the host's environment." },
	{ .name = "env_set", .kind = &kind_env, .sense = SENSE_LOOSER, AT(env_set),
	  .is_name = name_is_settable,
	  .entry = "a variable's name that may be set (LD_*, CORDON_* and GLIBC_TUNABLES may not)",
	  .enforced = "an environment built from scratch", .says = "Variables set for it: {}.",
	  .says_none = "No variable is set for it." },

	{ .name = "require", .kind = &kind_layers, .sense = SENSE_TIGHTER, AT(require),
	  LEVELS(USUAL_LAYERS, USUAL_LAYERS, USUAL_LAYERS | LAYER_OWN_NETNS),
	  .enforced = "probe before, read back after",
	  .says = "Nothing runs unless these layers are proven: {}.",
	  .says_none = "No layer has to be proven: the code may run without any sandbox layer." },

	{ .name = "python", .kind = &kind_text, AT(python), .is_name = name_is_path,
	  .entry = "an absolute path without '..'", .enforced = "guest", .says = "Python is {}.",
	  .says_none = "Python is the system's." },
	{ .name = "r", .kind = &kind_text, AT(r), .is_name = name_is_path,
	  .entry = "an absolute path without '..'", .enforced = "guest", .says = "R is {}.",
	  .says_none = "R is the system's." },
	{ .name = "node", .kind = &kind_text, AT(node), .is_name = name_is_path,
	  .entry = "an absolute path without '..'", .enforced = "guest", .says = "Node is {}.",
	  .says_none = "Node is the system's." },
	{ .name = "shell", .kind = &kind_text, AT(shell), .is_name = name_is_path,
	  .entry = "an absolute path without '..'", .enforced = "guest",
	  .says = "The shell is {}.", .says_none = "The shell is the system's." },
	{ .name = "preload", .kind = &kind_names, AT(preload), .is_name = name_is_module,
	  .entry = "the name of a module", .enforced = "template",
	  .says = "Templates import in advance: {}.", .says_none = "Templates import nothing in advance." },
	{ .name = "result_name", .kind = &kind_text, AT(result_name),
	  WORDS("result", "result", "result"), .is_name = name_is_result,
	  .entry = "a variable's name", .enforced = "guest",
	  .says = "A variable named {} is the result, instead of the last expression.",
	  .says_none = "Only the last expression is the result." },
	{ .name = "audit", .kind = &kind_text, AT(audit), .is_name = name_is_file,
	  .entry = "a file's path, not below /dev", .enforced = "the audit log",
	  .says = "Everything is recorded in {}.", .says_none = "There is no audit file." },
	{ .name = "audit_required", .kind = &kind_flag, AT(audit_required), .sense = SENSE_TIGHTER,
	  EVERY(false), .enforced = "session, in the host",
	  .says_all = "Code that cannot be recorded does not run.",
	  .says_none = "Code also runs if it cannot be recorded." },
	{ .name = "audit_sync", .kind = &kind_text, AT(audit_sync),
	  WORDS("never", "never", "never"), .is_name = name_is_sync,
	  .entry = "never, close or always", .enforced = "the audit log",
	  .says = "The log is synced to disk: {}.",
	  .says_none = "The log is not synced to disk." },
	{ .name = "audit_rotate_bytes", .kind = &kind_number, AT(audit_rotate_bytes),
	  .unit = UNIT_BYTES, .unlimited = true, RANGE(4096, TIB), EVERY(NO_LIMIT),
	  .enforced = "the audit log", .says = "A log of {} is rotated: a new file continues it.",
	  .says_all = "The log is one file." },
	{ .name = "audit_keep", .kind = &kind_number, AT(audit_keep), .unlimited = true,
	  RANGE(1, 1000000), EVERY(NO_LIMIT), .enforced = "the audit log",
	  .says = "The last {} rotated logs are kept.",
	  .says_all = "Every rotated log is kept." },
	{ .name = "sanitize_errors", .kind = &kind_flag, AT(sanitize_errors),
	  .sense = SENSE_TIGHTER, EVERY(false), .enforced = "session, in the host",
	  .says_all = "Paths, process ids and host names are removed from errors.",
	  .says_none = "Errors are returned unchanged." },
	{ .name = "validate", .kind = &kind_flag, AT(validate), .sense = SENSE_TIGHTER,
	  EVERY(true), .enforced = "a sandboxed parser, before the code runs",
	  .says_all = "Syntax is checked before anything runs.",
	  .says_none = "Syntax is not checked first." },
};
/* clang-format on */
const size_t field_count = sizeof(field_table) / sizeof(*field_table);

enum { NAMES_MAX = 64, TEXT_MAX = 4096, SHORT_MAX = 16 };

/* The inner objects: for fields with a dot, and for the short names of R clients. */
static const char *const objects[] = { "network", "packages", "limits" };

const struct field *field_find(const char *name)
{
	for (size_t i = 0; i < field_count; i++)
		if (str_eq(name, field_table[i].name))
			return &field_table[i];
	return NULL;
}

bool field_is_group(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < field_count; i++)
		if (str_starts(field_table[i].name, name) && field_table[i].name[len] == '.')
			return len > 0;
	return false;
}

/* The names in a group; "": the outermost object. */
static size_t names_in(const char *group, const char *names[static NAMES_MAX])
{
	size_t count = 0, len = strlen(group);

	for (size_t i = 0;
	     i < field_count && count < NAMES_MAX - sizeof(objects) / sizeof(*objects); i++) {
		const char *name = field_table[i].name, *dot = strchr(name, '.');
		if (len ? str_starts(name, group) && dot == name + len : !dot)
			names[count++] = name;
	}
	for (size_t i = 0; !len && i < sizeof(objects) / sizeof(*objects); i++)
		names[count++] = objects[i];
	return count;
}

int field_refuse(const char *name, struct cordon_error **reterr)
{
	const char *names[NAMES_MAX], *near;
	cleanup_buf struct buf b = { 0 };
	cleanup_free char *group = str_ndup(name, strcspn(name, "."));
	if (!group)
		return kind_nomem(reterr);
	bool inner = strchr(name, '.') && field_is_group(group);
	size_t count = names_in(inner ? group : "", names);

	buf_init(&b, TEXT_MAX);
	for (size_t i = 0; i < count; i++)
		if (buf_printf(&b, "%s%s", i ? ", " : "", names[i]) < 0)
			return kind_nomem(reterr);
	near = str_nearest(name, names, count);
	if (near)
		return err_set(reterr, CORDON_INVALID,
			       "Unknown policy field '%.80s'. Did you mean '%s'? Valid fields: %s",
			       name, near, buf_text(&b));
	return err_set(reterr, CORDON_INVALID, "Unknown policy field '%.80s'. Valid fields: %s",
		       name, buf_text(&b));
}

static int doc_cell(const struct field *f, enum policy_level level, struct buf *b)
{
	cleanup_policy struct policy p = { 0 };
	int r = policy_init_level(&p, level, NULL);

	if (r < 0)
		return r;
	switch (f->kind->extent ? f->kind->extent(f, &p) : EXTENT_SOME) {
	case EXTENT_ALL:
		return buf_add_str(b, f->kind == &kind_number ? "none"
				      : f->kind == &kind_flag ? "true"
							      : "`*`");
	case EXTENT_NONE:
		return buf_add_str(b, f->kind == &kind_flag ? "false" : "-");
	case EXTENT_SOME:
		break;
	}
	return f->kind->say(f, &p, b);
}

char *field_doc_row(const struct field *f)
{
	cleanup_buf struct buf row = { 0 };
	cleanup_free char *last = NULL;
	int r;

	buf_init(&row, TEXT_MAX);
	r = buf_printf(&row, "| `%s` |", f->name);
	for (int level = LEVEL_PERMISSIVE; r == 0 && level <= LEVEL_STRICT; level++) {
		cleanup_buf struct buf cell = { 0 };
		buf_init(&cell, TEXT_MAX);
		r = doc_cell(f, (enum policy_level)level, &cell);
		/* A long value is not repeated. */
		bool same = cell.len > SHORT_MAX && str_eq(last, buf_text(&cell));
		if (r == 0)
			r = buf_printf(&row, " %s |", same ? "same" : buf_text(&cell));
		free(last);
		last = r == 0 ? buf_take(&cell) : NULL;
	}
	if (r == 0)
		r = buf_printf(&row, " %s |", f->enforced);
	return r == 0 ? buf_take(&row) : NULL;
}

char *field_doc_range(const struct field *f)
{
	cleanup_buf struct buf row = { 0 };

	buf_init(&row, TEXT_MAX);
	if (f->kind != &kind_number)
		return str_dup("");
	if (buf_printf(&row, "| `%s` |", f->name) < 0 || number_range(f, &row) < 0 ||
	    buf_add_str(&row, f->unlimited ? " yes |" : " |") < 0)
		return NULL;
	return buf_take(&row);
}
