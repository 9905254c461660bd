/* cordon/audit.h - checking an audit log: is it whole, and if not, where does it break?
 *
 * Threads: any, at any time. */
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
	bool is_whole;  /* every complete line is valid and follows from the one before, and none is
			   reported lost */
	uint64_t lines; /* valid lines before the first broken one */
	uint64_t broken_line; /* counts from 1; 0: none */
	const char *reason;   /* why it is broken; NULL: it is not */
	uint64_t torn_bytes;  /* of an unfinished last line, whose writer died; the lines before it
				 are valid */
	uint64_t recovered;   /* unfinished lines that a later writer found and recorded */
	uint64_t lost; /* lines that could not be written, as the log itself says (`audit_lost`) or
			  the file FILE.lost beside it */
	uint64_t
		lost_line; /* the first line that reports a loss; 0: none, or only FILE.lost does */
	bool is_continued; /* the file continues another one, by rotation */
	char first_prev[CORDON_AUDIT_HASH]; /* the hash of the previous line, as the first line has
					       it */
	char head[CORDON_AUDIT_HASH]; /* hash of the last valid line. Keep it elsewhere: it detects
					 a log that was cut short or rewritten */
};

/* prev: the head of the file that this one must continue; NULL: not checked. Returns 0 if the file
 * could be read: see the report. */
int cordon_audit_verify(const char *path, const char *prev, struct cordon_audit_report *ret,
			struct cordon_error **reterr);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
