/* files/change.h - the differences between a directory as it was copied in and as it is now.
 * review.c finds them, apply.c writes them back. */
#pragma once

#include "files/intake.h"
#include "files/listing.h"
#include "files/nameset.h"
#include "files/review.h"

enum change_kind { CHANGE_ADDED, CHANGE_MODIFIED, CHANGE_DELETED, CHANGE_TYPE, CHANGE_MODE };

/* One entry as it was copied. */
struct change_origin {
	char *rel;
	uint32_t mode;
	uint64_t size;
	unsigned char hash[INTAKE_HASH_SIZE];
	bool is_seen;
};

struct change {
	enum change_kind kind;
	char *rel;
	const struct change_origin *was; /* NULL: added */
	uint32_t mode;                   /* current mode; 0: deleted */
	uint64_t size;
};

struct change_list {
	struct change *items;
	size_t count, cap;
};

struct review {
	struct workspace *ws;
	char *host_dir, *guest_dir;
	int host_fd;
	struct change_origin *origins;
	size_t origin_count, origin_cap;
	struct nameset index; /* path to index in origins, plus one */
};

/* Finds what has changed, sorted by path, and opens the directory of the copy, O_PATH. */
int change_look(struct review *r, int *ret_guest_fd, struct change_list *ret,
		struct cordon_error **reterr);
void change_list_done(struct change_list *l);
#define cleanup_change_list CLEANUP(change_list_done)
