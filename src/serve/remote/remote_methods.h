/* serve/remote/remote_methods.h - what a client of the server may ask for. The methods of serve/rpc
 * were made for a client that is the server's own user: some of them name files, programs and ports
 * of the host. Here that is refused. A method that is not in the table is refused, too. */
#pragma once

#include "serve/rpc/rpc.h"

/* -CORDON_DENIED: a sentence and what to do instead. */
int remote_methods_permit(const struct rpc_method *m, const json_t *params, bool is_admin,
			  struct cordon_error **reterr);
