/* files/plant.h - making files, directories and links at plain paths beneath a directory, never
 * through a link. What is in the way is removed. Functions return 0 or a negative errno. */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "files/place.h"

struct plant_dir {
	int base_fd;
	char *rel;
	uint32_t mode;
	int64_t mtime_ns;
};

struct plant {
	struct workspace *ws; /* NULL: a plain directory; only files and links are replaced */
	/* The directory used last: entries of one directory mostly follow each other. */
	int base_fd, parent_fd;
	char parent[PATH_MAX];
	/* Directories get their modes last, or nothing could be put into a closed one. */
	struct plant_dir *dirs;
	size_t dir_count, dir_cap;
};

void plant_init(struct plant *p, struct workspace *ws);
void plant_done(struct plant *p);

int plant_directory(struct plant *p, int base_fd, const char *rel, uint32_t mode, int64_t mtime_ns);
/* An empty file, opened for writing; its mode and time are set by plant_finish_file. */
int plant_file(struct plant *p, int base_fd, const char *rel);
int plant_finish_file(int fd, uint64_t size, uint32_t mode, int64_t mtime_ns);
int plant_link(struct plant *p, int base_fd, const char *rel, const char *target, int64_t mtime_ns);
/* A second name for the file at from_rel. */
int plant_hard_link(struct plant *p, int base_fd, const char *rel, int from_base_fd,
		    const char *from_rel);
/* Sets modes and times of the directories. */
int plant_finish(struct plant *p);
