/* inside/guests/r/r_template.c - a warm R that forks a session for every spawn request
 * (docs/wire.md). */
#include <dlfcn.h>
#include <stdio.h>

#include "inside/guests/r/turn.h"

SEXP fork_serve(SEXP library, SEXP head, SEXP tail)
{
	void (*serve)(const char *head, const char *tail, void *state, size_t size) = NULL;
	void *lib = dlopen(CHAR(STRING_ELT(library, 0)), RTLD_NOW | RTLD_GLOBAL);
	if (lib)
		*(void **)&serve = dlsym(lib, "cordon_guest_serve");
	if (serve) {
		fflush(NULL);
		serve(CHAR(STRING_ELT(head, 0)), CHAR(STRING_ELT(tail, 0)), NULL, 0);
		wire_renew();
		turn_renew();
	} else {
		Rf_error("no cordon_guest_serve: %s", dlerror());
	}
	return R_NilValue;
}
