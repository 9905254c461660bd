/* inside/guests/sh/tool_command.h - tools as commands: their arguments and
 * results. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "inside/lib/wire_json.h"

/* What a command was called with. */
struct tool_command_call {
	char **argv;
	size_t argc;
	struct json input; /* its stdin: bytes, not JSON */
	/* The caller's directory and environment, each ended by NUL; absent: unknown. */
	struct json context;
};

/* Writes the arguments of a call as JSON; on failure writes why and returns false. */
bool tool_command_args(struct json spec, const struct tool_command_call *call, struct bytes *ret,
		       struct bytes *reterr);
bool tool_command_is_raw(struct json spec); /* it takes argv and stdin unchanged */
/* It declares that it also takes cwd or env. */
bool tool_command_wants_context(struct json spec);
/* Turns a tool's value into stdout, stderr and a status. */
int tool_command_show(struct json spec, struct json value, struct bytes *ret_out,
		      struct bytes *ret_err);
void tool_command_help(struct json spec, struct bytes *ret);
/* The command `extensions`. */
int tool_command_extensions(struct json specs, char **argv, size_t argc, struct bytes *ret_out,
			    struct bytes *ret_err);
struct json tool_command_find(struct json specs, const char *name);
void tool_command_base64(struct bytes *b, const char *data, size_t len);
