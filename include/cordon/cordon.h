/* cordon/cordon.h - the whole public API of libcordon. */
#pragma once

#include <cordon/audit.h>
#include <cordon/error.h>
#include <cordon/files.h>
#include <cordon/policy.h>
#include <cordon/session.h>
#include <cordon/tools.h>

#pragma GCC visibility push(default)

/* "0.1.0" */
const char *cordon_version(void);
/* The ladder of this machine as JSON, to be freed. */
int cordon_doctor(char **ret_json, struct cordon_error **reterr);

#pragma GCC visibility pop
