/* guest/r.c - R 4.2 or newer. Starts its binary directly, because the usual front end is a shell
 * script. */
#include <errno.h>
#include <unistd.h>

#include "guest/languages.h"
#include "guest/runtime.h"
#include "guest/view.h"

/* R starts programs through a shell, so the first command that the policy names brings it. R itself
 * needs none (Sys.which in cordon_guest.R). */
static int programs(struct launch *l, const struct policy *p, struct cordon_error **reterr)
{
	int r = view_programs(l, p, reterr);

	return r == 0 && policy_names_program(p) ? view_program(l, "/usr/bin/sh", reterr) : r;
}

/* R's directories and variables. 0 or -CORDON_NOMEM. */
static int environment(struct launch *l, const char *home)
{
	static const char *const dirs[] = { "/usr/lib/R", "/usr/share/R", "/etc/R",
					    "/usr/local/lib/R", "/usr/share/fonts" };
	const char *const variables[][2] = {
		{ "R_HOME", home },
		{ "R_SHARE_DIR", "/usr/share/R/share" },
		{ "R_INCLUDE_DIR", "/usr/share/R/include" },
		{ "R_DOC_DIR", "/usr/share/R/doc" },
		{ "R_LIBS_USER", "" },
		{ "R_DEFAULT_PACKAGES", "NULL" }, /* the runtime loads them */
		{ "LD_LIBRARY_PATH", "/usr/lib/R/lib" },
	};
	int r = view_data(l);

	for (size_t i = 0; r == 0 && i < sizeof(dirs) / sizeof(*dirs); i++)
		r = launch_bind(l, dirs[i], NULL, BIND_OPTIONAL);
	for (size_t i = 0; r == 0 && i < sizeof(variables) / sizeof(*variables); i++)
		r = launch_env(l, variables[i][0], variables[i][1]);
	return r;
}

static int runtimes(const struct guest_options *o, struct launch *l, struct cordon_error **reterr)
{
	if (runtime_add(l, "r") < 0)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "this build has no R runtime: build it where R is installed");
	if (o->mode == GUEST_TEMPLATE && runtime_add(l, "lib") < 0)
		return err_set(reterr, CORDON_UNSUPPORTED, "this build has no runtime library");
	return 0;
}

/* A garbage collection marks every object, and so copies every page that a session shares with its
 * template. R's start ends just below the default threshold, so the first collection would come as
 * soon as code runs. But too high a threshold leaves garbage of the start in every session: with
 * 480k R collects in the middle of loading and keeps 52 MB, with 490k 43 MB, with 600k 48 MB. */
#define ROOM_BEFORE_COLLECTING "--min-nsize=520k"

int r_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr)
{
	const char *home = o->policy->r ? o->policy->r : "/usr/lib/R";
	cleanup_free char *program = str_printf("%s/bin/exec/R", home);
	bool is_plain = o->mode != GUEST_TEMPLATE && o->mode != GUEST_VALIDATE;
	const char *const argv[] = { "R",
				     "--vanilla",
				     "--no-echo",
				     "--no-readline",
				     ROOM_BEFORE_COLLECTING,
				     "--file=/run/cordon/cordon_start.R",
				     is_plain ? NULL : "--args",
				     o->mode == GUEST_TEMPLATE ? "--template" : "--validate",
				     NULL };

	l->filter = LAUNCH_R;
	if (!program)
		return err_errno(reterr, ENOMEM, "the launch of R");
	if (access(program, X_OK) != 0)
		return err_errno(reterr, errno,
				 "the R interpreter '%s' (Debian package: r-base-core)", program);
	if (view_hides(program))
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "R's home '%s' cannot be seen in the sandbox, which has its own "
			       "/home, /tmp, /dev and /workspace; remedy: an R below /usr or /opt",
			       home);
	int r = runtimes(o, l, reterr);
	if (r < 0)
		return r;
	r = programs(l, o->policy, reterr);
	if (r < 0)
		return r;
	if (view_libraries(l) < 0 || environment(l, home) < 0 || launch_exec(l, program) < 0 ||
	    language_command(l, program, argv) < 0)
		return err_errno(reterr, ENOMEM, "the launch of R");
	return 0;
}
