/* session/result.h - the result of one execution. Fields are collected one by one; the JSON text is
 * made on request. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "cordon/session.h"

struct cordon_result {
	bool success;
	char *value_json;  /* NULL: none */
	char *buffer_json; /* the table of its binary columns; NULL: none */
	int buffer_fd;     /* -1: none */
	uint64_t buffer_bytes;
	char *text;
	struct buf out, err;
	bool out_truncated, err_truncated;
	char *error;      /* NULL on success */
	const char *kind; /* NULL on success; a string constant */
	bool is_claimed;  /* the error kind is only the guest's claim */
	char *exception_name, *exception_message, *traceback;
	int64_t exception_line;
	int exit_code;
	double time_ms, cpu_ms, memory_mb;
	double start_ms; /* starting an interpreter for this execution took so long; 0: one ran */
	json_t *outputs, *denials, *warnings; /* arrays; NULL: empty */
	json_t *losses; /* the warnings among them that come from result_lose */
	uint64_t tool_calls;
	bool restarted;       /* variables and processes of the session are gone */
	char *restart_reason; /* why; told only if restarted */
	char *assurance;      /* JSON text */
	struct buf json;      /* filled by cordon_result_json */
};

struct cordon_result *result_new(void);                           /* NULL: out of memory */
struct cordon_result *result_copy(const struct cordon_result *r); /* NULL: out of memory */
/* Sets error and kind. The first call wins. */
int result_fail(struct cordon_result *r, const char *kind, const char *fmt, ...) PRINTF_LIKE(3, 4);
int result_warn(struct cordon_result *r, const char *text);
/* A warning that something was lost: not kept or not recorded. Clients must show it. */
int result_lose(struct cordon_result *r, const char *text);
/* Why variables and processes of the session are gone, if they are. The first call wins. */
void result_explain_restart(struct cordon_result *r, const char *why);
/* They are gone. */
void result_restarted(struct cordon_result *r, const char *why);
/* Removes paths, pids, host names and stack traces from the guest's texts. */
void result_sanitize(struct cordon_result *r);
json_t *result_array(json_t **array); /* creates it if missing; borrowed */

DEFINE_FREEP(struct cordon_result *, cordon_result_free)
#define cleanup_result CLEANUP(cordon_result_freep)
