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

/* A gateway that was started ahead and serves nobody yet, and the certificate authorities of its
 * guest. It serves one session only. */
struct network_spare {
	struct gateway *gateway;
	int authorities; /* a file of bytes; -1: the machine's are enough */
};

int network_spare_new(const struct policy *p, struct network_spare **ret,
		      struct cordon_error **reterr);
struct network_spare *network_spare_free(struct network_spare *spare); /* returns NULL */
DEFINE_FREEP(struct network_spare *, network_spare_free)
#define cleanup_network_spare CLEANUP(network_spare_freep)
/* Fills the launch of a template, whose sessions each bring a gateway like this one. The launch
 * borrows from the spare. */
int network_fill_template(const struct network_spare *spare, const struct policy *p, bool is_pod,
			  struct launch *l, struct cordon_error **reterr);

/* *ret stays NULL if the policy opens no network. spare: taken over, and used if it is what would
 * be started now; NULL: none. */
int network_open(struct cordon_session *s, struct network_spare *spare, struct network **ret,
		 struct cordon_error **reterr);
/* Stops the gateway and drops the reference. */
struct network *network_close(struct network *n);
/* Accepts NULL. Contexts of one place share a network, and a thread that does not hold a session
 * may answer it; both may outlive its gateway, which is then lost. */
struct network *network_ref(struct network *n);
struct network *network_unref(struct network *n);

int network_prepare(struct network *n, struct launch *l, struct cordon_error **reterr);
/* What a session that a template forks brings: descriptors of the relay's socket and the
 * authorities; -1: none. They stay the network's. */
int network_fork_fds(struct network *n, int *ret_relay, int *ret_authorities,
		     struct cordon_error **reterr);
/* The sandbox has its own copies of these descriptors by now: closes ours. */
void network_launched(struct network *n);

int network_fd(struct network *n); /* -1: there is no gateway, or it has ended */
/* The gateway ended unexpectedly: its guest has no network any more. */
bool network_is_lost(struct network *n);
void network_serve(struct network *n);

/* One execution's share of a network. Which of several executions made a request cannot be told
 * inside one sandbox, so a denial is told to all that run, and an approval stops all their clocks.
 */
struct network_turn {
	json_t *denials;
	uint64_t waited_before_ns;
	struct network_turn *next;
};

void network_begin(struct network *n, struct network_turn *t);
/* Adds the execution's denials to the result. r NULL: there is none. */
void network_end(struct network *n, struct network_turn *t, struct cordon_result *r);

/* True while a request waits for an approval. The execution's clock stops meanwhile. */
bool network_is_waiting(struct network *n);
uint64_t network_waited_ns(struct network *n, const struct network_turn *t);
bool network_is_approval(const char *approval_id);
int network_resolve(struct network *n, const char *approval_id, bool allow, const char *reason,
		    struct cordon_error **reterr);
