/* cli/asked.h - what the user answered to `cordon run --ask` for a file. One file of the
 * configuration for each path, which counts only for the same content. */
#pragma once

#include "base/json.h"

struct asked {
	char *folder, *name;     /* where it is kept; folder NULL: nowhere */
	char *path;              /* of the code's file, absolute */
	char sha256[65];         /* of its content */
	json_t *allowed, *never; /* denials */
	bool is_outdated;        /* there were answers, for another content */
};

/* Fills *ret (uninitialised memory) with the answers for the file, if there are any. */
int asked_load(struct asked *ret, const char *file, const void *content, size_t len,
	       struct cordon_error **reterr);
void asked_done(struct asked *a);
#define cleanup_asked CLEANUP(asked_done)

int asked_save(const struct asked *a, struct cordon_error **reterr);
/* Whether one of them has the same operation and target. */
bool asked_has(const json_t *denials, const json_t *denial);
/* Adds what matters of a denial; 0 or -CORDON_NOMEM. */
int asked_add(json_t *denials, const json_t *denial);
