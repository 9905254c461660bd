/* serve/rpc/prove_methods.h - doctor.prove. The attacks take minutes and leave descriptors open on
 * purpose, so a separate process runs them. */
#pragma once

#include "serve/rpc/rpc.h"

/* Ends the proof that runs for this request; NULL: for any. False: there is none. */
bool proof_cancel(struct rpc *c, const json_t *request);
