/* net/host/gateway.h - starts a session's gateway, from the host program. docs/gateway.md says what
 * the wall must set up around it. */
#pragma once

#include <sys/types.h>

#include "base/json.h"
#include "policy/policy.h"

#define GATEWAY_PROXY_URL "http://127.0.0.1:3128"
/* /etc/resolv.conf of the guest. use-vc: DNS over TCP, so no datagram socket is needed. */
#define GATEWAY_RESOLV_CONF "nameserver 127.0.0.1\noptions use-vc timeout:5 attempts:1\n"

struct gateway;

/* One audit event: "network.request" or "network.denied". docs/gateway.md lists the fields. */
typedef void (*gateway_event_fn)(const json_t *event, void *arg);
/* A request that waits for a decision: {"host", "port", "method", "path", "tls", "headers"}. Answer
 * with gateway_answer(), from within this callback or later. */
typedef void (*gateway_ask_fn)(uint64_t id, const json_t *request, void *arg);

/* The decision is no longer needed: it was made, its time is up, or the client left. */
typedef void (*gateway_over_fn)(uint64_t id, void *arg);

struct gateway_options {
	const struct policy *policy; /* network, secrets, approval_timeout_ms */
	const char *program;         /* path of cordon-gateway; NULL: looked for */
	const char *ca_file;         /* trusted authorities for servers; NULL: the system's */
	const char *upstream_proxy;  /* the host's own proxy, "http://…"; NULL: the policy's */
	const json_t *resolve;       /* {"name": ["address", …]}, never looked up; NULL: none */
	uid_t uid;                   /* to switch to if root; 0: stay */
	gid_t gid;
	const json_t
		*fetch; /* one request of the host itself (net/host/fetch.h); NULL: serve a guest */
	bool callback;  /* call `ask` for every request, whatever "ask" in the policy says */
	gateway_event_fn event;
	gateway_ask_fn ask;   /* NULL: requests that need a decision are denied */
	gateway_over_fn over; /* NULL: not needed */
	void *arg;
};

/* True if the policy opens any network. */
bool gateway_is_needed(const struct policy *p);

/* Starts the process and waits until it is ready (a few milliseconds). */
int gateway_start(const struct gateway_options *options, struct gateway **ret,
		  struct cordon_error **reterr);
/* Whether a gateway started now with these options would be the same as g, which still runs and has
 * served nobody yet. Secrets, rules, limits, uid, program and environment count. */
bool gateway_is_fresh(struct gateway *g, const struct gateway_options *options);
/* Gives a gateway that was started without callbacks those of its session. */
void gateway_attach(struct gateway *g, const struct gateway_options *options);
/* Ends the gateway after delivering its pending events. Accepts NULL; returns NULL. */
struct gateway *gateway_stop(struct gateway *g);
DEFINE_FREEP(struct gateway *, gateway_stop)
#define cleanup_gateway CLEANUP(gateway_stopp)

/* For relay_open() in the guest's namespace: the descriptor to send the sockets to, and the ports
 * to open. */
int gateway_relay_fd(const struct gateway *g);
size_t gateway_ports(const struct gateway *g, const uint16_t **ret);
/* Call when the wall has its own copy. Otherwise the gateway cannot notice that the relay is
 * gone. */
void gateway_close_relay(struct gateway *g);

/* The authority that the guest must trust, PEM. NULL: the gateway terminates no TLS. */
const char *gateway_authority(const struct gateway *g);
/* Adds HTTP_PROXY and similar variables, and those that make programs trust bundle_path: a file
 * with the system's authorities and the gateway's own. NULL: no such file. Existing entries are
 * kept. */
int gateway_add_environment(const char *bundle_path, struct strlist *env,
			    struct cordon_error **reterr);

/* Poll this for reading, then call gateway_dispatch(), which reads messages and calls back. Returns
 * 0, or -CORDON_STATE if the gateway is gone. */
int gateway_fd(const struct gateway *g);
int gateway_dispatch(struct gateway *g, struct cordon_error **reterr);
/* Waits until the gateway has the relay's sockets, or timeout_ms have passed. */
int gateway_wait_relay(struct gateway *g, int timeout_ms, struct cordon_error **reterr);

/* Resets the budgets; later events carry this id. */
int gateway_begin_execution(struct gateway *g, const char *id, struct cordon_error **reterr);
int gateway_answer(struct gateway *g, uint64_t id, bool allow, const char *reason,
		   struct cordon_error **reterr);

/* The outcome of options.fetch; NULL: not finished. The body arrives on gateway_relay_fd(). */
const json_t *gateway_fetched(const struct gateway *g);

struct gateway_counters {
	uint64_t allowed, denied, bytes_out, bytes_in;
};
/* Asks the gateway for its counters and waits for the answer. Earlier events are delivered
 * first. */
int gateway_count(struct gateway *g, struct gateway_counters *ret, struct cordon_error **reterr);
