/* audit/journal.h - the file of an audit log: locked, appended to with one write per line, chained,
 * rotated. Other processes may have the same file open. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "audit/chain.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"

struct journal {
	int fd;
	char *path;
	uint64_t rotate_bytes; /* 0: never */
	uint64_t keep_files;   /* full files that stay; 0: all */
	bool is_synced;        /* fdatasync after every line */
	/* As they were when this process last wrote. */
	off_t size;
	deadline_ns look_again; /* at what the path names */
	char head[CHAIN_HEX + 1];
};

int journal_open(struct journal *j, const char *path, struct cordon_error **reterr);
/* sync: write everything to the disk first; -errno when that failed. */
int journal_close(struct journal *j, bool sync);
/* line: one open JSON object without its closing brace; it is sealed in place. On
 * failure the file is as it was. */
int journal_append(struct journal *j, struct buf *line, struct cordon_error **reterr);
