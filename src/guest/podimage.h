/* guest/podimage.h - finds the pod's image and the commands added to it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* $CORDON_POD, else beside the running program, else where it was installed. */
bool podimage_find(char *ret, size_t size);
/* The same; if there is none, the error has the reason and the remedy. */
int podimage_get(char *ret, size_t size, struct cordon_error **reterr);
/* ${XDG_DATA_HOME:-~/.local/share}/cordon/pod; for root /var/lib/cordon/pod; false without a home.
 * It need not exist. */
bool podimage_added(char *ret, size_t size);
/* Directory with the packages of such a policy: bin/NAME and table. */
struct policy;
bool podimage_packages(const struct policy *p, char *ret, size_t size);
