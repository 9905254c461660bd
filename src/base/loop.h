/* base/loop.h - an event loop: descriptors, timers, and calls from other threads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/error.h"

struct loop;
struct loop_source; /* owned by the loop; freed by loop_source_remove or loop_free */

/* Events of a descriptor. LOOP_ERR and LOOP_HUP are reported unasked. */
enum { LOOP_IN = 0x1, LOOP_OUT = 0x4, LOOP_ERR = 0x8, LOOP_HUP = 0x10 };

typedef void (*loop_fd_fn)(struct loop *l, int fd, uint32_t events, void *arg);
typedef void (*loop_timer_fn)(struct loop *l, void *arg);

int loop_new(struct loop **ret, struct cordon_error **reterr);
struct loop *loop_free(struct loop *l);

/* The caller keeps ownership of the descriptor. */
int loop_add_fd(struct loop *l, int fd, uint32_t events, loop_fd_fn fn, void *arg,
		struct loop_source **ret, struct cordon_error **reterr);
int loop_change_fd(struct loop_source *s, uint32_t events);
int loop_add_timer(struct loop *l, deadline_ns at, loop_timer_fn fn, void *arg,
		   struct loop_source **ret, struct cordon_error **reterr); /* one shot */
/* Allowed inside a callback, also for the source whose callback runs. */
struct loop_source *loop_source_remove(struct loop_source *s);

int loop_run(struct loop *l, struct cordon_error **reterr); /* until loop_stop */
void loop_stop(struct loop *l);
/* Any thread may call it: makes loop_run call fn once, soon. */
int loop_wake(struct loop *l, loop_timer_fn fn, void *arg);

DEFINE_FREEP(struct loop *, loop_free)
#define cleanup_loop CLEANUP(loop_freep)
