/* serve/mcp/mcptool.h - the tools that an MCP client sees. */
#pragma once

#include "serve/mcp/mcpcall.h"

/* Stores the result in the call. An error becomes a result with isError. */
typedef int (*mcptool_fn)(struct mcpcall *c, struct cordon_error **reterr);

enum { MCPTOOL_ARGS = 8 };

/* Which lists show a tool or an argument (mcp_options.lists_all). It can be used in any case. */
enum mcptool_list {
	MCPTOOL_BOTH,
	MCPTOOL_SHORT, /* for models */
	MCPTOOL_FULL,  /* for programs */
};

struct mcptool_arg {
	const char *name, *about;
	const char *choices; /* separated by spaces, for the schema; NULL: any */
	const char *example; /* NULL: none */
	const char *also[2]; /* other names that are accepted */
	bool is_required, is_integer;
	enum mcptool_list list;
};

struct mcptool {
	const char *name, *description;
	mcptool_fn fn;
	bool is_read_only, is_destructive;
	enum mcptool_list list;
	struct mcptool_arg args[MCPTOOL_ARGS]; /* ends with a zeroed entry, if there is room */
};

extern const struct mcptool mcptool_table[]; /* mcptable.c; ends with a zeroed entry */

/* The answer to tools/list, a new reference. */
json_t *mcptool_list(const struct mcptool *table, bool lists_all);
/* The result of tools/call, a new reference. NULL: there is no such tool, it was cancelled, or
 * *ret_error is an error {code, message, data}, a new reference. */
json_t *mcptool_call(struct mcp *m, const json_t *message, const struct mcp_sink *sink,
		     struct span *span, json_t **ret_error);

/* mcpsandbox.c */
/* Finds the sandbox that the call names, or the client's default one, which is opened on first use.
 * guest: for a machine where a sandbox has one language. */
int mcptool_find(struct mcpcall *c, const char *guest, struct cordon_error **reterr);
/* Finds the sandbox that the call names; it must name one. */
int mcptool_find_named(struct mcpcall *c, struct cordon_error **reterr);
/* Begins work in the client session that runs this language in the call's sandbox; guest NULL: the
 * sandbox's own. Models call tools in parallel: calls on the same interpreter take turns. */
int mcptool_begin(struct mcpcall *c, const char *guest, struct client_session **ret,
		  struct cordon_error **reterr);
void mcptool_end(struct mcpcall *c, struct client_session *context);
enum mcptool_origin {
	MCPTOOL_NAMED,    /* the client asked for it */
	MCPTOOL_DEFAULT,  /* for all calls of a client without a sandbox_id */
	MCPTOOL_IMPLICIT, /* for one call without a sandbox_id; may be ended to make room */
};
int mcptool_open(struct mcpcall *c, const char *guest, const char *label,
		 enum mcptool_origin origin, struct cordon_error **reterr);
int mcptool_create(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_sandboxes(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_destroy(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_fork(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_suspend(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_resume(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_manage(struct mcpcall *c, struct cordon_error **reterr);
/* mcprun.c */
int mcptool_run_code(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_run_command(struct mcpcall *c, struct cordon_error **reterr);
/* mcpfiles.c */
int mcptool_read_file(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_write_file(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_list_files(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_snapshot(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_restore(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_export(struct mcpcall *c, struct cordon_error **reterr);
int mcptool_import(struct mcpcall *c, struct cordon_error **reterr);
