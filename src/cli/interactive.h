/* cli/interactive.h - runs a program of the sandbox on a terminal that is connected to the user's.
 */
#pragma once

#include <cordon/cordon.h>

#include "base/buf.h"
#include "cli/option.h"

/* What is to run: code in this language, or its prompt if there is none. */
struct interactive {
	const char *guest;                  /* python, r, node or sh */
	const struct buf *code;             /* NULL: the interpreter's own prompt */
	const char *name;                   /* of the file with the code, without its directory */
	const char *const *args;            /* ended by NULL */
	const struct cordon_policy *policy; /* names the interpreter */
	uint64_t timeout_ms;                /* UINT64_MAX: none */
};

/* 0, or the exit status after a message: the standard streams are no terminal, or an option or this
 * file (NULL: none) cannot be combined with -it. */
int interactive_refuse(const struct cli *c, const char *file);
/* Runs it in a session that has "sh" among its languages. The user's terminal is as before when
 * this returns, whatever happened. A signal that asks this program to end kills what runs, and is
 * returned in *ret_signal; 0: none. */
int interactive_run(struct cordon_session *s, const struct interactive *what,
		    struct cordon_result **ret, int *ret_signal, struct cordon_error **reterr);
