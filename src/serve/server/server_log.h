/* serve/server/server_log.h - the log of `cordon serve --log`: JSON objects on stderr, one a line.
 */
#pragma once

#include "base/json.h"

/* With the time first. Takes fields; NULL: there was no memory for them. Any thread. */
void server_log_write(const char *event, json_t *fields);
