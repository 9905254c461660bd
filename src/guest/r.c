/* guest/r.c - R 4.2 or newer, started by its own binary: the usual front end is a shell script. */
#include <errno.h>
#include <unistd.h>

#include "guest/languages.h"
#include "guest/runtime.h"
#include "guest/view.h"

/* R's own package utils asks `which` for `uname` while it loads, through a shell, and fails without
 * an answer. Here is one that is true; there are no commands to be found. */
static int shell(struct launch *l, struct cordon_error **reterr)
{
	static const char which[] =
		"#!/bin/sh\nfor name; do command -v \"$name\" || exit 1; done\n";

	if (launch_file(l, "/usr/bin/which", which, sizeof(which) - 1, 0555) < 0 ||
	    strlist_add(&l->exec_paths, "/usr/bin/which") < 0)
		return err_errno(reterr, ENOMEM, "the launch of R");
	return view_program(l, "/usr/bin/sh", reterr);
}

int r_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr)
{
	static const char *const dirs[] = { "/usr/lib/R", "/usr/share/R", "/etc/R",
					    "/usr/local/lib/R", "/usr/share/fonts" };
	int r;
	const char *home = o->policy->r ? o->policy->r : "/usr/lib/R";
	cleanup_free char *program = str_printf("%s/bin/exec/R", home);
	const char *const argv[] = { "R",
				     "--vanilla",
				     "--no-echo",
				     "--no-readline",
				     "--file=/run/cordon/cordon_guest.R",
				     o->mode == GUEST_TEMPLATE   ? "--args"
				     : o->mode == GUEST_VALIDATE ? "--args"
								 : NULL,
				     o->mode == GUEST_TEMPLATE ? "--template" : "--validate",
				     NULL };

	l->filter = LAUNCH_R;
	if (!program)
		return err_errno(reterr, ENOMEM, "the launch of R");
	if (access(program, X_OK) != 0)
		return err_errno(reterr, errno,
				 "the R interpreter '%s' (Debian package: r-base-core)", program);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		if (launch_bind(l, dirs[i], NULL, BIND_OPTIONAL) < 0)
			return err_errno(reterr, ENOMEM, "the view");
	if (runtime_add(l, "r") < 0)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "this build has no R runtime: build it where R is installed");
	if (view_libraries(l) < 0 || view_data(l) < 0 || launch_env(l, "R_HOME", home) < 0 ||
	    launch_env(l, "R_SHARE_DIR", "/usr/share/R/share") < 0 ||
	    launch_env(l, "R_INCLUDE_DIR", "/usr/share/R/include") < 0 ||
	    launch_env(l, "R_DOC_DIR", "/usr/share/R/doc") < 0 ||
	    launch_env(l, "R_LIBS_USER", "") < 0 ||
	    launch_env(l, "R_DEFAULT_PACKAGES", "NULL") < 0 || /* the runtime loads them */
	    launch_env(l, "LD_LIBRARY_PATH", "/usr/lib/R/lib") < 0 ||
	    strlist_add(&l->exec_paths, program) < 0 || language_command(l, program, argv) < 0)
		return err_errno(reterr, ENOMEM, "the launch of R");
	if (o->mode == GUEST_TEMPLATE && runtime_add(l, "lib") < 0)
		return err_set(reterr, CORDON_UNSUPPORTED, "this build has no runtime library");
	r = shell(l, reterr);
	if (r < 0)
		return r;
	return o->policy->commands.all ? 0 : view_commands(l, &o->policy->commands, reterr);
}
