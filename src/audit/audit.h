/* audit/audit.h - the append-only, hash-chained audit log (docs/audit.md).
 *
 * An event gets its fields one by one and is committed as one line with one write; no tree is
 * built:
 *
 *   struct audit_event *e = audit_begin(a, "tool_call", session_id);
 *   audit_add_text(e, "tool", name, strlen(name));
 *   audit_add_json(e, "args", args, args_len);
 *   r = audit_commit(e, &err);
 *
 * Between begin and commit the audit is locked for other threads, so do not wait or call back
 * there. Several audits, also of other processes, may write to one file: lines never interleave and
 * the chain stays intact. All functions accept a NULL audit and then do nothing, so callers need no
 * checks. The caller decides what a failed commit means (policy: audit_required). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cordon/session.h"

struct audit;
struct audit_event;

enum audit_sync {
	AUDIT_SYNC_NONE,   /* left to the kernel */
	AUDIT_SYNC_CLOSE,  /* once, in audit_close */
	AUDIT_SYNC_ALWAYS, /* before commit returns */
};

enum {
	AUDIT_CODE_CHARS = 10000,
	AUDIT_RESULT_CHARS = 500,
	AUDIT_HASH_HEX = 64,
};

struct audit_options {
	const char *path; /* NULL: only the callback */
	enum audit_sync sync;
	uint64_t
		rotate_bytes; /* a file that would exceed this becomes PATH.1 (.2, ...); 0: never */
	uint64_t keep_files;  /* how many of these to keep, removing the oldest; 0: all */
	cordon_audit_fn fn;   /* NULL: none; called with the line of every event, in order */
	void *arg;
	cordon_log_fn log; /* NULL: none; called for every event, also if it was not written */
	void *log_arg;
};

/* Creates the file (0600) and its parent directories. Refuses an empty path, devices, links and
 * anything but a regular file. */
int audit_open(const struct audit_options *opts, struct audit **ret, struct cordon_error **reterr);
struct audit *audit_close(struct audit *a); /* accepts NULL; always returns NULL */
/* The same, but an error if lines were lost that audit_take_lost has not reported. */
int audit_end(struct audit *a, struct cordon_error **reterr);
/* How many lines could not be written since the last call; also as text, freed by the caller. The
 * log records them itself, as `audit_lost`, as soon as it can be written again. */
uint64_t audit_take_lost(struct audit *a, char **ret_text);

/* NULL only if a is NULL. event and keys are plain ASCII names. */
struct audit_event *audit_begin(struct audit *a, const char *event, const char *session_id);
/* Bytes that are not UTF-8 become U+FFFD. */
void audit_add_text(struct audit_event *e, const char *key, const char *text, size_t len);
/* The first max_chars characters, followed by "... [truncated]" if there were more. */
void audit_add_text_cut(struct audit_event *e, const char *key, const char *text, size_t len,
			size_t max_chars);
/* One checked JSON value; newlines between its tokens become spaces. */
void audit_add_json(struct audit_event *e, const char *key, const char *json, size_t len);
void audit_add_uint(struct audit_event *e, const char *key, uint64_t n);
void audit_add_bool(struct audit_event *e, const char *key, bool b);
/* As seconds with three decimals: 0.220 */
void audit_add_seconds(struct audit_event *e, const char *key, uint64_t ns);
int audit_commit(struct audit_event *e, struct cordon_error **reterr);

/* One event with a single text field (NULL: none). */
int audit_write(struct audit *a, const char *event, const char *session_id, const char *key,
		const char *text, struct cordon_error **reterr);

DEFINE_FREEP(struct audit *, audit_close)
#define cleanup_audit CLEANUP(audit_closep)
