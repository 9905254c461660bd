/* inside/init/join.h - pid 1 of a place starts a further guest, as the host tells it to. */
#pragma once

#include "inside/init/plan.h"

/* Descriptors by the numbers that they have in cordon-init; -1: none. */
enum { JOIN_FDS = INIT_FD_STATUS + 1 };

/* Receives an order of the host without waiting: returns the order, 0 if there is none now, or -1
 * if the host is gone. The descriptors that came with it are the caller's. */
int join_receive(int control, int fds[static JOIN_FDS]);
/* Carries out CONTROL_JOIN; closes the descriptors. A failure is on the guest's status page. */
void join_start(const struct job *place, int fds[static JOIN_FDS]);
