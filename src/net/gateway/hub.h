/* net/gateway/hub.h - the gateway's inside: listeners in the guest's namespace, connections,
 * budgets. */
#pragma once

#include "base/json.h"
#include "base/loop.h"
#include "net/gateway/approval.h"
#include "net/gateway/bulk.h"
#include "net/gateway/config.h"
#include "net/gateway/confine.h"
#include "net/gateway/control.h"
#include "net/gateway/fake_address.h"
#include "net/gateway/host_request.h"
#include "net/gateway/resolve.h"
#include "net/gateway/stream.h"
#include "net/gateway/tls.h"

enum { HUB_LISTENERS = 200, HUB_TICK_MS = 100, HUB_DNS_MAX = 32 };

struct conn;

/* How the guest comes in. */
enum hub_front {
	FRONT_PROXY,  /* HTTP proxy and SOCKS5 on one port, told apart by the first byte */
	FRONT_DIRECT, /* to a synthetic address: the program knows nothing of a proxy */
	FRONT_DNS,
	FRONT_DNS_UDP,
	FRONT_ERRAND, /* the host program's own: whole URLs, https too, in plain words */
};

struct listener {
	struct hub *hub;
	int fd;
	enum hub_front front;
	struct loop_source *source;
};

struct hub {
	struct loop *loop;
	struct config config;
	struct control control;
	struct resolver *resolver;
	struct fake_address *fake_addresses;
	struct tls_store *tls; /* NULL: nothing was opened yet */
	struct listener listeners[HUB_LISTENERS];
	size_t listener_count;
	bool is_listening, is_naming; /* for connections; for names */
	bool has_v6;                  /* the guest's side has synthetic IPv6 addresses */
	int relay_fd;
	struct loop_source *relay, *tick;
	struct bulk_pool bulks;
	struct host_request *request; /* NULL: serves a guest */
	struct conn *conns;
	size_t conn_count, dns_count; /* those for names are counted by themselves */
	uint64_t next_id;
	struct approvals approvals;
	/* Of the running execution. */
	char execution[64];
	uint64_t total_bytes, denial_events;
	/* Since the start. */
	uint64_t allowed, denied, bytes_out, bytes_in;
};

/* Takes config and descriptors over. relay_fd: where the guest's half sends its listeners. */
int hub_new(struct loop *l, struct config *config, int control_fd, int relay_fd, struct hub **ret,
	    struct cordon_error **reterr);
struct hub *hub_free(struct hub *hub);
/* The first message to the host program: ports, authority, and how far the gateway is confined. */
void hub_tell_ready(struct hub *hub, const struct confine_result *confined);
/* Starts or stops taking connections, by how many there are. */
void hub_balance(struct hub *hub);
/* Counts payload against the execution's budget; false: it is used up. */
bool hub_spend(struct hub *hub, uint64_t bytes);
/* Before the first TLS of the gateway's own; does nothing the second time. */
int hub_open_tls(struct hub *hub, struct cordon_error **reterr);
/* True if requests to this host must be inspected. */
bool hub_must_inspect(const struct hub *hub, const struct host *h, bool by_rule);
