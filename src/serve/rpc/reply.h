/* serve/rpc/reply.h - the lines of JSON-RPC 2.0. */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "serve/rpc/line.h"

/* result is JSON text. */
void reply_result(struct lineout *out, const json_t *id, const char *result, size_t len);
void reply_error(struct lineout *out, const json_t *id, int code, const char *message);
/* What could not be read has no id: the client knows it by its line, counted from 1. */
void reply_unread(struct lineout *out, uint64_t line, int code, const char *message);
/* The library's error with its whole chain and, as data, its code's name and errno. is_pod_style:
 * a failed system call is code 1 and its message begins with the errno's name. */
void reply_failure(struct lineout *out, const json_t *id, const struct cordon_error *e,
		   bool is_pod_style);
bool reply_notify(struct lineout *out, const char *method, const char *params, size_t len);
/* The messages of an error and its causes, joined by ": "; to be freed. NULL: out of memory. */
char *reply_chain(const struct cordon_error *e);
/* "ENOENT", or NULL. */
const char *reply_errno_name(int os_errno);
