/* guest/node.c - Node.js 18 or newer. It has threads from the start, so it cannot be forked. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/languages.h"
#include "guest/runtime.h"
#include "guest/view.h"

/* Node starts with 20 MiB here, and the code needs some as well. */
enum { LEAST_BYTES = 32 << 20, SMALL_BYTES = 160 << 20 };

/* By default V8 uses half of a small limit and aborts there. */
uint64_t node_heap_bytes(const struct policy *p)
{
	return p->memory_bytes / 4 * 3;
}

/* The default lets new objects use 48 MiB before the first collection. */
static const char *young_space(uint64_t memory)
{
	return memory < SMALL_BYTES ? "--max-semi-space-size=1" : "--max-semi-space-size=16";
}

static int check_memory(uint64_t bytes, struct cordon_error **reterr)
{
	if (bytes >= LEAST_BYTES)
		return 0;
	return err_set(reterr, CORDON_INVALID,
		       "Node.js does not start with a memory_bytes of %llu: it needs %d "
		       "(memory_bytes=%dM)",
		       (unsigned long long)bytes, LEAST_BYTES, LEAST_BYTES >> 20);
}

/* One file is all of Node. A version manager keeps it below /home, where it is seen elsewhere.
 * ret: its path in the sandbox. */
static int interpreter(struct launch *l, const char *path, char ret[static PATH_MAX],
		       struct cordon_error **reterr)
{
	static const char moved[] = "/opt/node/bin/node";
	char real[PATH_MAX];

	if (!realpath(path, real) || access(path, X_OK) != 0)
		return err_errno(reterr, errno, "Node.js '%s' (Debian package: nodejs)", path);
	bool is_moved = view_hides(real);
	(void)str_copy(ret, PATH_MAX, is_moved ? moved : view_hides(path) ? real : path);
	if (!is_moved)
		return view_program(l, ret, reterr);
	struct stat st;
	if (stat(real, &st) != 0 || !S_ISREG(st.st_mode))
		return err_set(reterr, CORDON_INVALID, "'%s' is not an executable file", path);
	return launch_bind(l, real, moved, BIND_EXEC) < 0 ? err_errno(reterr, ENOMEM, "the view")
							  : 0;
}

int node_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr)
{
	const char *path = o->policy->node ? o->policy->node : "/usr/bin/node";
	uint64_t memory = o->policy->memory_bytes;
	char seen[PATH_MAX];
	cleanup_free char *heap = str_printf("--max-old-space-size=%llu",
					     (unsigned long long)node_heap_bytes(o->policy) >> 20);
	const char *const argv[] = { "node", "--no-warnings",
				     /* An interrupt ends a callback where async_hooks would not. */
				     "--no-force-async-hooks-checks", heap, young_space(memory),
				     "/run/cordon/cordon_guest.mjs",
				     o->mode == GUEST_VALIDATE ? "--validate" : NULL, NULL };

	if (!heap)
		return err_errno(reterr, ENOMEM, "the launch of Node.js");
	l->filter = LAUNCH_NODE;
	if (runtime_add(l, "node") < 0)
		return err_set(reterr, CORDON_UNSUPPORTED, "this build has no Node runtime");
	int r = check_memory(memory, reterr);
	if (r == 0)
		r = view_programs(l, o->policy, reterr);
	if (r == 0)
		r = interpreter(l, path, seen, reterr);
	if (r < 0)
		return r;
	if (view_libraries(l) < 0 || view_data(l) < 0 ||
	    launch_bind(l, "/usr/share/nodejs", NULL, BIND_OPTIONAL) < 0 ||
	    launch_bind(l, "/usr/lib/node_modules", NULL, BIND_OPTIONAL) < 0 ||
	    launch_env(l, "NODE_OPTIONS", "") < 0 || language_command(l, seen, argv) < 0)
		return err_errno(reterr, ENOMEM, "the launch of Node.js");
	return 0;
}
