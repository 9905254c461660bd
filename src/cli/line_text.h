/* cli/line_text.h - the text that is being edited, and its cursor. A UTF-8 character moves as
 * one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct line_text {
	struct buf text, killed; /* killed: what was cut last */
	size_t cursor;           /* in bytes */
};

bool line_text_is_continuation(char c); /* inside a UTF-8 character */
/* Where the line that contains `at` begins and ends. */
size_t line_text_start_of(const struct line_text *t, size_t at);
size_t line_text_end_of(const struct line_text *t, size_t at);
void line_text_set(struct line_text *t, const char *text);
void line_text_insert(struct line_text *t, const char *bytes, size_t len);
void line_text_cut(struct line_text *t, size_t from, size_t to);

/* Keys. */
void line_text_left(struct line_text *t);
void line_text_right(struct line_text *t);
void line_text_home(struct line_text *t);
void line_text_end(struct line_text *t);
void line_text_word_left(struct line_text *t);
void line_text_word_right(struct line_text *t);
void line_text_delete_before(struct line_text *t);
void line_text_delete_after(struct line_text *t);
void line_text_kill_end(struct line_text *t);
void line_text_kill_start(struct line_text *t);
void line_text_kill_word(struct line_text *t); /* up to the blank before it, as a shell does */
void line_text_kill_word_before(struct line_text *t);
void line_text_kill_word_after(struct line_text *t);
void line_text_yank(struct line_text *t);  /* what was cut last comes back */
void line_text_break(struct line_text *t); /* begins another line */
