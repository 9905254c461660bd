/* inside/guests/node/node_streams.c - inside/lib/streams.c for JavaScript, which has no dup2().
 * Declares the needed part of Node's stable C interface, so Node's headers are not needed to build
 * this. */
#include "inside/lib/streams.h"

#include <stddef.h>

struct napi_env;
struct napi_value;
struct napi_info;
typedef struct napi_value *(*napi_callback)(struct napi_env *env, struct napi_info *info);

int napi_create_function(struct napi_env *env, const char *name, size_t len, napi_callback call,
			 void *data, struct napi_value **ret);
int napi_set_named_property(struct napi_env *env, struct napi_value *object, const char *name,
			    struct napi_value *value);
int napi_get_boolean(struct napi_env *env, bool value, struct napi_value **ret);
int napi_get_cb_info(struct napi_env *env, struct napi_info *info, size_t *count,
		     struct napi_value **args, struct napi_value **this, void **data);
int napi_get_value_int32(struct napi_env *env, struct napi_value *value, int *ret);

static struct napi_value *mend_input(struct napi_env *env, struct napi_info *info)
{
	struct napi_value *out = NULL;

	(void)info;
	(void)napi_get_boolean(env, streams_mend_input(), &out);
	return out;
}

static struct napi_value *mend_output(struct napi_env *env, struct napi_info *info)
{
	struct napi_value *out = NULL;

	(void)info;
	(void)napi_get_boolean(env, streams_mend_output(), &out);
	return out;
}

static struct napi_value *take_input(struct napi_env *env, struct napi_info *info)
{
	struct napi_value *arg = NULL;
	size_t count = 1;
	int fd;

	if (napi_get_cb_info(env, info, &count, &arg, NULL, NULL) == 0 && count == 1 &&
	    napi_get_value_int32(env, arg, &fd) == 0 && fd >= 0)
		streams_take_input(fd);
	return NULL;
}

__attribute__((visibility("default"))) struct napi_value *
napi_register_module_v1(struct napi_env *env, struct napi_value *exports);

struct napi_value *napi_register_module_v1(struct napi_env *env, struct napi_value *exports)
{
	static const struct {
		const char *name;
		napi_callback call;
	} functions[] = { { "mendInput", mend_input },
			  { "mendOutput", mend_output },
			  { "takeInput", take_input } };
	struct napi_value *f = NULL;

	streams_keep();
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (napi_create_function(env, functions[i].name, (size_t)-1, functions[i].call,
					 NULL, &f) == 0)
			(void)napi_set_named_property(env, exports, functions[i].name, f);
	return exports;
}
