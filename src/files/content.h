/* files/content.h - the content of one file, kept in the host's memory and shared by all tree
 * images in which it is the same. Functions return 0 or a negative errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTENT_CHUNK = 256 * 1024 };

struct content_extent {
	uint64_t offset, len;
};

struct content {
	uint32_t refs; /* not atomic: whoever shares contents has a lock */
	bool is_mapped;
	uint64_t size; /* of the file; what no extent covers is a hole */
	size_t len;    /* of data: the extents, one after the other */
	char *data;
	struct content_extent *extents; /* NULL: one, all of the file */
	size_t extent_count;
};

/* Reads a file of that size and number of 512-byte blocks. like: what it held the last time (may be
 * NULL); when nothing changed the result is a new reference to it. Contents are compared, never
 * times: a tmpfs does not change them when a file is written through a mapping.
 * scratch: CONTENT_CHUNK bytes. max: -EDQUOT beyond. */
int content_read(int fd, uint64_t size, uint64_t blocks, struct content *like, char *scratch,
		 uint64_t max, struct content **ret);
int content_from_bytes(const char *bytes, size_t len, struct content **ret);
/* Makes the file, opened for reading and writing, hold this; writes only where it differs. */
int content_sync(const struct content *b, int fd, uint64_t current_size, char *scratch);

struct content *content_ref(struct content *b);
/* Accepts NULL; always returns NULL. */
struct content *content_unref(struct content *b);
