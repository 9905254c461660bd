/* inside/init/reaper.h - pid 1 of a sandbox: reaps processes, reports refused system calls, obeys
 * the host, and never runs untrusted code. */
#pragma once

#include <sys/types.h>

#include "inside/init/plan.h"

/* Runs until the guest has ended or the host is gone. Then it ends, and the pid namespace with it.
 * listener: the notification descriptor or -1. */
_Noreturn void reaper_run(struct job *j, pid_t guest, int control, int listener);
/* Sends one byte and descriptors on the control socket. 0 or -errno. */
int reaper_send(int control, char byte, const int *fds, unsigned count);
/* Receives one descriptor over a private socketpair; -1: the peer closed it without sending one. */
int reaper_receive_fd(int sock);
