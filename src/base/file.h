/* base/file.h - descriptors and files: whole reads and writes, lookups that cannot leave a tree. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/* Writes everything, waiting with poll on EAGAIN, or fails with the errno. */
int file_write_all(int fd, const void *bytes, size_t len); /* 0 or -errno */
ssize_t file_read_full(int fd, void *bytes, size_t len);   /* bytes read before EOF, or -errno */
/* Appends until EOF or until b is full (-CORDON_LIMIT). */
int file_read_to_end(int fd, struct buf *b, struct cordon_error **reterr);

/* Reads a regular file (or "-" for standard input) of at most max_bytes. The error for a directory,
 * a device or a larger file names it. */
int file_load(const char *path, size_t max_bytes, struct buf *ret, struct cordon_error **reterr);
/* A file that gets its name only when it is complete and on disk: written under a temporary name
 * beside it, then renamed. After a crash or on a full disk the old file is still there. */
struct file_draft {
	int fd; /* to write to */
	/* The rest is internal. */
	int dir_fd;
	const char *path, *name; /* owned by the caller */
	char *temporary;         /* NULL: already renamed */
};

int file_draft_open(struct file_draft *d, const char *path, struct cordon_error **reterr);
/* replaces false: an existing file of that name is EEXIST. */
int file_draft_publish(struct file_draft *d, mode_t mode, bool replaces,
		       struct cordon_error **reterr);
void file_draft_done(struct file_draft *d);
#define cleanup_file_draft CLEANUP(file_draft_done)

/* Creates or replaces a file atomically: temporary name beside it, fsync, rename. */
int file_save(const char *path, mode_t mode, const void *bytes, size_t len,
	      struct cordon_error **reterr);

int file_set_nonblock(int fd, bool on); /* 0 or -errno */
/* A file without a name to write and read, for what may be large and many at once: on disk, in
 * TMPDIR or /var/tmp; in memory where that is not possible. A descriptor, or -errno. */
int file_scratch(void);
/* An anonymous, sealed, read-only file with these bytes (memfd). */
int file_from_bytes(const char *name, const void *bytes, size_t len, int *ret_fd,
		    struct cordon_error **reterr);
