/* files/tree_image.h - all files of a workspace at one moment, in the host's memory. Snapshots keep
 * these and forks are made from them. Functions return 0 or a negative errno; the caller holds a
 * lock. */
#pragma once

#include "files/content.h"
#include "files/listing.h"
#include "files/workspace.h"

struct tree_image {
	struct listing tree; /* from the workspace's root; the three trees come first */
	struct content *
		*contents;  /* per entry: a file's content or a link's target; NULL: neither */
	uint32_t *same;     /* per entry: the first entry with the same inode, or itself */
	uint64_t bytes;     /* of all contents, shared or not */
	uint64_t new_bytes; /* of contents that no earlier image has */
};

/* base: an earlier image to share contents with, or NULL. max_new_bytes: more gives -EDQUOT. */
int tree_image_take(struct workspace *ws, const struct tree_image *base, uint64_t max_new_bytes,
		    struct tree_image **ret);
/* Takes names and links only, without file contents, and without tree.deep_count directories that
 * are too deep. */
int tree_image_outline(struct workspace *ws, struct tree_image **ret);
/* Makes the workspace equal to the image; changes only what differs. from: the workspace with the
 * contents of an outline; NULL: the image has them. */
int tree_image_restore(const struct tree_image *image, struct workspace *from,
		       struct workspace *ws);
/* Accepts NULL; always returns NULL. ret_freed (may be NULL): bytes that no other image shares. */
struct tree_image *tree_image_free(struct tree_image *image, uint64_t *ret_freed);

static inline void tree_image_freep(struct tree_image **p)
{
	*p = tree_image_free(*p, NULL);
}
#define cleanup_tree_image CLEANUP(tree_image_freep)
