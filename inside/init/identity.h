/* inside/init/identity.h - who we are inside: id maps, cgroups, host name, loopback. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "inside/init/plan.h"

/* In a fresh user namespace: maps inside_uid/gid to the given ids outside (ours there). */
int identity_map(struct job *j, uid_t outside_uid, gid_t outside_gid);
/* A second lock besides the filter: this user namespace may have no children. Needs a whole /proc.
 */
int identity_forbid_nesting(struct job *j, unsigned allowed);
/* How many of the user's inotify instances and watches this one may have. Needs a whole /proc. */
int identity_limit_watches(struct job *j, bool is_template);
/* Joins through the descriptors of `tasks` files; from a single-threaded process this costs
 * microseconds where cgroup.procs costs milliseconds. */
int identity_join_cgroups(struct job *j, const int *fds, uint32_t count);
int identity_hostname(struct job *j);
/* Loopback up, and the gateway's listening sockets opened here and sent to it. */
int identity_open_relay(struct job *j);
