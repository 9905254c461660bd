/* cli/option.h - parses the options of a verb from its table: --long, --long=value, -s, -svalue,
 * "--". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

struct cli_option {
	const char *name;  /* without dashes */
	char letter;       /* 0: none */
	const char *value; /* name of its value in help ("MS", "FILE"); NULL: takes none */
	const char *help;  /* one line, no full stop */
	bool repeats;      /* may be given more than once; otherwise twice is an error */
};

/* One invocation of the program. */
struct cli {
	const struct verb *verb; /* NULL before one is chosen */
	bool color;              /* stdout is a terminal that supports colours */
	bool color_err;          /* the same for stderr */
	struct cli_given *given; /* options in the order given */
	size_t given_count;
};

struct cli_given {
	const struct cli_option *option;
	const char *value; /* points into argv; "" for an option without value */
};

/* Checks NO_COLOR, TERM and whether the streams are terminals. */
void cli_init(struct cli *c);
void cli_done(struct cli *c);

/* Splits argv (after the verb) into options, which are kept in c, and operands, which are moved to
 * the front of argv and counted in *ret_count. 0, or 2 after an error message. */
int cli_parse(struct cli *c, int argc, char **argv, int *ret_count);

bool cli_has(const struct cli *c, const char *name);
/* The value of an option's last use; NULL: not given. */
const char *cli_value(const struct cli *c, const char *name);
/* The value of its i-th use, for options that repeat; NULL: fewer uses. */
const char *cli_value_at(const struct cli *c, const char *name, size_t i);

/* "cordon run: ..." on stderr. Both return the exit status. cli_usage: status 2, with a hint at the
 * help. */
int cli_usage(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The error with all its causes on one line. The status is that of its code. */
int cli_fail(const struct cli *c, const struct cordon_error *e);
/* A line on stderr that is not a failure, or precedes one. */
void cli_error(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Escape sequences; "" without colours. */
enum cli_style { STYLE_PLAIN, STYLE_BOLD, STYLE_RED, STYLE_GREEN, STYLE_YELLOW, STYLE_DIM };
const char *cli_style(const struct cli *c, enum cli_style style); /* for stdout */
const char *cli_style_on(const struct cli *c, const FILE *f, enum cli_style style);
