/* tests/soak/scenes.h - what one thread of the mixed soak may do next. */
#pragma once

#include <cordon/cordon.h>
#include <stdbool.h>
#include <stdint.h>

enum { SHARED = 4, POOLS = 2 };

/* What all threads share. */
struct world {
	struct cordon_session *shared[SHARED]; /* used by everybody at once */
	struct cordon_pool *pools[POOLS];
	struct cordon_tools *tools;
	uint16_t port; /* an HTTP server on loopback that says "hello" */
	bool has_pod;
};

typedef void (*scene_fn)(struct world *w, unsigned *seed);

struct scene {
	const char *name;
	scene_fn fn;
	unsigned weight;
};

/* Ends with a NULL name. */
extern const struct scene scenes[];

void scenes_open(struct world *w);
void scenes_close(struct world *w);
/* How often something was wrong, with the first few said on stdout. */
unsigned scenes_wrong(void);
