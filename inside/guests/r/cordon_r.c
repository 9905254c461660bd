/* inside/guests/r/cordon_r.c - the routines that R code can call with .Call. */
#include "inside/guests/r/turn.h"

#include <R_ext/Rdynload.h>
#include <fcntl.h>

#define ROUTINE(name, args)                                                                        \
	{                                                                                          \
#name, (DL_FUNC)(void *)name, args                                                 \
	}

static const R_CallMethodDef routines[] = {
	ROUTINE(wire_token, 1),    ROUTINE(wire_send, 1),     ROUTINE(wire_welcome, 0),
	ROUTINE(wire_call, 4),     ROUTINE(wire_encode, 3),   ROUTINE(wire_output, 3),
	ROUTINE(wire_flush, 0),    ROUTINE(wire_quote, 1),    ROUTINE(wire_interrupts, 1),
	ROUTINE(fork_serve, 3),    ROUTINE(turn_init, 2),     ROUTINE(turn_welcome, 0),
	ROUTINE(turn_serve, 1),    ROUTINE(turn_top, 1),      ROUTINE(turn_cores, 0),
	ROUTINE(turn_state, 0),    ROUTINE(turn_error, 0),    ROUTINE(turn_running, 0),
	ROUTINE(turn_warnings, 0), ROUTINE(turn_reply, 2),    ROUTINE(wire_fits, 2),
	ROUTINE(wire_program, 2),  ROUTINE(wire_readline, 0), ROUTINE(turn_asking, 0),
	{ NULL, NULL, 0 },
};

__attribute__((visibility("default"))) void R_init_cordon_r(DllInfo *dll);

void R_init_cordon_r(DllInfo *dll)
{
	R_registerRoutines(dll, NULL, routines, NULL, NULL);
	R_useDynamicSymbols(dll, FALSE);
	decode_refuses_nul = true;
	handle_init();
	fcntl(R_WIRE, F_SETFD, FD_CLOEXEC);
}
