/* net/gateway/confine.h - confines the gateway itself. It needs sockets and a few files, nothing
 * else. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct confine_result {
	bool has_landlock; /* only files of the resolver and of certificate authorities can be
			      opened */
	bool has_seccomp;  /* no exec, processes, namespaces, tracing or kernel objects */
};

/* Permanent, for this process and its threads. ca_file may be NULL. *ret says which layers the
 * machine lacks; that is not an error. Sets no_new_privs. */
int confine_self(const char *ca_file, struct confine_result *ret, struct cordon_error **reterr);
