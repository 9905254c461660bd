/* files/stdin_fifo.h - a named pipe in the workspace that gives a running guest a new stdin. The
 * guest opens it for reading, which blocks until the host opens it for writing. */
#pragma once

#include "files/workspace.h"

enum { STDIN_FIFO_PATH_SIZE = 48 };

/* Makes a FIFO with an unused name in /tmp. */
int stdin_fifo_make(struct workspace *ws, char ret_path[static STDIN_FIFO_PATH_SIZE],
		    struct cordon_error **reterr);
/* Opens the host's end for writing, non-blocking. 1: open; 0: the guest has not opened it yet; -1:
 * it never will. */
int stdin_fifo_open(struct workspace *ws, const char *path, int *ret_fd);
void stdin_fifo_remove(struct workspace *ws, const char *path);
