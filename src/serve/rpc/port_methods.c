/* serve/rpc/port_methods.c - ports of a client's sessions that the host can connect to. */
#include <cordon/expose.h>

#include "serve/rpc/rpc.h"

#include "base/json.h"
#include "serve/rpc/target.h"

static int need_port(const struct request *q, unsigned *ret, struct cordon_error **reterr)
{
	uint64_t port = 0;

	if (!json_object_get(q->params, "port"))
		return err_set(reterr, CORDON_INVALID, "Missing required param: port");
	int r = target_uint(q, "port", &port, reterr);
	if (r == 0 && (port < 1 || port > UINT16_MAX))
		r = err_set(reterr, CORDON_INVALID, "/params/port must be a port, 1 to 65535");
	if (r == 0)
		*ret = (unsigned)port;
	return r;
}

static int expose(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_expose_options o = { 0 };
	cleanup_free char *address = NULL;
	uint64_t host_port = 0;
	unsigned port = 0;
	int r = need_port(q, &port, reterr);

	if (r == 0)
		r = target_uint(q, "host_port", &host_port, reterr);
	if (r == 0)
		r = target_string(q, "path", &o.path, reterr);
	if (r == 0 && host_port > UINT16_MAX)
		r = err_set(reterr, CORDON_INVALID, "/params/host_port must be at most 65535");
	if (json_object_get(q->params, "host_port")) /* 0: any free one */
		o.host_port = host_port ? (int)host_port : -1;
	if (r == 0)
		r = cordon_session_expose(q->cs->session, port, &o, &address, reterr);
	if (r < 0)
		return r;
	cleanup_json json_t *j = json_pack("{s:i, s:s}", "port", (int)port, "address", address);
	cleanup_free char *text = j ? json_text(j, NULL) : NULL;
	return text ? buf_add_str(ret, text) : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int unexpose(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	unsigned port = 0;
	int r = need_port(q, &port, reterr);

	if (r == 0)
		r = cordon_session_unexpose(q->cs->session, port, reterr);
	return r < 0 ? r : buf_add_str(ret, "{}");
}

static int exposed(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_free char *text = cordon_session_exposed(q->cs->session);

	return text ? buf_printf(ret, "{\"ports\":%s}", text)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

const struct rpc_method rpc_port_methods[] = {
	{ "session.expose", expose, RPC_SESSION, "port host_port path" },
	{ "session.unexpose", unexpose, RPC_SESSION, "port" },
	{ "session.exposed", exposed, RPC_SESSION, "" },
	{ 0 },
};
