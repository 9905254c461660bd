/* guest/podimage.h - where the pod's image is, and the commands that were added to it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* CORDON_POD of the environment, else beside the running program, else where it was installed. */
bool podimage_find(char *ret, size_t size);
/* The same, with the reason and the remedy where there is none. */
int podimage_get(char *ret, size_t size, struct cordon_error **reterr);
/* ${XDG_DATA_HOME:-~/.local/share}/cordon/pod, for root /var/lib/cordon/pod; false without a home.
 * It need not exist. */
bool podimage_added(char *ret, size_t size);
/* Where the packages of such a policy are made ready: bin/NAME and table. */
struct policy;
bool podimage_packages(const struct policy *p, char *ret, size_t size);
