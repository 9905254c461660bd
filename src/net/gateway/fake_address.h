/* net/gateway/fake_address.h - fake addresses: each name that the guest looks up gets one, and a
 * connection to it identifies the name. */
#pragma once

#include "net/gateway/host.h"

enum { FAKE_ADDRESS_MAX = 4096 };

/* 198.18.0.0/15 is reserved for benchmarks, so no real server uses it. The IPv6 prefix is a unique
 * local one. The relay routes both to the guest's loopback. */
#define FAKE_ADDRESS_V4_BLOCK "198.18.0.0/15"
#define FAKE_ADDRESS_V6_BLOCK "fd63:6f72:646f:6e00::/64"

struct fake_address;

int fake_address_new(struct fake_address **ret, struct cordon_error **reterr);
struct fake_address *fake_address_free(struct fake_address *f);
DEFINE_FREEP(struct fake_address *, fake_address_free)
#define cleanup_fake_address CLEANUP(fake_address_freep)

/* The same name always gets the same addresses. -CORDON_LIMIT: FAKE_ADDRESS_MAX names have one. */
int fake_address_add(struct fake_address *f, const struct host *name, struct address *ret_v4,
		     struct address *ret_v6);
/* NULL: not one of ours. */
const struct host *fake_address_find(const struct fake_address *f, const struct address *a);
