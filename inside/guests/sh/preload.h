/* inside/guests/sh/preload.h - how the agent starts the session's bash: see preload.c. */
#pragma once

#include <signal.h>

/* Its descriptors, as decimal numbers with blanks between them. */
#define PRELOAD_ENV "CORDON_PRELOAD"
/* The name of the script that bash opens; also what it calls itself. */
#define PRELOAD_SCRIPT "bash"
/* Ends the execution. Sent to bash alone. */
#define PRELOAD_INTERRUPT (SIGRTMAX - 1)
/* The library, beside the agent. */
#define PRELOAD_LIBRARY "cordon_bash.so"

enum preload_fd {
	PRELOAD_TEXT,   /* a file: commands that go before, NUL, the code, NUL */
	PRELOAD_TICKET, /* a line here: there is a text; also the script that bash reads */
	PRELOAD_REPORT, /* what bash says: \0S<status>\0<directory>\0 */
	PRELOAD_IN,     /* stdin, stdout and stderr as the session has them */
	PRELOAD_OUT,
	PRELOAD_ERR,
	PRELOAD_TOOLS, /* for the helpers of tools */
	PRELOAD_FDS
};
