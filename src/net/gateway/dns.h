/* net/gateway/dns.h - answers the guest's DNS queries: fake addresses for allowed names. No query
 * is passed on. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/gateway/host.h"

enum {
	DNS_MAX = 512, /* no answer is longer, and no honest query either */
	DNS_TTL_SECONDS = 60,
};

enum dns_verdict {
	DNS_NO_SUCH_NAME, /* zero: what is not allowed does not exist */
	DNS_HAS_ADDRESS,
	DNS_FAILURE, /* no synthetic address is left */
};

struct dns_addresses {
	struct address v4, v6; /* family 0: none of that kind */
};

typedef enum dns_verdict (*dns_lookup_fn)(const struct host *name, struct dns_addresses *ret,
					  void *arg);

/* Returns the length of the answer, 0 when the query deserves none. */
size_t dns_answer(const uint8_t *query, size_t len, dns_lookup_fn lookup, void *arg,
		  uint8_t ret[static DNS_MAX]);
