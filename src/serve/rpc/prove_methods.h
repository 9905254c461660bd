/* serve/rpc/prove_methods.h - doctor.prove: the attacks take minutes and leave descriptors open on
 * purpose, so a process of its own runs them, beside the server's threads. */
#pragma once

#include "serve/rpc/rpc.h"

/* Ends the proof that runs for this request; NULL: for any. false: there is none. */
bool proof_cancel(struct rpc *c, const json_t *request);
