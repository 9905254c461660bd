/* files/stdin_fifo.h - a named pipe in the workspace: gives a running guest a new stdin. The guest
 * opens it for reading, which waits until the host has opened it for writing. */
#pragma once

#include "files/workspace.h"

enum { STDIN_FIFO_PATH_SIZE = 48 };

/* Makes one of a fresh name in /tmp. */
int stdin_fifo_make(struct workspace *ws, char ret_path[static STDIN_FIFO_PATH_SIZE],
		    struct cordon_error **reterr);
/* The host's end, for writing, non-blocking: 1; 0 when the guest is not there yet; -1 when it
 * never will be. */
int stdin_fifo_open(struct workspace *ws, const char *path, int *ret_fd);
void stdin_fifo_remove(struct workspace *ws, const char *path);
