/* serve/rpc/target.h - the target of a request (the session or pool that it names) and its
 * parameters. */
#pragma once

#include "serve/rpc/rpc.h"

/* Refuses unknown parameters: a misspelt one might be a restriction that the client relies on. */
int target_check_params(const struct request *q, struct cordon_error **reterr);
/* Finds the client session that the method needs. */
/* How many bytes may follow this message as an attachment; 0: it takes none. */
uint64_t target_value_bytes(struct rpc *c, const json_t *message);
int target_find(struct request *q, struct cordon_error **reterr);

/* Whether it is for a context, which the method finds itself because that may take a while. */
bool target_names_context(const struct request *q);
/* Its client session, with a reference. */
int target_context(const struct request *q, struct client_session **ret,
		   struct cordon_error **reterr);

/* Whether its session is being closed or replaced, so that a request must not go on waiting. */
bool target_is_leaving(const struct request *q);

/* The default sandbox that the request reserved could not be opened: there is none again. */
void target_fail_home(struct request *q);
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
