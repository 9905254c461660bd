/* serve/rpc/target.h - the target of a request (the session or pool that it names) and its
 * parameters. */
#pragma once

#include "serve/rpc/rpc.h"

/* Refuses unknown parameters: a misspelt one might be a restriction that the client relies on. */
int target_check_params(const struct request *q, struct cordon_error **reterr);
/* Finds the client session that the method needs. */
int target_find(struct request *q, struct cordon_error **reterr);

/* Ends the session that the request names. */
void target_close(struct request *q);

/* Parameters by name. If a required one is missing, the error is "Missing required param: NAME". */
int target_string(const struct request *q, const char *key, const char **ret,
		  struct cordon_error **reterr);
int target_need(const struct request *q, const char *key, const char **ret,
		struct cordon_error **reterr);
int target_uint(const struct request *q, const char *key, uint64_t *ret,
		struct cordon_error **reterr);
int target_bool(const struct request *q, const char *key, bool *ret, struct cordon_error **reterr);
/* Adds {path, files: {name: base64}} to the policy's mounts, one mount per file, by value. */
int target_add_mount(json_t *mounts, const json_t *mount, struct cordon_error **reterr);
