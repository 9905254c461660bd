/* files/listing.h - all entries of a tree at one moment, in breadth-first order, sorted by name
 * within a directory. So the children of a directory are contiguous. Uses one descriptor at a time,
 * so only PATH_MAX limits the depth. Functions return 0 or a negative errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"

enum { LISTING_MAX_ENTRIES = 1 << 20, LISTING_NO_PARENT = -1 };

struct listing_entry {
	int32_t parent;
	uint32_t name; /* offset into names */
	uint32_t first_child, child_count;
	uint32_t mode; /* including the type; as before the listing widened any mode */
	uint32_t nlink;
	uint64_t size, blocks, ino;
	int64_t mtime_ns;
};

struct listing {
	int base_fd; /* borrowed */
	struct listing_entry *entries;
	size_t count, cap;
	char *names;
	size_t names_len, names_cap;
	uint32_t *opened; /* directories whose mode was widened to read them */
	size_t opened_count, opened_cap;
	bool leaves_deep;    /* too deep directories are left out and counted; otherwise they are an
				error */
	size_t deep_count;   /* directories whose path is too long */
	uint32_t deep_above; /* the entry that contains the first of them */
};

/* tops: names in base_fd (or "."), each a directory. forced: also reads directories that their
 * owner cannot read; listing_done restores their modes. Staged files are left out. -E2BIG: too many
 * entries; -ENAMETOOLONG: too deep. */
int listing_read(struct listing *l, int base_fd, const char *const *tops, size_t top_count,
		 bool forced);
/* The same, forced, leaving out deep_count directories that are too deep. */
int listing_read_most(struct listing *l, int base_fd, const char *const *tops, size_t top_count);
/* Restores the modes and drops base_fd. The entries stay. */
void listing_close(struct listing *l);
void listing_done(struct listing *l);
#define cleanup_listing CLEANUP(listing_done)

const char *listing_name(const struct listing *l, size_t index);
/* Path from base_fd. False: too long. */
bool listing_path(const struct listing *l, size_t index, size_t size, char *ret);
