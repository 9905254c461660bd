/* serve/mcp/mcptool.h - the tools that an MCP client sees. */
#pragma once

#include "serve/mcp/mcpcall.h"

/* Stores the result in the call. An error becomes a result with isError. */
typedef int (*mcptool_fn)(struct mcpcall *c, struct cordon_error **reterr);

enum { MCPTOOL_ARGS = 6 };

struct mcptool {
	const char *name, *description;
	mcptool_fn fn;
	bool is_read_only, is_destructive;
	/* "name:description". After the name, * marks a required argument and # an integer. */
	const char *args[MCPTOOL_ARGS];
};

extern const struct mcptool mcptool_table[]; /* ends with a zeroed entry */

/* The answer to tools/list, a new reference. */
json_t *mcptool_list(const struct mcptool *table);
/* The result of tools/call, a new reference. NULL: there is no such tool, it was cancelled, or
 * *ret_error is an error {code, message, data}, a new reference. */
json_t *mcptool_call(struct mcp *m, const json_t *message, const struct mcp_sink *sink,
		     json_t **ret_error);

/* Finds the sandbox that the call names, or the guest's default one, which is opened on first
 * use. */
int mcptool_find(struct mcpcall *c, const char *guest, struct cordon_error **reterr);
/* Finds the sandbox that the call names; it must name one. */
int mcptool_find_named(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_open(struct mcpcall *c, const char *guest, const char *label, bool is_implicit,
		 struct cordon_error **reterr);

/* mcprun.c */
int mcptool_run_code(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_run_command(struct mcpcall *c, struct cordon_error **reterr);
/* mcpfiles.c */
int mcptool_read_file(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_write_file(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_list_directory(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_snapshot(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_restore(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_export(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_import(struct mcpcall *c, struct cordon_error **reterr);
