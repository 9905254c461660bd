/* net/gateway/config.h - the gateway's configuration: one JSON object, read from a descriptor at
 * the start. */
#pragma once

#include "base/json.h"
#include "net/gateway/address.h"
#include "net/gateway/host.h"
#include "net/gateway/rule.h"
#include "net/gateway/secret.h"

enum { CONFIG_MAX_BYTES = 4 << 20 };

struct config_pin {
	struct host name;
	struct address address;
};

struct config {
	struct ruleset *rules;
	struct secret_list secrets;
	uint64_t request_bytes, response_bytes, timeout_ms, tunnel_ms, connections, total_bytes;
	uint64_t approval_timeout_ms;
	bool callback;           /* the host program decides about every request */
	char *ca_file;           /* certificate authorities for servers; NULL: the system's */
	struct config_pin *pins; /* names with fixed addresses, never resolved */
	size_t pin_count;
	bool has_proxy; /* all connections go through the host's own proxy */
	struct host proxy;
	uint16_t proxy_port;
	char *proxy_authorization; /* "Basic …" or NULL */
	uint64_t uid, gid;         /* to switch to if root; 0: stay */
	json_t *fetch; /* serve one request of the host program (host_request.h) instead of a guest
			*/
};

int config_read(const json_t *obj, struct config *ret, struct cordon_error **reterr);
void config_done(struct config *c);
#define cleanup_config CLEANUP(config_done)
