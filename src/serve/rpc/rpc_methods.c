/* serve/rpc/rpc_methods.c - all methods, from the tables of their files. See rpc.h. */
#include "base/str.h"
#include "serve/rpc/rpc.h"

static const struct rpc_method *const tables[] = {
	rpc_session_methods, rpc_files_methods,   rpc_workspace_methods, rpc_pool_methods,
	rpc_machine_methods, rpc_sandbox_methods, rpc_move_methods,      rpc_archive_methods,
	rpc_pod_methods,     rpc_proof_methods,   rpc_fetch_methods,     rpc_process_methods,
	rpc_port_methods,    rpc_watch_methods,
};

enum { TABLES = sizeof(tables) / sizeof(*tables) };

const struct rpc_method *rpc_find_method(const char *name)
{
	for (size_t i = 0; i < TABLES; i++)
		for (const struct rpc_method *m = tables[i]; m->name; m++)
			if (str_eq(m->name, name))
				return m;
	return NULL;
}

void rpc_visit_methods(void (*fn)(const struct rpc_method *m, void *arg), void *arg)
{
	for (size_t i = 0; i < TABLES; i++)
		for (const struct rpc_method *m = tables[i]; m->name; m++)
			fn(m, arg);
}
