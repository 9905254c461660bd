/* files/tree_image.h - all files of a workspace at one moment, in the host's memory: what snapshots
 * keep and forks are made of. Functions return 0 or a negative errno, under the caller's lock. */
#pragma once

#include "files/content.h"
#include "files/listing.h"
#include "files/workspace.h"

struct tree_image {
	struct listing tree;       /* from the workspace's root: the three trees come first */
	struct content **contents; /* per entry: content, or target of a link, or NULL */
	uint32_t *same;     /* per entry: the first entry with the same inode; itself if alone */
	uint64_t bytes;     /* of all contents, shared or not */
	uint64_t new_bytes; /* of those that no earlier picture had */
};

/* base: an earlier image to share contents with, or NULL. max_new_bytes: -EDQUOT beyond. */
int tree_image_take(struct workspace *ws, const struct tree_image *base, uint64_t max_new_bytes,
		    struct tree_image **ret);
/* Names and links only, without the contents of files, and without directories that are too deep:
 * tree.deep_count of them. */
int tree_image_outline(struct workspace *ws, struct tree_image **ret);
/* Makes the workspace equal, by changing only what differs. from: where the contents of an outline
 * are; NULL for a whole picture. */
int tree_image_restore(const struct tree_image *image, struct workspace *from,
		       struct workspace *ws);
/* Accepts NULL; always returns NULL. ret_freed (may be NULL): bytes that nobody else shares. */
struct tree_image *tree_image_free(struct tree_image *image, uint64_t *ret_freed);

static inline void tree_image_freep(struct tree_image **p)
{
	*p = tree_image_free(*p, NULL);
}
#define cleanup_tree_image CLEANUP(tree_image_freep)
