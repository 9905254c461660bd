/* net/synth.h - synthetic addresses: a name that the guest looks up gets one of its own, and a
 * connection to it tells the name again. */
#pragma once

#include "net/host.h"

enum { SYNTH_MAX = 4096 };

/* 198.18.0.0/15 is set aside for benchmarks, so nobody's real server lives there; the IPv6
 * prefix is a unique local one. The relay routes both to the loopback of the guest. */
#define SYNTH_V4_BLOCK "198.18.0.0/15"
#define SYNTH_V6_BLOCK "fd63:6f72:646f:6e00::/64"

struct synth;

int synth_new(struct synth **ret, struct cordon_error **reterr);
struct synth *synth_free(struct synth *s);
DEFINE_FREEP(struct synth *, synth_free)
#define cleanup_synth CLEANUP(synth_freep)

/* The same addresses for the same name. -CORDON_LIMIT when SYNTH_MAX names were given out. */
int synth_add(struct synth *s, const struct host *name, struct address *ret_v4,
	      struct address *ret_v6);
/* NULL: not one of ours. */
const struct host *synth_find(const struct synth *s, const struct address *a);
