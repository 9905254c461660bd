/* files/tar.h - writes tar streams (POSIX pax; holes as GNU sparse 1.0). unpack.c reads foreign
 * ones with libarchive. Functions return 0 or a negative errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/content.h"

typedef int (*tar_write_fn)(void *arg, const void *bytes, size_t len);

struct tar {
	tar_write_fn write;
	void *arg;
	uint64_t left;    /* bytes of the current entry still to come */
	uint64_t padding; /* zeros after them */
};

struct tar_entry {
	const char *name;
	uint32_t mode; /* including the type */
	uint64_t size; /* regular files */
	int64_t mtime_ns;
	const char *
		link; /* target of a symbolic link; for a hard link, the name of an earlier entry */
	const struct content_extent *extents; /* sparse files: where data is; NULL: everywhere */
	size_t extent_count;
};

/* Directories, links and empty files are complete after this. For others, the data follows. */
int tar_begin(struct tar *t, const struct tar_entry *e);
int tar_data(struct tar *t, const void *bytes, size_t len);
/* Pads with zeros if data is missing: the file may have shrunk while it was read. */
int tar_end(struct tar *t);
int tar_finish(struct tar *t);
