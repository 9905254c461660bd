/* serve/server/state_lock.h - one server to a state folder. Two would remove each other's parked
 * sessions, and neither would know what the other has promised its keys. */
#pragma once

#include "base/error.h"

/* Takes the lock; it ends with the process, however that ends, and with close(*ret_fd).
 * -CORDON_EXISTS: another process has it. */
int state_lock_open(const char *folder, int *ret_fd, struct cordon_error **reterr);
