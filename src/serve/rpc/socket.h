/* serve/rpc/socket.h - a Unix socket that only its owner can reach. */
#pragma once

#include "base/error.h"

/* The directory must be ours and closed to others; it is created if missing. A socket without a
 * server is replaced; one with a server gives -CORDON_EXISTS. */
int socket_listen(const char *path, int *ret_fd, struct cordon_error **reterr);
/* Waits for a client with the same uid as ours. */
int socket_accept(int fd, int *ret_client, struct cordon_error **reterr);
