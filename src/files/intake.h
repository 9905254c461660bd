/* files/intake.h - copying a file or directory of the host into a workspace, or into a directory
 * that becomes a mount. Links are never followed: what they lead to is not copied. */
#pragma once

#include "base/str.h"
#include "files/workspace.h"

enum { INTAKE_HASH_SIZE = 32 };

/* One entry that was copied. rel is "" for a single file. hash: of a file's content or a link's
 * target, zero for directories. Other than 0 ends the copy and is returned. */
struct intake_entry {
	const char *rel;
	uint32_t mode; /* with the type */
	uint64_t size;
	int64_t mtime_ns;
	unsigned char hash[INTAKE_HASH_SIZE];
};
typedef int (*intake_entry_fn)(const struct intake_entry *e, void *arg);

struct intake_options {
	const char *host_path; /* absolute or relative to the working directory, without ".." */
	/* Where to: a guest path of a workspace, whose parents are made; or a directory descriptor
	 * and a plain name beneath it, made under these ids. */
	struct workspace *ws;
	const char *guest_path;
	int dir_fd;
	uid_t owner_uid;
	gid_t owner_gid;
	const struct strlist *leave_out; /* paths inside host_path; NULL: none */
	bool links_may_lead_out;         /* else a link that leads out of host_path is refused */
	uint64_t max_bytes;              /* 0: no limit but the quota */
	intake_entry_fn seen;            /* NULL: none; hashes are computed only for it */
	void *arg;
};

int intake_copy(const struct intake_options *o, struct cordon_error **reterr);

/* Whether a link at rel (a path inside a tree) with this target stays inside the tree. */
bool intake_link_stays(const char *rel, const char *target);
/* BLAKE2b of all that is still to be read. 0 or -errno. */
int intake_hash_fd(int fd, unsigned char ret[static INTAKE_HASH_SIZE]);
void intake_hash_bytes(const void *bytes, size_t len, unsigned char ret[static INTAKE_HASH_SIZE]);
