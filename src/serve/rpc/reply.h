/* serve/rpc/reply.h - writes JSON-RPC 2.0 responses. */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "serve/rpc/line.h"

/* result is JSON text; the first `bytes` of a file follow as its attachment, if there are any. */
void reply_result(struct lineout *out, const json_t *id, const char *result, size_t len, int fd,
		  uint64_t bytes);
void reply_error(struct lineout *out, const json_t *id, int code, const char *message);
/* For a line that could not be parsed and so has no id: the client recognises it by its line
 * number, from 1. */
void reply_unread(struct lineout *out, uint64_t line, int code, const char *message);
/* An error with its causes and, as data, its code's name and errno. is_pod_style: a failed system
 * call has code 1, and its message begins with the errno's name. */
void reply_failure(struct lineout *out, const json_t *id, const struct cordon_error *e,
		   bool is_pod_style);
