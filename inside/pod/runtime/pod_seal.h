/* inside/pod/runtime/pod_seal.h - seccomp with the door's own list, under the door. */
#pragma once

#include <stdbool.h>

/* has_network: sockets exist, for the gateway. 0 or a negative errno. */
int seal_install(bool has_network);
/* The same filter as hexadecimal digits, for those who prove what it holds. */
void seal_print(bool has_network);
