/* inside/guests/node/interrupt.h - interrupts code that never returns to the event loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Called once in the main thread, after libuv has installed its handler for SIGINT. False: code
 * cannot be interrupted here, and the reason says why. */
bool interrupt_watch(char *reason, size_t size);
/* Begins an execution, by its id in decimal digits, held; and ends it: whether it was
 * interrupted. */
void interrupt_begin(const char *id);
bool interrupt_end(void);
/* Whether V8 may terminate the running code: only code that guard() called can return. Returns the
 * previous value. */
bool interrupt_hold(bool is_held);
/* A message is being written. */
void interrupt_say(bool is_saying);
/* The message for this execution was read. */
void interrupt_tell(void);
