/* inside/guests/sh/tool_process.h - the process that represents a tool in a pipeline. */
#pragma once

/* A call as the shell made it. */
struct tool_process {
	const char *name;
	int argc;
	char **argv;
	const char *cwd;
	char *const *envp;
};

/* Makes the call, with our stdin, through the agent's socket, and prints the tool's stdout and
 * stderr. Returns its exit status. */
int tool_process_run(int agent, const struct tool_process *call);
/* The helper: runs the tool `name` with these arguments; its exit status. */
int tool_process_main(const char *name, int argc, char **argv);
