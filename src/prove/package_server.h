/* prove/package_server.h - a registry of pip on the host's loopback, with one package whose build
 * step is an attack; and beside it a service that no package may reach. */
#pragma once

#include <stddef.h>

#include "base/error.h"

#define PACKAGE_NAME "cordonprobe"

struct package_server;

/* Starts a thread that answers until package_server_free. Both services listen on 127.0.0.1. */
int package_server_new(struct package_server **ret, struct cordon_error **reterr);
struct package_server *package_server_free(struct package_server *s);

/* Their ports. The registry also takes a POST, and leads to the other service at /elsewhere. */
unsigned package_server_port(const struct package_server *s);
unsigned package_server_other_port(const struct package_server *s);

/* Any thread. What the package's build backend (Python) is from now on. */
int package_server_set(struct package_server *s, const char *backend, size_t len,
		       struct cordon_error **reterr);
