/* net/gateway/confine.h - confines the gateway itself: it needs sockets, a few files, and nothing
 * else. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct confine_result {
	bool has_landlock; /* files: only those that names and authorities are read from */
	bool has_seccomp;  /* no other programs, processes, namespaces, tracing, kernel objects */
};

/* Permanent, for this process and its threads. ca_file may be NULL. *ret says what the machine does
 * not support; that is not an error. Sets no_new_privs. */
int confine_self(const char *ca_file, struct confine_result *ret, struct cordon_error **reterr);
