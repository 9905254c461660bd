/* inside/init/reaper.h - pid 1 of a sandbox: reaps processes, reports refused system calls, obeys
 * the host, and never runs untrusted code. */
#pragma once

#include <sys/types.h>

#include "inside/init/plan.h"

/* Runs until the guest has ended or the host is gone; then ends, and with it the pid namespace.
 * listener: the notification descriptor or -1. */
_Noreturn void reaper_run(struct job *j, pid_t guest, int control, int listener);
/* Sends one byte and descriptors on the control socket. 0 or -errno. */
int reaper_send(int control, char byte, const int *fds, unsigned count);
/* Receives one descriptor over a private socketpair; -1 when the peer closed it without. */
int reaper_receive_fd(int sock);
