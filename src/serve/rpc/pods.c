/* serve/rpc/pods.c - methods for the pod's image: its programs, and WASI programs added to it. */
#include <cordon/cordon.h>

#include "base/file.h"
#include "serve/rpc/payload.h"
#include "serve/rpc/target.h"

enum { MODULE_MAX = 256 << 20 };

static int list(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_free char *json = NULL;
	int r = cordon_pod_list(&json, reterr);

	(void)q;
	return r < 0 ? r : buf_add_str(ret, json);
}

static int add(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_pod_add_options options = { 0 };
	cleanup_buf struct buf module = { 0 };
	cleanup_close int fd = -1;
	const char *name = NULL;
	int r = target_need(q, "name", &name, reterr);

	buf_init(&module, MODULE_MAX);
	if (r == 0)
		r = target_bool(q, "replace", &options.replace, reterr);
	if (r == 0)
		r = target_uint(q, "timeout_ms", &options.timeout_ms, reterr);
	if (r == 0)
		r = payload_open(q, &fd, reterr);
	if (r == 0)
		r = file_read_to_end(fd, &module, reterr);
	if (r == 0)
		r = cordon_pod_add(name, module.data, module.len, &options, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

static int remove_command(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *name = NULL;
	int r = target_need(q, "name", &name, reterr);

	if (r == 0)
		r = cordon_pod_remove(name, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

const struct rpc_method rpc_pod_methods[] = {
	{ "pod.list", list, RPC_SLOW, "" },
	{ "pod.add", add, RPC_SLOW, "name data from replace timeout_ms" },
	{ "pod.remove", remove_command, RPC_SLOW, "name" },
	{ 0 },
};
