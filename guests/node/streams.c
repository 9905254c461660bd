/* guests/node/streams.c - guests/lib/streams.c for JavaScript, which has no dup2(). Node's stable
 * interface for C is declared here in part: its headers are not needed to build this. */
#include "../lib/streams.h"

#include <stddef.h>

typedef struct napi_env_s *napi_env;
typedef struct napi_value_s *napi_value;
typedef struct napi_info_s *napi_info;
typedef napi_value (*napi_callback)(napi_env env, napi_info info);

int napi_create_function(napi_env env, const char *name, size_t len, napi_callback call, void *data,
			 napi_value *ret);
int napi_set_named_property(napi_env env, napi_value object, const char *name, napi_value value);
int napi_get_boolean(napi_env env, bool value, napi_value *ret);
int napi_get_cb_info(napi_env env, napi_info info, size_t *count, napi_value *args,
		     napi_value *this, void **data);
int napi_get_value_int32(napi_env env, napi_value value, int *ret);

static napi_value mend_input(napi_env env, napi_info info)
{
	napi_value out = NULL;

	(void)info;
	(void)napi_get_boolean(env, streams_mend_input(), &out);
	return out;
}

static napi_value mend_output(napi_env env, napi_info info)
{
	napi_value out = NULL;

	(void)info;
	(void)napi_get_boolean(env, streams_mend_output(), &out);
	return out;
}

static napi_value take_input(napi_env env, napi_info info)
{
	napi_value arg = NULL;
	size_t count = 1;
	int fd;

	if (napi_get_cb_info(env, info, &count, &arg, NULL, NULL) == 0 && count == 1 &&
	    napi_get_value_int32(env, arg, &fd) == 0 && fd >= 0)
		streams_take_input(fd);
	return NULL;
}

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env,
									  napi_value exports);

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	static const struct {
		const char *name;
		napi_callback call;
	} functions[] = { { "mendInput", mend_input },
			  { "mendOutput", mend_output },
			  { "takeInput", take_input } };
	napi_value f = NULL;

	streams_keep();
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (napi_create_function(env, functions[i].name, (size_t)-1, functions[i].call,
					 NULL, &f) == 0)
			(void)napi_set_named_property(env, exports, functions[i].name, f);
	return exports;
}
