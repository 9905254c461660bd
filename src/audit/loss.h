/* audit/loss.h - lines that could not be written. If the writer ends before it could record the
 * loss in the log, it leaves a small file beside it, LOG.lost. The next writer adds it to the log,
 * and `cordon audit verify` reads it. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* Writes the line that records lost ones: a JSON object without its closing brace. */
int loss_render(struct buf *line, uint64_t count, const char *reason);
/* Creates LOG.lost beside the log, or adds to it. The count is the file's size: a hole needs no
 * space, and a full disk often still accepts a new name. If the directory is missing, nothing is
 * recorded. */
void loss_leave(const char *log_path, uint64_t count);
/* The count in LOG.lost; 0: there is none. */
uint64_t loss_look(const char *log_path);
/* The same, and removes the file. Of several writers only one gets it. */
int loss_take(const char *log_path, uint64_t *ret, struct cordon_error **reterr);
