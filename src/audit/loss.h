/* audit/loss.h - lines that could not be written. Where even the line that says so cannot be
 * written before its writer ends, a small file beside the log, LOG.lost, says it: the next writer
 * puts it into the log, and `cordon audit verify` reads it. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* An open JSON object, without its closing brace: the line that tells of so many lost ones. */
int loss_render(struct buf *line, uint64_t count, const char *reason);
/* Leaves the mark beside the log, or adds to it. The count is the file's size, for a hole needs no
 * room: a full disk often still takes a name. Without a folder there is nowhere to leave it. */
void loss_leave(const char *log_path, uint64_t count);
/* What a mark says; 0: there is none. */
uint64_t loss_look(const char *log_path);
/* The same, and takes the mark away; of several writers one gets it. */
int loss_take(const char *log_path, uint64_t *ret, struct cordon_error **reterr);
