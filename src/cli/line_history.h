/* cli/line_history.h - what was typed before, kept in a file per name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct line_history {
	char *path; /* NULL: not saved */
	struct strlist entries;
	size_t loaded; /* how many of them came from the file */
};

void line_history_load(struct line_history *h, const char *name);
/* Not if it is empty, or the same as the last. */
void line_history_add(struct line_history *h, const char *text);
/* The newest entry before position `before` that contains the text; false: none. */
bool line_history_find(const struct line_history *h, const char *text, size_t before, size_t *ret);
/* Saves, behind what other shells have saved meanwhile, and frees. */
void line_history_done(struct line_history *h);
