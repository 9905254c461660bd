/* guests/r/fork.c - a warm R that becomes a session for every spawn request (docs/wire.md). */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cordon_r.h"

/* In the session: its own descriptors in their places. */
static void move_in(const int fds[WIRE_FDS])
{
	dup2(fds[0], R_WIRE);
	for (int i = 0; i < 3; i++)
		dup2(fds[i + 1], i);
	for (int i = 0; i < WIRE_FDS; i++)
		if (fds[i] > R_WIRE)
			close(fds[i]);
}

SEXP fork_serve(SEXP library)
{
	int (*fork_session)(const int[WIRE_FDS]) = NULL;
	void *lib = dlopen(CHAR(STRING_ELT(library, 0)), RTLD_NOW | RTLD_GLOBAL);
	if (lib)
		*(void **)&fork_session = dlsym(lib, "cordon_guest_fork");
	if (!fork_session)
		Rf_error("no cordon_guest_fork: %s", dlerror());
	for (;;) {
		struct wire_fds *f;
		struct json m = wire_line(&f);
		if (json_is(json_get(m, "type"), "exit"))
			_exit(0);
		if (!json_is(json_get(m, "type"), "spawn") || f->count < WIRE_FDS)
			continue;
		fflush(NULL);
		if (fork_session(f->fd) == 0) {
			SEXP token = PROTECT(decode_value(json_get(m, "token")));
			move_in(f->fd);
			wire_renew();
			fcntl(R_WIRE, F_SETFD, FD_CLOEXEC);
			UNPROTECT(1);
			return token;
		}
		for (size_t i = 0; i < WIRE_FDS; i++)
			close(f->fd[i]);
		f->count -= WIRE_FDS;
		memmove(f->fd, f->fd + WIRE_FDS, f->count * sizeof(int));
	}
}
