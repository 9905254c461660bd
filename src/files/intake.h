/* files/intake.h - copies a file or directory of the host into a workspace, or into a directory
 * that becomes a mount. Links are copied as links and never followed. */
#pragma once

#include "base/str.h"
#include "files/workspace.h"

enum { INTAKE_HASH_SIZE = 32 };

/* One copied entry. rel is "" for a single file. hash: of a file's content or a link's target, zero
 * for directories. A return value other than 0 ends the copy and is returned. */
struct intake_entry {
	const char *rel;
	uint32_t mode; /* including the type */
	uint64_t size;
	int64_t mtime_ns;
	unsigned char hash[INTAKE_HASH_SIZE];
};
typedef int (*intake_entry_fn)(const struct intake_entry *e, void *arg);

struct intake_options {
	const char *host_path; /* absolute or relative to the working directory, without ".." */
	/* The destination: a guest path of a workspace, whose parents are created; or a directory
	 * descriptor and a plain name in it, created under these ids. */
	struct workspace *ws;
	const char *guest_path;
	int dir_fd;
	uid_t owner_uid;
	gid_t owner_gid;
	const struct strlist *leave_out; /* paths inside host_path to skip; NULL: none */
	bool links_may_lead_out; /* otherwise a link that leads out of host_path is refused */
	uint64_t max_bytes;      /* 0: only the quota limits it */
	intake_entry_fn seen;    /* NULL: none; hashes are computed only if set */
	void *arg;
};

int intake_copy(const struct intake_options *o, struct cordon_error **reterr);

/* Whether a link at rel (a path inside a tree) with this target stays in the tree. */
bool intake_link_stays(const char *rel, const char *target);
/* BLAKE2b of the rest of the file. 0 or -errno. */
int intake_hash_fd(int fd, unsigned char ret[static INTAKE_HASH_SIZE]);
void intake_hash_bytes(const void *bytes, size_t len, unsigned char ret[static INTAKE_HASH_SIZE]);
