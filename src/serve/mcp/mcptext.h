/* serve/mcp/mcptext.h - results as a model reads them: text that is not too long, and images. */
#pragma once

#include <cordon/session.h>

#include "serve/mcp/mcpcall.h"

/* How much of one text a model gets: about five thousand tokens. */
enum { MCPTEXT_MAX = 16 << 10 };

/* Fills the call's text, data and images. full: the result as JSON. */
void mcptext_describe(struct mcpcall *c, struct cordon_result *result, const json_t *full);
/* The text without its middle; instead it says how much is left out, and `note`, such as where the
 * whole is. Not longer than max by more than the note and a line. To be freed; NULL: out of
 * memory. */
char *mcptext_cut(const char *text, size_t len, size_t max, const char *note);
void mcptext_add_image(struct mcpcall *c, const char *mime, const char *base64);
