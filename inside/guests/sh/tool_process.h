/* inside/guests/sh/tool_process.h - the process that stands for a tool in a pipeline. */
#pragma once

/* Calls the tool `name` with these arguments and our own standard input through the agent's socket;
 * its output and error output become ours. Its exit status. */
int tool_process_run(int agent, const char *name, int argc, char **argv);
/* The helper: runs the tool `name` with these arguments; its exit status. */
int tool_process_main(const char *name, int argc, char **argv);
