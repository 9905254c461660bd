/* files/content.h - the content of one file in the host's memory, shared by all tree images that
 * contain it. Functions return 0 or a negative errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTENT_CHUNK = 256 * 1024 };

struct content_extent {
	uint64_t offset, len;
};

struct content {
	uint32_t refs; /* not atomic: all who share contents hold a lock */
	bool is_mapped;
	uint64_t size; /* of the file; holes are outside all extents */
	size_t len;    /* of data, which holds the extents one after the other */
	char *data;
	struct content_extent *extents; /* NULL: a single one, the whole file */
	size_t extent_count;
};

/* Reads a file of that size and number of 512-byte blocks. like: its last content, or NULL; if
 * nothing changed, the result is a new reference to it. Compares contents, never times, because a
 * tmpfs does not update times when a file is written through a mapping. scratch: CONTENT_CHUNK
 * bytes. max: more gives -EDQUOT. */
int content_read(int fd, uint64_t size, uint64_t blocks, struct content *like, char *scratch,
		 uint64_t max, struct content **ret);
int content_from_bytes(const char *bytes, size_t len, struct content **ret);
/* Gives the file, opened for reading and writing, this content. Writes only where it differs. */
int content_sync(const struct content *b, int fd, uint64_t current_size, char *scratch);

struct content *content_ref(struct content *b);
/* Accepts NULL; always returns NULL. */
struct content *content_unref(struct content *b);
