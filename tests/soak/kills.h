/* tests/soak/kills.h - kills of processes below this one, and which calls they spare. All functions
 * may be called from any thread. */
#pragma once

#include <stdbool.h>

/* Taken before a call. */
unsigned kills_mark(void);
/* True: the call began when no kill was under way, and none has begun since. Such a call must
 * succeed. Whatever else a kill meets may fail, but must return. */
bool kills_spared(unsigned mark);
unsigned kills_count(void);
/* Kills a process below this one, at most so many levels down:
 *   1  a supervisor, or a gateway
 *   2  pid 1 of a sandbox or of a template
 *   3  the interpreter of a template, or a guest
 *   4  pid 1 of a sandbox that a template forked
 *   5  its guests, and below them what they started
 * The kill is over when all that ends with it has ended. False: something lives on. */
bool kills_one(unsigned *seed, unsigned depth);
