/* session/denial_list.h - what a result's list of denials leaves out: refusals that look alike are
 * one, and a refusal that nobody noticed is none (docs/result.md). */
#pragma once

#include <stdbool.h>

#include "base/json.h"

/* Entries with the same operation, layer, remedy and target are counted together. One program is
 * one target, whatever the directory in which it was searched. denials may be NULL. */
void denial_list_merge(json_t *denials);

/* What the execution shows of its refusals. */
struct denial_list_words {
	bool is_success;
	bool is_shell;                  /* its programs speak on stderr only */
	const char *message, *err_text; /* of the exception, and stderr; NULL: none */
};

/* Libraries and programs look for some programs and kinds of socket, and do without. These are kept
 * only if the code's error or stderr shows that it met the refusal. */
void denial_list_drop_probes(json_t *denials, const struct denial_list_words *from);
