/* cli/lineedit.h - reading lines from a person: editing keys and history; plain from a pipe. */
#pragma once

struct lineedit;

/* name: whose history file; NULL when out of memory. */
struct lineedit *lineedit_new(const char *name);
struct lineedit *lineedit_free(struct lineedit *l); /* saves the history; always returns NULL */
/* The line without its newline, to be freed; NULL at the end of input. ^C gives an empty line. */
char *lineedit_read(struct lineedit *l, const char *prompt);
