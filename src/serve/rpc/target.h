/* serve/rpc/target.h - what a request works on: the session or pool it names, and its parameters.
 */
#pragma once

#include "serve/rpc/rpc.h"

/* Refuses parameters that the method does not know: a word that was misspelt might be what the
 * client relies on. */
int target_check_params(const struct request *q, struct cordon_error **reterr);
/* Finds the client session the request's method needs. */
int target_find(struct request *q, struct cordon_error **reterr);

/* Ends the session that the request works on. */
void target_close(struct request *q);

/* Parameters by name; a missing one that is needed is "Missing required param: NAME". */
int target_string(const struct request *q, const char *key, const char **ret,
		  struct cordon_error **reterr);
int target_need(const struct request *q, const char *key, const char **ret,
		struct cordon_error **reterr);
int target_uint(const struct request *q, const char *key, uint64_t *ret,
		struct cordon_error **reterr);
int target_bool(const struct request *q, const char *key, bool *ret, struct cordon_error **reterr);
/* {path, files: {name: base64}} as the policy's mounts, one for every file, by value. */
int target_add_mount(json_t *mounts, const json_t *mount, struct cordon_error **reterr);
