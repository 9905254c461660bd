/* inside/pod/runtime/bridge.h - makes a pod a guest of Cordon: uses the wire (docs/wire.md) on
 * descriptor 3 for the session's shell. Runs no guest code. */
#pragma once

#include "inside/pod/runtime/process.h"

void bridge_hello(const char *token, bool is_template);
/* Serves one session, with our standard streams as the host's pipes, until the host closes the
 * wire. is_sealed: load the door's filter as soon as the host has said what this session has. */
int bridge_serve(struct w2c_sys *p, char **envp, const char *token, bool is_sealed);

/* A warm process that forks a session for every request (docs/wire.md, Templates). Returns in each
 * session, with its own descriptors and its token; never in the template. */
const char *template_serve(struct w2c_sys *p, const char *token);
