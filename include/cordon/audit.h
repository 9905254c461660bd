/* cordon/audit.h - checking an audit log: is it whole, and if not, where does it break? */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cordon/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum { CORDON_AUDIT_HASH = 65 }; /* 64 hex digits and a NUL */

struct cordon_audit_report {
	bool is_whole;  /* every whole line is good and follows from the one before, and none is
			 * said to be lost */
	uint64_t lines; /* good lines before the first broken one */
	uint64_t broken_line; /* counts from 1; 0: none */
	const char *reason;   /* why it is broken; NULL: it is not */
	uint64_t torn_bytes; /* of a last line without end: its writer died; all before it counts */
	uint64_t recovered;  /* torn lines that a later writer found and noted */
	uint64_t lost; /* lines that could not be written, by the log's own word (`audit_lost`) or
			* that of the mark beside it (FILE.lost) */
	uint64_t lost_line; /* the first line that says so; 0: none, or only the mark does */
	bool is_continued;  /* the file goes on where another one ended, by rotation */
	char first_prev[CORDON_AUDIT_HASH]; /* what the first line says the one before it was */
	char head[CORDON_AUDIT_HASH]; /* hash of the last good line: keep it elsewhere, and a log
				       * that was cut short or rewritten can be told */
};

/* prev: the head of the file that this one must continue; NULL: the log's own beginning is taken.
 * 0 when the file could be read: look at the report. */
int cordon_audit_verify(const char *path, const char *prev, struct cordon_audit_report *ret,
			struct cordon_error **reterr);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
