/* files/listing.h - all that is in a tree at one moment, in breadth-first order and sorted in each
 * directory: the children of one directory stand together. Holds one descriptor at a time, so depth
 * is limited by PATH_MAX alone. Functions return 0 or a negative errno. */
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
	uint32_t mode; /* with the type; as it was before the listing opened anything */
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
	uint32_t *opened; /* directories whose mode had to be widened to look inside */
	size_t opened_count, opened_cap;
	bool leaves_deep;    /* out, and counts them, instead of failing */
	size_t deep_count;   /* directories whose path does not fit */
	uint32_t deep_above; /* the entry that the first of them is in */
};

/* tops: names in base_fd (or "."), each a directory. forced: also into directories that their owner
 * cannot read; listing_done puts their modes back. Names of staged files are left out.
 * -E2BIG: too many entries; -ENAMETOOLONG: too deep. */
int listing_read(struct listing *l, int base_fd, const char *const *tops, size_t top_count,
		 bool forced);
/* The same, forced, without directories that are too deep: deep_count of them. */
int listing_read_most(struct listing *l, int base_fd, const char *const *tops, size_t top_count);
/* Puts the modes back and lets go of base_fd; the entries stay. */
void listing_close(struct listing *l);
void listing_done(struct listing *l);
#define cleanup_listing CLEANUP(listing_done)

const char *listing_name(const struct listing *l, size_t index);
/* Path from base_fd. False: does not fit. */
bool listing_path(const struct listing *l, size_t index, size_t size, char *ret);
