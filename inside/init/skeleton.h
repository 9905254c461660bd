/* inside/init/skeleton.h - the part of the private root that is the same in every sandbox. */
#pragma once

#include "inside/init/plan.h"

/* In the new namespaces, before the plan arrives: makes mounts private and builds a file system
 * with what every root has, which becomes the working directory. 0, or -1 with the failure
 * recorded. */
int skeleton_build(struct job *j);
