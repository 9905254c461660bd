/* inside/guests/r/r_template.c - a warm R that forks a session for every spawn request
 * (docs/wire.md). */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

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

int template_random(void)
{
	int x = 1;
	if (getrandom(&x, sizeof(x), 0) != sizeof(x) || x == NA_INTEGER)
		x = (int)getpid();
	return x;
}

SEXP turn_cores(void)
{
	cpu_set_t set;
	return Rf_ScalarInteger(sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1);
}
