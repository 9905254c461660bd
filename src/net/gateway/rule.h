/* net/gateway/rule.h - which hosts, ports, methods, paths and addresses a policy allows. An allow
 * rule wins over a block rule. With block rules only, all else is allowed; without rules, nothing
 * is. */
#pragma once

#include "net/gateway/host.h"
#include "policy/policy.h"

enum { RULE_TEXT_SIZE = 640 };

struct ruleset;

struct rule_query {
	const struct host *host;
	uint16_t port;      /* 0: any port (for DNS lookups) */
	const char *method; /* NULL: not visible yet */
	const char *path;   /* normalised, with query; NULL: not visible yet */
};

/* Zero: denied. The texts are for the guest, the audit log and the result. */
struct rule_verdict {
	bool allowed;
	bool inspect; /* only some methods and paths are allowed, so they must be inspected */
	bool raw;     /* a rule names this port: any protocol is allowed there */
	bool ask;     /* the host program decides */
	char rule[RULE_TEXT_SIZE];   /* "network.allow[2] *.example.org", "no rule" */
	char reason[RULE_TEXT_SIZE]; /* why it was denied; "": allowed */
	char remedy[RULE_TEXT_SIZE]; /* the smallest change of the policy that would allow it */
};

/* Refuses invalid patterns, by index and text. */
int ruleset_new(const struct policy_network *net, struct ruleset **ret,
		struct cordon_error **reterr);
struct ruleset *ruleset_free(struct ruleset *rs);
DEFINE_FREEP(struct ruleset *, ruleset_free)
#define cleanup_ruleset CLEANUP(ruleset_freep)

/* Decides before anything is resolved. */
void ruleset_decide(const struct ruleset *rs, const struct rule_query *q, struct rule_verdict *ret);
/* Decides after resolving: about each address of a host that ruleset_decide() allowed. */
void ruleset_decide_address(const struct ruleset *rs, const struct host *host,
			    const struct address *a, uint16_t port, struct rule_verdict *ret);
/* Ports that a rule may allow, ascending; returns how many were stored. */
size_t ruleset_ports(const struct ruleset *rs, uint16_t *ret, size_t max);
/* True if a rule limits methods or paths. Then the gateway must terminate TLS for its hosts. */
bool ruleset_has_limits(const struct ruleset *rs);
