/* cli/option.h - options of a verb, from a table: --long, --long=value, -s, -svalue, "--". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

struct cli_option {
	const char *name;  /* without dashes */
	char letter;       /* 0: none */
	const char *value; /* what to call its value in help ("MS", "FILE"); NULL: takes none */
	const char *help;  /* one line, no full stop */
	bool repeats;      /* may be given more than once; otherwise twice is an error */
};

/* One invocation of the program. */
struct cli {
	const struct verb *verb; /* NULL before one is chosen */
	bool color;              /* stdout is a terminal that wants colours */
	bool color_err;          /* so does stderr */
	struct cli_given *given; /* options as they came */
	size_t given_count;
};

struct cli_given {
	const struct cli_option *option;
	const char *value; /* points into argv; "" for an option without value */
};

/* Looks at NO_COLOR, TERM and whether the streams are terminals. */
void cli_init(struct cli *c);
void cli_done(struct cli *c);

/* Splits argv (after the verb) into options, kept in c, and operands, moved to the front of argv
 * and counted in *ret_count. 0, or 2 after telling the user what is wrong. */
int cli_parse(struct cli *c, int argc, char **argv, int *ret_count);

bool cli_has(const struct cli *c, const char *name);
/* The value of an option that was given (of its last use), or NULL. */
const char *cli_value(const struct cli *c, const char *name);
/* The value of its i-th use, or NULL when there are fewer: for options that repeat. */
const char *cli_value_at(const struct cli *c, const char *name, size_t i);

/* "cordon run: ..." on stderr. Both return the status to exit with: 2 with a hint at the help. */
int cli_usage(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The whole chain of causes on one line; the status belongs to its code. */
int cli_fail(const struct cli *c, const struct cordon_error *e);
/* A line on stderr that is no failure, or comes before one. */
void cli_error(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Escape sequences, "" where colours are unwanted. */
enum cli_style { STYLE_PLAIN, STYLE_BOLD, STYLE_RED, STYLE_GREEN, STYLE_YELLOW, STYLE_DIM };
const char *cli_style(const struct cli *c, enum cli_style style);
