/* session/network.h - a session's gateway: started with its guest, polled while code runs, and
 * asked what it allowed and denied. A NULL network does nothing, so callers need no checks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/host/gateway.h"
#include "session/result.h"
#include "wall/launch.h"

struct cordon_session;
struct network;

/* Callbacks for requests and approvals; zero: none. */
struct network_listener {
	gateway_event_fn event;
	gateway_ask_fn ask;
	gateway_over_fn over;
	void *arg;
};

/* Starts a gateway without a session, with everything its guest needs: resolver, certificate
 * authorities, proxy variables, the relay's ports. Sessions use the functions below. */
int network_start(const struct policy *p, const struct network_listener *to, struct gateway **ret,
		  struct cordon_error **reterr);
int network_fill(const struct gateway *g, const struct policy *p, bool is_pod, struct launch *l,
		 struct cordon_error **reterr);

/* *ret stays NULL if the policy opens no network. */
int network_open(struct cordon_session *s, struct network **ret, struct cordon_error **reterr);
/* Stops the gateway and drops the reference. */
struct network *network_close(struct network *n);
/* For a thread that does not hold the session; accepts NULL. With this reference it may only call
 * network_resolve. */
struct network *network_ref(struct network *n);
struct network *network_unref(struct network *n);

int network_prepare(struct network *n, struct launch *l, struct cordon_error **reterr);
/* The sandbox has its own copy of the relay's descriptor by now: closes ours. */
void network_launched(struct network *n);

int network_fd(struct network *n); /* -1: there is no gateway, or it has ended */
/* The gateway ended unexpectedly: its guest has no network any more. */
bool network_is_lost(struct network *n);
void network_serve(struct network *n);
void network_begin(struct network *n, uint64_t execution);
/* Adds the execution's denials to the result. */
void network_end(struct network *n, struct cordon_result *r);

/* True while a request waits for an approval. The execution's clock stops meanwhile. */
bool network_is_waiting(struct network *n);
uint64_t network_waited_ns(struct network *n);
bool network_is_approval(const char *approval_id);
int network_resolve(struct network *n, const char *approval_id, bool allow, const char *reason,
		    struct cordon_error **reterr);
