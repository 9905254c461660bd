/* net/gateway/hub.h - the state of the gateway: listeners in the guest's namespace, connections,
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

enum { HUB_LISTENERS = 200, HUB_REFUSALS = 2, HUB_TICK_MS = 100, HUB_DNS_MAX = 32 };

struct conn;

/* How a connection reaches the gateway. */
enum hub_front {
	FRONT_PROXY,  /* HTTP proxy and SOCKS5 on one port; the first byte tells which */
	FRONT_DIRECT, /* to a fake address: the program does not know of the proxy */
	FRONT_DNS,
	FRONT_DNS_UDP,
	FRONT_REFUSALS, /* no connections: copies of the kernel's refusals (refusals.c) */
	FRONT_HOST,     /* a request of the host program: whole URLs without TLS, also for https */
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
	struct tls_store *tls; /* NULL: not needed yet */
	struct listener listeners[HUB_LISTENERS];
	size_t listener_count;
	int refusal_fds[HUB_REFUSALS]; /* of IPv4 and IPv6; -1: the guest's side has none */
	bool is_listening, is_naming;  /* accepting connections; answering DNS */
	bool has_v6;                   /* the guest has fake IPv6 addresses */
	int relay_fd;
	struct loop_source *relay, *tick;
	struct bulk_pool bulks;
	struct host_request *request; /* NULL: serves a guest */
	struct conn *conns;
	size_t conn_count, dns_count; /* DNS connections are counted separately */
	uint64_t next_id;
	struct approvals approvals;
	/* About the running execution. */
	char execution[64];
	uint64_t total_bytes, denial_events;
	/* Totals since the start. */
	uint64_t allowed, denied, bytes_out, bytes_in;
};

/* Takes ownership of config and descriptors. relay_fd: where the guest's side sends its
 * listeners. */
int hub_new(struct loop *l, struct config *config, int control_fd, int relay_fd, struct hub **ret,
	    struct cordon_error **reterr);
struct hub *hub_free(struct hub *hub);
/* The first message to the host program: ports, certificate authority, and how the gateway is
 * confined. */
void hub_tell_ready(struct hub *hub, const struct confine_result *confined);
/* Accepts connections, or stops accepting them, depending on how many there are. */
void hub_balance(struct hub *hub);
/* Counts payload against the execution's budget; false: it is used up. */
bool hub_spend(struct hub *hub, uint64_t bytes);
/* Call before the gateway's first own TLS connection. Further calls do nothing. */
int hub_open_tls(struct hub *hub, struct cordon_error **reterr);
/* True if requests to this host must be inspected. */
bool hub_must_inspect(const struct hub *hub, const struct host *h, bool by_rule);
