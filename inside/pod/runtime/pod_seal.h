/* inside/pod/runtime/pod_seal.h - a seccomp filter with exactly the calls that the door makes. */
#pragma once

#include <stdbool.h>

/* has_network: allow sockets, for the gateway. 0 or a negative errno. */
int seal_install(bool has_network);
/* Prints the same filter in hexadecimal, for the proof. */
void seal_print(bool has_network);
