/* inside/guests/sh/tool_process.h - the process that represents a tool in a pipeline. */
#pragma once

/* Calls the tool `name` with these arguments and our stdin through the agent's socket, and prints
 * its stdout and stderr. Returns its exit status. */
int tool_process_run(int agent, const char *name, int argc, char **argv);
/* The helper: runs the tool `name` with these arguments; its exit status. */
int tool_process_main(const char *name, int argc, char **argv);
