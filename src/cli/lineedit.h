/* cli/lineedit.h - reading lines from a person: editing keys and history; plain from a pipe. */
#pragma once

struct lineedit;

/* name: whose history file; NULL when out of memory. */
struct lineedit *lineedit_new(const char *name);
struct lineedit *lineedit_free(struct lineedit *l); /* saves the history; always returns NULL */

enum lineedit_end {
	LINEEDIT_OPEN,    /* within this file only: the line goes on */
	LINEEDIT_LINE,    /* there is a line */
	LINEEDIT_DROPPED, /* ^C */
	LINEEDIT_NONE,    /* the end of input, or no memory */
};

/* ret: the line without its newline, to be freed; set with LINEEDIT_LINE only. The terminal stays
 * in the editor's mode until it is released: a ^D that is typed in between is lost otherwise. */
enum lineedit_end lineedit_read(struct lineedit *l, const char *prompt, char **ret);
/* Gives the terminal back, for a program to run. */
void lineedit_release(struct lineedit *l);
