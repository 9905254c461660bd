/* audit/journal.h - the file of an audit log: locked, one write per line, hash-chained, rotated.
 * Other processes may have the same file open. */
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
	uint64_t keep_files;   /* rotated files to keep; 0: all */
	bool is_synced;        /* fdatasync after every line */
	/* As of this process's last write. */
	off_t size;
	deadline_ns look_again; /* when to check what is at the path */
	char head[CHAIN_HEX + 1];
};

int journal_open(struct journal *j, const char *path, struct cordon_error **reterr);
/* sync: write everything to disk first; -errno if that failed. */
int journal_close(struct journal *j, bool sync);
/* line: a JSON object without its closing brace, sealed in place. On failure the file is
 * unchanged. */
int journal_append(struct journal *j, struct buf *line, struct cordon_error **reterr);
