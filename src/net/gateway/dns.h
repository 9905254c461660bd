/* net/gateway/dns.h - answers the guest's DNS queries with fake addresses for allowed names. No
 * query leaves the sandbox. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/gateway/host.h"

enum {
	DNS_MAX = 512, /* answers are never longer, nor are real queries */
	DNS_TTL_SECONDS = 60,
};

enum dns_verdict {
	DNS_NO_SUCH_NAME, /* zero: a name that is not allowed does not exist */
	DNS_HAS_ADDRESS,
	DNS_FAILURE, /* no fake address is left */
};

struct dns_addresses {
	struct address v4, v6; /* family 0: none of that kind */
};

typedef enum dns_verdict (*dns_lookup_fn)(const struct host *name, struct dns_addresses *ret,
					  void *arg);

/* Returns the length of the answer; 0: the query is invalid and gets none. */
size_t dns_answer(const uint8_t *query, size_t len, dns_lookup_fn lookup, void *arg,
		  uint8_t ret[static DNS_MAX]);
