/* files/tar.h - writing tar streams (POSIX pax; holes as GNU sparse 1.0). Reading foreign ones is
 * libarchive's work, in unpack.c. Functions return 0 or a negative errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/content.h"

typedef int (*tar_write_fn)(void *arg, const void *bytes, size_t len);

struct tar {
	tar_write_fn write;
	void *arg;
	uint64_t left;    /* bytes of the present entry still to come */
	uint64_t padding; /* and the zeros after them */
};

struct tar_entry {
	const char *name;
	uint32_t mode; /* with the type */
	uint64_t size; /* regular files */
	int64_t mtime_ns;
	const char *link; /* target of a symbolic link, or name of an earlier entry: a hard link */
	const struct content_extent *extents; /* sparse files: where data is; NULL: everywhere */
	size_t extent_count;
};

/* Directories, links and empty files are complete with this; the data of others follows. */
int tar_begin(struct tar *t, const struct tar_entry *e);
int tar_data(struct tar *t, const void *bytes, size_t len);
/* Fills what is missing with zeros: a file may have shrunk while it was read. */
int tar_end(struct tar *t);
int tar_finish(struct tar *t);
