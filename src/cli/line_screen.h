/* cli/line_screen.h - shows the text that is being edited, over as many rows as it takes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct line_screen {
	size_t row; /* of the cursor, below the first row of the text */
	size_t end; /* the last row */
};

struct line_view {
	const char *prompt;   /* of the first line; without control characters */
	const char *more;     /* of the other lines */
	const char *on, *off; /* escape sequences around them; "": none */
	const char *text;
	size_t len, cursor;
};

/* Draws in place of what was drawn last. A control character is shown as ^X, never passed on. */
void line_screen_draw(struct line_screen *s, const struct line_view *v);
/* Moves below the text, for other output. */
void line_screen_leave(struct line_screen *s);
/* Columns of the terminal. */
size_t line_screen_width(void);
/* Columns that the UTF-8 text takes. */
size_t line_screen_columns(const char *text, size_t len);
