/* inside/guests/sh/preload.h - how the agent starts the session's bash: see preload.c. */
#pragma once

#include <signal.h>

/* Its descriptors, as decimal numbers separated by blanks. */
#define PRELOAD_ENV "CORDON_PRELOAD"
/* The name of the script that bash opens, which is also its $0. */
#define PRELOAD_SCRIPT "bash"
/* Ends the execution whose number it carries: bash counts its tickets from 1. Sent to bash alone.
 */
#define PRELOAD_INTERRUPT (SIGRTMAX - 1)
/* The library, beside the agent. */
#define PRELOAD_LIBRARY "cordon_bash.so"

enum preload_fd {
	PRELOAD_TEXT,   /* a file: set-up code, NUL, the code, NUL */
	PRELOAD_TICKET, /* a line here means that there is a text; also the script that bash reads
			 */
	PRELOAD_REPORT, /* bash's reports: \0S<status>\0<directory>\0 */
	PRELOAD_IN,     /* the session's stdin, stdout and stderr */
	PRELOAD_OUT,
	PRELOAD_ERR,
	PRELOAD_TOOLS, /* for the helpers of tools */
	PRELOAD_FDS
};
