/* net/host/gateway.h - starting the gateway of a session, from the host program. docs/gateway.md
 * tells what the wall has to set up around it. */
#pragma once

#include <sys/types.h>

#include "base/json.h"
#include "policy/policy.h"

#define GATEWAY_PROXY_URL "http://127.0.0.1:3128"
/* /etc/resolv.conf of the guest. use-vc: over TCP, so that no datagram socket is needed. */
#define GATEWAY_RESOLV_CONF "nameserver 127.0.0.1\noptions use-vc timeout:5 attempts:1\n"

struct gateway;

/* One audit event: "network.request" or "network.denied", see docs/gateway.md for the fields. */
typedef void (*gateway_event_fn)(const json_t *event, void *arg);
/* A request that waits for a decision: {"host", "port", "method", "path", "tls", "headers"}. Answer
 * with gateway_answer(), from within or any time later. */
typedef void (*gateway_ask_fn)(uint64_t id, const json_t *request, void *arg);

/* Nobody waits for this decision any more: it was answered, its time is up, or the client left. */
typedef void (*gateway_over_fn)(uint64_t id, void *arg);

struct gateway_options {
	const struct policy *policy; /* network, secrets, approval_timeout_ms */
	const char *program;         /* path of cordon-gateway; NULL: gateway_find_program() */
	const char *ca_file; /* authorities that servers are checked against; NULL: the system's */
	const char *upstream_proxy; /* the host's own proxy, "http://…"; NULL: the policy's */
	const json_t *resolve;      /* {"name": ["address", …]} never asked for; NULL: none */
	uid_t uid;                  /* to become when root; 0: stay */
	gid_t gid;
	const json_t
		*fetch; /* net/host/fetch.h: one request of the host itself; NULL: serves a guest */
	bool callback;  /* ask is called for every request, whatever the policy's "ask" says */
	gateway_event_fn event;
	gateway_ask_fn ask;   /* NULL: what has to be asked is denied */
	gateway_over_fn over; /* NULL: not told */
	void *arg;
};

/* True when the policy opens anything at all. */
bool gateway_is_needed(const struct policy *p);
/* CORDON_GATEWAY of the environment, else beside the running program, else where it was installed.
 * To be freed; NULL: not found. */
char *gateway_find_program(void);

/* Starts the process and waits until it is ready (a few milliseconds). */
int gateway_start(const struct gateway_options *options, struct gateway **ret,
		  struct cordon_error **reterr);
/* Ends it; events that are still under way are delivered. Accepts NULL; returns NULL. */
struct gateway *gateway_stop(struct gateway *g);
DEFINE_FREEP(struct gateway *, gateway_stop)
#define cleanup_gateway CLEANUP(gateway_stopp)

/* For relay_open() in the guest's namespace: the descriptor to send to, and the ports to open. */
int gateway_relay_fd(const struct gateway *g);
size_t gateway_ports(const struct gateway *g, const uint16_t **ret);
/* Once the wall has its copy. Without it the gateway cannot see that the relay is gone. */
void gateway_close_relay(struct gateway *g);

/* The authority that the guest has to trust, PEM, or NULL when nothing is opened by the gateway. */
const char *gateway_authority(const struct gateway *g);
/* HTTP_PROXY and its kin, and the variables that make programs trust bundle_path: a file with the
 * system's authorities, and this one where there is one; NULL: none. Existing entries are kept. */
int gateway_add_environment(const char *bundle_path, struct strlist *env,
			    struct cordon_error **reterr);

/* Poll this for reading and call gateway_dispatch(): it reads what is there and calls back. Returns
 * 0, or -CORDON_STATE when the gateway is gone. */
int gateway_fd(const struct gateway *g);
int gateway_dispatch(struct gateway *g, struct cordon_error **reterr);
/* Waits until the relay's sockets have arrived there, or timeout_ms have passed. */
int gateway_wait_relay(struct gateway *g, int timeout_ms, struct cordon_error **reterr);

/* From here on the budgets are counted anew, and events carry this id. */
int gateway_begin_execution(struct gateway *g, const char *id, struct cordon_error **reterr);
int gateway_answer(struct gateway *g, uint64_t id, bool allow, const char *reason,
		   struct cordon_error **reterr);

/* What became of options.fetch; NULL: nothing yet. The body comes by gateway_relay_fd(). */
const json_t *gateway_fetched(const struct gateway *g);

struct gateway_counters {
	uint64_t allowed, denied, bytes_out, bytes_in;
};
/* Asks the gateway; blocks for the answer, events that come before it are delivered. */
int gateway_count(struct gateway *g, struct gateway_counters *ret, struct cordon_error **reterr);
