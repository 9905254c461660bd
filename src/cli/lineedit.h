/* cli/lineedit.h - reads lines from a person, with editing keys and history; from a pipe
 * without. */
#pragma once

struct lineedit;

/* name: selects the history file. NULL: out of memory. */
struct lineedit *lineedit_new(const char *name);
struct lineedit *lineedit_free(struct lineedit *l); /* saves the history; always returns NULL */

enum lineedit_end {
	LINEEDIT_OPEN,    /* internal: the line continues */
	LINEEDIT_LINE,    /* a line was read */
	LINEEDIT_DROPPED, /* ^C */
	LINEEDIT_NONE,    /* end of input, or no memory */
};

/* *ret: the line without its newline, freed by the caller; set only with LINEEDIT_LINE. The
 * terminal stays in the editor's mode until lineedit_release; otherwise a ^D typed in between would
 * be lost. */
enum lineedit_end lineedit_read(struct lineedit *l, const char *prompt, char **ret);
/* Restores the terminal, so that a program can run. */
void lineedit_release(struct lineedit *l);
