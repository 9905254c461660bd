/* files/review.h - a project: runs code on a copy of a host directory, shows what changed, and
 * writes all or some of it back. */
#pragma once

#include "base/json.h"
#include "files/intake.h"
#include "files/nameset.h"
#include "files/workspace.h"

struct review;

struct review_options {
	const char *host_dir;
	struct workspace *ws;  /* must outlive the review, or its use until review_use() */
	const char *guest_dir; /* destination of the copy: "/workspace" */
	const struct strlist *leave_out; /* paths inside host_dir that are not copied; NULL: none */
	uint64_t max_bytes;              /* 0: the quota */
};

/* Copies the directory and remembers its state. */
int review_open(const struct review_options *o, struct review **ret, struct cordon_error **reterr);
struct review *review_close(struct review *r);

/* The files are in another workspace now. */
void review_use(struct review *r, struct workspace *ws);

/* JSON object, freed by the caller: {"added", "modified", "deleted", "changes": [{"path", "change":
 * added, modified, deleted, type or mode, "type", "old_type", "size", "old_size", "mode",
 * "old_mode", "lines_added", "lines_removed", "diff"}]}, sorted by path. */
int review_diff(struct review *r, char **ret_json, struct cordon_error **reterr);

/* Writes back the changes at these paths or beneath them. paths NULL: all, except files that git
 * would execute, which must be named. Each file is replaced in one step. Refuses files that also
 * changed on the host, and links that lead out. JSON, freed by the caller: {"applied": [path...],
 * "refused": [{"path", "reason"}...]}. */
int review_apply(struct review *r, const char *const *paths, size_t count, char **ret_json,
		 struct cordon_error **reterr);

DEFINE_FREEP(struct review *, review_close)
#define cleanup_review CLEANUP(review_closep)
