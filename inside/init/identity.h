/* inside/init/identity.h - the sandbox's identity: id maps, cgroups, host name, loopback. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "inside/init/plan.h"

/* In a new user namespace: maps the inside ids to the given outside ids, which are ours there. */
int identity_map(struct job *j, uid_t outside_uid, gid_t outside_gid);
/* A second barrier besides the filter: this user namespace may have no children. Needs an
 * unrestricted /proc. */
int identity_forbid_nesting(struct job *j, unsigned allowed);
/* Limits the inotify instances and watches of this user namespace. Needs an unrestricted /proc. */
int identity_limit_watches(struct job *j, bool is_template);
/* Joins through descriptors of `tasks` files: microseconds for a single-threaded process, where
 * cgroup.procs takes milliseconds. */
int identity_join_cgroups(struct job *j, const int *fds, uint32_t count);
int identity_hostname(struct job *j);
/* Brings loopback up, opens the gateway's listening sockets and sends them to it, through the
 * descriptor `gateway` if the plan has one. */
int identity_open_relay(struct job *j, int gateway);
