/* audit/loss.h - lines that could not be written. If the writer ends before it could record the
 * loss in the log, it leaves a small file beside it, LOG.lost. The next writer adds it to the log,
 * and `cordon audit verify` reads it. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* An open JSON object, without its closing brace: the line that tells of so many lost ones. */
int loss_render(struct buf *line, uint64_t count, const char *reason);
/* Leaves LOG.lost beside the log, or adds to it. The count is the size of the file, because a hole
 * needs no space: a full disk often still accepts a name. Without a folder there is nowhere to
 * leave it. */
void loss_leave(const char *log_path, uint64_t count);
/* What a mark says; 0: there is none. */
uint64_t loss_look(const char *log_path);
/* The same, and removes the file; of several writers only one gets it. */
int loss_take(const char *log_path, uint64_t *ret, struct cordon_error **reterr);
