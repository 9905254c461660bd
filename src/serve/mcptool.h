/* serve/mcptool.h - the tools that a model's client sees. */
#pragma once

#include "serve/mcp.h"

/* Those of tools/list; a new reference. */
json_t *mcptool_list(void);
/* The result of tools/call, a new reference; NULL: there is no such tool. What goes wrong is a
 * result with isError. request: the message's id. */
json_t *mcptool_call(struct mcp *m, const char *name, const json_t *args, json_t *request);
