/* guest/node.c - Node.js 18 or newer. It has threads from the start, so it is never forked. */
#include <errno.h>
#include <unistd.h>

#include "guest/languages.h"
#include "guest/runtime.h"
#include "guest/view.h"

int node_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr)
{
	const char *path = o->policy->node ? o->policy->node : "/usr/bin/node";
	/* Left to itself, V8 takes half of a small limit and gives up there. */
	cleanup_free char *heap =
		str_printf("--max-old-space-size=%llu",
			   (unsigned long long)(o->policy->memory_bytes >> 20) * 3 / 4);
	const char *const argv[] = { "node",
				     "--no-warnings",
				     heap,
				     "/run/cordon/cordon_guest.mjs",
				     o->mode == GUEST_VALIDATE ? "--validate" : NULL,
				     NULL };

	if (!heap)
		return err_errno(reterr, ENOMEM, "the launch of Node.js");
	l->filter = LAUNCH_NODE;
	if (access(path, X_OK) != 0)
		return err_errno(reterr, errno, "Node.js '%s' (Debian package: nodejs)", path);
	if (runtime_add(l, "node") < 0)
		return err_set(reterr, CORDON_UNSUPPORTED, "this build has no Node runtime");
	int r = view_program(l, path, reterr);
	if (r < 0)
		return r;
	if (view_libraries(l) < 0 || view_data(l) < 0 ||
	    launch_bind(l, "/usr/share/nodejs", NULL, BIND_OPTIONAL) < 0 ||
	    launch_bind(l, "/usr/lib/node_modules", NULL, BIND_OPTIONAL) < 0 ||
	    launch_env(l, "NODE_OPTIONS", "") < 0 || language_command(l, path, argv) < 0)
		return err_errno(reterr, ENOMEM, "the launch of Node.js");
	return o->policy->commands.all ? 0 : view_commands(l, &o->policy->commands, reterr);
}
