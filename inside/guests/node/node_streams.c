/* inside/guests/node/node_streams.c - what JavaScript cannot do: descriptors (inside/lib/streams.c)
 * and interrupts. Declares the needed part of Node's stable C interface, so Node's headers are not
 * needed to build this. */
#include "inside/lib/streams.h"

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "inside/guests/node/interrupt.h"
#include "inside/guests/node/node_buffer.h"

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

int napi_get_value_bool(struct napi_env *env, struct napi_value *value, bool *ret);
int napi_get_value_string_utf8(struct napi_env *env, struct napi_value *value, char *buf,
			       size_t size, size_t *ret_len);
int napi_create_string_utf8(struct napi_env *env, const char *text, size_t len,
			    struct napi_value **ret);
int napi_call_function(struct napi_env *env, struct napi_value *this, struct napi_value *f,
		       size_t count, struct napi_value *const *args, struct napi_value **ret);
int napi_get_and_clear_last_exception(struct napi_env *env, struct napi_value **ret);
int napi_create_int32(struct napi_env *env, int value, struct napi_value **ret);
int napi_get_value_int64(struct napi_env *env, struct napi_value *value, int64_t *ret);
int napi_get_buffer_info(struct napi_env *env, struct napi_value *value, void **ret,
			 size_t *ret_len);
int napi_get_undefined(struct napi_env *env, struct napi_value **ret);

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

/* ---- interrupts */

static struct napi_value *argument(struct napi_env *env, struct napi_info *info)
{
	struct napi_value *arg = NULL;
	size_t count = 1;

	(void)napi_get_cb_info(env, info, &count, &arg, NULL, NULL);
	return arg;
}

static struct napi_value *boolean(struct napi_env *env, bool value)
{
	struct napi_value *out = NULL;

	(void)napi_get_boolean(env, value, &out);
	return out;
}

/* Why code cannot be interrupted here; undefined: it can. */
static struct napi_value *watch(struct napi_env *env, struct napi_info *info)
{
	struct napi_value *out = NULL;
	char reason[200] = "";

	(void)info;
	if (!interrupt_watch(reason, sizeof(reason)))
		(void)napi_create_string_utf8(env, reason, (size_t)-1, &out);
	return out;
}

static struct napi_value *begin(struct napi_env *env, struct napi_info *info)
{
	char id[24] = "";

	if (napi_get_value_string_utf8(env, argument(env, info), id, sizeof(id), NULL) == 0)
		interrupt_begin(id);
	return NULL;
}

static struct napi_value *end(struct napi_env *env, struct napi_info *info)
{
	(void)info;
	return boolean(env, interrupt_end());
}

static struct napi_value *say(struct napi_env *env, struct napi_info *info)
{
	bool is_saying = true;

	(void)napi_get_value_bool(env, argument(env, info), &is_saying);
	interrupt_say(is_saying);
	return NULL;
}

static struct napi_value *hold(struct napi_env *env, struct napi_info *info)
{
	bool is_held = true;

	(void)napi_get_value_bool(env, argument(env, info), &is_held);
	return boolean(env, interrupt_hold(is_held));
}

static struct napi_value *tell(struct napi_env *env, struct napi_info *info)
{
	(void)env;
	(void)info;
	interrupt_tell();
	return NULL;
}

/* Whether the wire has something to read. */
static struct napi_value *has_mail(struct napi_env *env, struct napi_info *info)
{
	struct pollfd p = { .fd = 3, .events = POLLIN };

	(void)info;
	return boolean(env, poll(&p, 1, 0) > 0);
}

/* ---- binary columns */

static int received = -1; /* the last descriptor that came */

/* receiveInto(buffer): how many bytes came. */
static struct napi_value *receive_into(struct napi_env *env, struct napi_info *info)
{
	struct napi_value *out = NULL;
	void *data = NULL;
	size_t len = 0;
	int n = -1;

	if (napi_get_buffer_info(env, argument(env, info), &data, &len) == 0)
		n = buffer_receive(data, len, &received);
	(void)napi_create_int32(env, n, &out);
	return out;
}

/* takeDescriptor(): the one that came; -1: none. */
static struct napi_value *take_descriptor(struct napi_env *env, struct napi_info *info)
{
	struct napi_value *out = NULL;

	(void)info;
	(void)napi_create_int32(env, received, &out);
	received = -1;
	return out;
}

/* fillFile(fd, at, buffer): whether it was copied. */
static struct napi_value *fill_file(struct napi_env *env, struct napi_info *info)
{
	struct napi_value *args[3] = { NULL, NULL, NULL };
	size_t count = 3, len = 0;
	void *data = NULL;
	int64_t at = 0;
	int fd = -1;

	bool good = napi_get_cb_info(env, info, &count, args, NULL, NULL) == 0 && count == 3 &&
		    napi_get_value_int32(env, args[0], &fd) == 0 &&
		    napi_get_value_int64(env, args[1], &at) == 0 && at >= 0 &&
		    napi_get_buffer_info(env, args[2], &data, &len) == 0;
	return boolean(env, good && buffer_fill(fd, (size_t)at, data, len));
}

/* Calls a function that throws nothing; false: V8 was made to end it. Held from then on. */
static struct napi_value *guard(struct napi_env *env, struct napi_info *info)
{
	struct napi_value *this = NULL, *ignored = NULL;

	(void)napi_get_undefined(env, &this);
	int r = napi_call_function(env, this, argument(env, info), 0, NULL, &ignored);
	(void)interrupt_hold(true);
	if (r != 0)
		(void)napi_get_and_clear_last_exception(env, &ignored);
	return boolean(env, r == 0);
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
			  { "takeInput", take_input },
			  { "watch", watch },
			  { "begin", begin },
			  { "end", end },
			  { "hold", hold },
			  { "say", say },
			  { "tell", tell },
			  { "hasMail", has_mail },
			  { "receiveInto", receive_into },
			  { "takeDescriptor", take_descriptor },
			  { "fillFile", fill_file },
			  { "guard", guard } };
	struct napi_value *f = NULL;

	streams_keep();
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (napi_create_function(env, functions[i].name, (size_t)-1, functions[i].call,
					 NULL, &f) == 0)
			(void)napi_set_named_property(env, exports, functions[i].name, f);
	return exports;
}
