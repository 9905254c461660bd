/* tools/command.h - a tool that is a host command: it reads arguments as JSON on stdin and writes a
 * value as JSON to stdout. It runs as the host's user, in its own process group, with descriptors
 * 0, 1, 2 and a small environment. The caller never blocks on it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"

struct command {
	struct strlist argv;
	struct strlist env;      /* NAME=value, added to the small environment */
	struct strlist env_pass; /* names of variables copied from the host's environment */
	char *directory;         /* working directory; NULL: the host's */
	bool is_plain; /* arguments come as argv and stdin as bytes; the answer is {"stdout",
			  "stderr", "exit_code"} */
};

struct command *command_free(struct command *c);

struct command_run;

struct command_start {
	const char *session, *tool;
	const json_t *args;
	const char *args_text;
	size_t args_len;
	uint64_t result_bytes; /* limit of its stdout */
	int watch_fd;          /* its descriptors are added here... */
	void *watch_tag;       /* ...with this pointer; call command_step() when one is ready */
};

int command_start(const struct command *c, const struct command_start *start,
		  struct command_run **ret, struct cordon_error **reterr);
/* Reads available output. 1: the command has ended, 0: not yet. */
int command_step(struct command_run *run);
/* How many bytes of output are kept so far. */
size_t command_held(const struct command_run *run);
/* After the end: the value as JSON text, or an error with a message for the guest. */
int command_answer(struct command_run *run, char **ret_json, struct cordon_error **reterr);
/* Kills the whole process group if it still runs. Accepts NULL; always returns NULL. */
struct command_run *command_run_free(struct command_run *run);
