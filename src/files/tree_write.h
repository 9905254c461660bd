/* files/tree_write.h - creates files, directories and links at plain paths beneath a directory,
 * never through a link. Replaces existing entries. Functions return 0 or a negative errno. */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "files/path_lookup.h"

struct tree_write_dir {
	int base_fd;
	char *rel;
	uint32_t mode;
	int64_t mtime_ns;
};

struct tree_write {
	struct workspace
		*ws; /* NULL: an ordinary directory, where only files and links are replaced */
	/* The last directory, kept open because entries of one directory usually follow each
	 * other. */
	int base_fd, parent_fd;
	char parent[PATH_MAX];
	/* Directories get their modes last, because a mode could prevent creating files in them. */
	struct tree_write_dir *dirs;
	size_t dir_count, dir_cap;
};

void tree_write_init(struct tree_write *w, struct workspace *ws);
void tree_write_done(struct tree_write *w);

int tree_write_directory(struct tree_write *w, int base_fd, const char *rel, uint32_t mode,
			 int64_t mtime_ns);
/* An empty file, opened for writing. tree_write_finish_file sets its mode and time. */
int tree_write_file(struct tree_write *w, int base_fd, const char *rel);
int tree_write_finish_file(int fd, uint64_t size, uint32_t mode, int64_t mtime_ns);
int tree_write_link(struct tree_write *w, int base_fd, const char *rel, const char *target,
		    int64_t mtime_ns);
/* Adds a name for the file at from_rel. */
int tree_write_hard_link(struct tree_write *w, int base_fd, const char *rel, int from_base_fd,
			 const char *from_rel);
/* Sets modes and times of the directories. */
int tree_write_finish(struct tree_write *w);
