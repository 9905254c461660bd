/* serve/rpc/process_methods.h - commands of a client's sessions, in the foreground and in the
 * background.
 */
#pragma once

#include "serve/rpc/rpc.h"

/* Ends the command that the request with this id waits for. False: there is none. */
bool process_methods_cancel(struct rpc *c, const json_t *id);
