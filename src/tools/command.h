/* tools/command.h - a host command as a tool: arguments as JSON on its stdin, a value as JSON on
 * its stdout. It runs as the host's user, in a process group of its own, with the descriptors 0, 1,
 * 2 and a small environment; it never blocks the caller. */
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
	struct strlist env_pass; /* names taken over from the host's environment */
	char *directory;         /* where it runs; NULL: where the host is */
	bool is_plain; /* gets the call's args as its own and stdin as bytes, and answers with
			* {"stdout", "stderr", "exit_code"} */
};

struct command *command_free(struct command *c);

struct command_run;

struct command_start {
	const char *session, *tool;
	const json_t *args;
	const char *args_text;
	size_t args_len;
	uint64_t result_bytes; /* of its stdout */
	int epoll_fd;          /* its descriptors are added here... */
	void *epoll_ptr;       /* ...with this; command_step() whenever one is ready */
};

int command_start(const struct command *c, const struct command_start *start,
		  struct command_run **ret, struct cordon_error **reterr);
/* Takes what is there. 1: it has ended, 0: not yet. */
int command_step(struct command_run *run);
/* The bytes of its output that are kept by now. */
size_t command_held(const struct command_run *run);
/* After the end: the value as JSON text, or an error that is for the guest. */
int command_answer(struct command_run *run, char **ret_json, struct cordon_error **reterr);
/* Kills the whole process group if it still runs. Accepts NULL; always returns NULL. */
struct command_run *command_run_free(struct command_run *run);
