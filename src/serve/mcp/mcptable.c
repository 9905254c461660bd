/* serve/mcp/mcptable.c - the table of tools, as mcptool.h describes it. Models read these texts
 * with every request, so each is short and says exactly what comes back. */
#include "serve/mcp/mcplang.h"
#include "serve/mcp/mcptool.h"

#define SANDBOX(text)                                                                              \
	{                                                                                          \
		.name = "sandbox_id", .about = (text), .also = { "sandboxId" }                     \
	}
#define WHICH_SANDBOX                                                                              \
	{                                                                                          \
		.name = "sandbox_id", .about = "which sandbox", .also = { "sandboxId" },           \
		.is_required = true                                                                \
	}
#define TIMEOUT                                                                                    \
	{                                                                                          \
		.name = "timeout_ms", .about = "wall clock limit; default and most: the policy's", \
		.is_integer = true                                                                 \
	}
#define OWN_SANDBOX SANDBOX("another sandbox; default: one for everything")

static const char create_languages[] = MCPLANG_NAMES " pod";

const struct mcptool mcptool_table[] = {
	{ "run_code",
	  "Run code and get its output, the value of its last expression, and plots as images. "
	  "Variables stay between calls, for each language. An error comes with its traceback and "
	  "line.",
	  mcptool_run_code,
	  .args = { { .name = "code",
		      .about = "the code",
		      .example = "import math\nmath.sqrt(2)",
		      .is_required = true },
		    { .name = "language", .about = "default: python", .choices = MCPLANG_NAMES },
		    TIMEOUT,
		    OWN_SANDBOX } },
	{ "run_command",
	  "Run a bash command line and get its output and exit status. The working directory and "
	  "shell variables stay between calls.",
	  mcptool_run_command,
	  .args = { { .name = "command",
		      .about = "the command line",
		      .example = "ls -la && wc -l data.csv",
		      .is_required = true,
		      .also = { "cmd" } },
		    { .name = "shell",
		      .about = "sh (default), or pod for the WebAssembly userland",
		      .choices = "sh pod",
		      .list = MCPTOOL_FULL },
		    TIMEOUT,
		    OWN_SANDBOX } },
	{ "read_file",
	  "Read a file. Text comes as text, an image as such, anything else as base64.",
	  mcptool_read_file, .is_read_only = true,
	  .args = { { .name = "path",
		      .about = "absolute, or relative to /home/user",
		      .example = "/home/user/data.csv",
		      .is_required = true },
		    { .name = "offset",
		      .about = "first line to read, from 1; default: 1",
		      .is_integer = true },
		    { .name = "limit",
		      .about = "how many lines to read; default: all",
		      .is_integer = true },
		    OWN_SANDBOX } },
	{ "write_file", "Write a whole file; it replaces an older one. Directories are created.",
	  mcptool_write_file,
	  .args = { { .name = "path",
		      .about = "absolute, or relative to /home/user",
		      .example = "/home/user/data.csv",
		      .is_required = true },
		    { .name = "contents",
		      .about = "what to write",
		      .example = "a,b\n1,2\n",
		      .is_required = true,
		      .also = { "content", "text" } },
		    { .name = "encoding",
		      .about = "of contents; default: text",
		      .choices = "text base64" },
		    OWN_SANDBOX } },
	{ "list_files", "List a directory: names, types and sizes.", mcptool_list_files,
	  .is_read_only = true, .list = MCPTOOL_SHORT,
	  .args = { { .name = "path", .about = "default: /home/user", .example = "/home/user" },
		    OWN_SANDBOX } },
	{ "manage_sandbox",
	  "Everything else about sandboxes. list names them. create makes one (language, label). "
	  "install adds packages of a language, if the policy allows it. "
	  "restart starts its interpreters anew, or one language, and keeps its files. snapshot "
	  "keeps a state of the "
	  "files and restore (snapshot_id) returns to it. fork makes a copy. export gives the "
	  "files as data, import takes them. suspend lets calls wait until resume. destroy ends "
	  "it.",
	  mcptool_manage, .is_destructive = true, .list = MCPTOOL_SHORT,
	  .args = { { .name = "action",
		      .about = "what to do",
		      .choices = "list create install restart snapshot restore fork export import "
				 "suspend "
				 "resume destroy",
		      .example = "list",
		      .is_required = true },
		    SANDBOX("which one; needed by suspend, resume and destroy, default: the shared "
			    "one"),
		    { .name = "language",
		      .about = "restart, install: which; create: its own",
		      .choices = create_languages },
		    { .name = "packages", .about = "install: names, separated by commas" },
		    { .name = "label", .about = "create, import: a name for list" },
		    { .name = "snapshot_id", .about = "restore: which snapshot" },
		    { .name = "data", .about = "import: what export gave" } } },
	{ "list_directory", "List a directory of a sandbox.", mcptool_list_files,
	  .is_read_only = true, .list = MCPTOOL_FULL,
	  .args = { { .name = "path", .about = "default: /home/user" }, OWN_SANDBOX } },
	{ "create_sandbox", "Make a new sandbox.", mcptool_create, .list = MCPTOOL_FULL,
	  .args = { { .name = "language", .about = "default: bash", .choices = create_languages },
		    { .name = "label", .about = "a name for list_sandboxes" } } },
	{ "list_sandboxes", "List the sandboxes.", mcptool_sandboxes, .is_read_only = true,
	  .list = MCPTOOL_FULL },
	{ "destroy_sandbox", "End a sandbox and everything in it.", mcptool_destroy,
	  .is_destructive = true, .list = MCPTOOL_FULL, .args = { WHICH_SANDBOX } },
	{ "suspend_sandbox", "Suspend a sandbox: code and commands wait until it is resumed.",
	  mcptool_suspend, .list = MCPTOOL_FULL, .args = { WHICH_SANDBOX } },
	{ "resume_sandbox", "Resume a suspended sandbox.", mcptool_resume, .list = MCPTOOL_FULL,
	  .args = { WHICH_SANDBOX } },
	{ "snapshot", "Take a snapshot of a sandbox's files.", mcptool_snapshot,
	  .list = MCPTOOL_FULL, .args = { WHICH_SANDBOX } },
	{ "restore", "Restore a sandbox's files from a snapshot.", mcptool_restore,
	  .is_destructive = true, .list = MCPTOOL_FULL,
	  .args = { WHICH_SANDBOX,
		    { .name = "snapshot_id", .about = "which snapshot", .is_required = true } } },
	{ "fork", "Make an independent sandbox with the same files.", mcptool_fork,
	  .list = MCPTOOL_FULL, .args = { WHICH_SANDBOX } },
	{ "export_state", "Export a sandbox's files as one blob (base64).", mcptool_export,
	  .is_read_only = true, .list = MCPTOOL_FULL, .args = { WHICH_SANDBOX } },
	{ "import_state", "Import files from a blob into a sandbox, by default a new one.",
	  mcptool_import, .list = MCPTOOL_FULL,
	  .args = { { .name = "data", .about = "the blob, base64", .is_required = true },
		    SANDBOX("which sandbox"),
		    { .name = "label", .about = "a name for a new one" } } },
	{ 0 },
};
