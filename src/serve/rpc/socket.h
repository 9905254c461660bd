/* serve/rpc/socket.h - a Unix socket that only its owner can reach. */
#pragma once

#include "base/error.h"

/* The folder must be ours and closed to others; it is made when it is missing. A dead socket that
 * is left there is replaced, a living one is -CORDON_EXISTS. */
int socket_listen(const char *path, int *ret_fd, struct cordon_error **reterr);
/* Waits for a client whose user is ours. */
int socket_accept(int fd, int *ret_client, struct cordon_error **reterr);
