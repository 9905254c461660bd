/* cli/lineedit.h - reads code from a person: one or more lines, with editing keys, history, search
 * and completion; from a pipe without these. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct lineedit;

/* How the word before the cursor may go on. */
struct lineedit_matches {
	size_t len;           /* bytes before the cursor that a match replaces */
	struct strlist items; /* without control characters */
};

struct lineedit_options {
	const char *name; /* selects the history file */
	/* Whether the text can run; if not, Enter begins another line. NULL: always. While these
	 * run, ^C is a SIGINT again. */
	bool (*is_complete)(const char *text, size_t len, void *arg);
	void (*complete)(const char *text, size_t cursor, struct lineedit_matches *ret, void *arg);
	void *arg;
	const char *on, *off; /* escape sequences around the prompt; NULL: none */
};

/* NULL: out of memory. */
struct lineedit *lineedit_new(const struct lineedit_options *o);
struct lineedit *lineedit_free(struct lineedit *l); /* saves the history; always returns NULL */
bool lineedit_is_terminal(const struct lineedit *l);

enum lineedit_end {
	LINEEDIT_OPEN,    /* internal: the text continues */
	LINEEDIT_LINE,    /* a text was read */
	LINEEDIT_DROPPED, /* ^C */
	LINEEDIT_NONE,    /* end of input, or no memory */
};

/* *ret: the text without its last newline, freed by the caller; set only with LINEEDIT_LINE. The
 * terminal stays in the editor's mode until lineedit_release; otherwise a ^D typed in between would
 * be lost. */
enum lineedit_end lineedit_read(struct lineedit *l, const char *prompt, char **ret);
/* Bytes that were typed and read, but by nobody: the next keys. */
void lineedit_give_back(struct lineedit *l, const char *bytes, size_t len);
/* Restores the terminal, so that a program can run. */
void lineedit_release(struct lineedit *l);
