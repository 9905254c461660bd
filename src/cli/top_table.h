/* cli/top_table.h - the table of `cordon top`. A server's answer is untrusted, as all text from
 * elsewhere is. */
#pragma once

#include "base/buf.h"
#include "base/json.h"

/* Adds a line of totals, the titles, and a line for each session, those that used most CPU time
 * first; at most max_rows of them, and then how many more there are. sessions: an array of
 * objects. */
int top_table_add(struct buf *b, json_t *sessions, size_t max_rows);
