/* files/picture.h - all files of a workspace at one moment, in the host's memory: what snapshots
 * keep and forks are made of. Functions return 0 or a negative errno, under the caller's lock. */
#pragma once

#include "files/content.h"
#include "files/listing.h"
#include "files/workspace.h"

struct picture {
	struct listing tree;       /* from the workspace's root: the three trees come first */
	struct content **contents; /* per entry: content, or target of a link, or NULL */
	uint32_t *same;     /* per entry: the first entry with the same inode; itself if alone */
	uint64_t bytes;     /* of all contents, shared or not */
	uint64_t new_bytes; /* of those that no earlier picture had */
};

/* base: an earlier picture to share with, or NULL. max_new_bytes: -EDQUOT beyond. */
int picture_take(struct workspace *ws, const struct picture *base, uint64_t max_new_bytes,
		 struct picture **ret);
/* Names and links only, without the contents of files, and without directories that are too deep:
 * tree.deep_count of them. */
int picture_outline(struct workspace *ws, struct picture **ret);
/* Makes the workspace equal, by changing only what differs. from: where the contents of an outline
 * are; NULL for a whole picture. */
int picture_restore(const struct picture *p, struct workspace *from, struct workspace *ws);
/* Accepts NULL; always returns NULL. ret_freed (may be NULL): bytes that nobody else shares. */
struct picture *picture_free(struct picture *p, uint64_t *ret_freed);

static inline void picture_freep(struct picture **p)
{
	*p = picture_free(*p, NULL);
}
#define cleanup_picture CLEANUP(picture_freep)
