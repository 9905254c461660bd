/* inside/guests/node/interrupt.h - interrupts for code that never comes back to the event loop. */
#pragma once

#include <stdbool.h>

/* From the main thread, once, when libuv has its handler of SIGINT. False: this Node cannot. */
bool interrupt_watch(void);
/* An execution, by its id in decimal digits, held; and its end: whether it was interrupted. */
void interrupt_begin(const char *id);
bool interrupt_end(void);
/* Whether V8 may end what runs: only what guard() has called can come back; what it was before. */
bool interrupt_hold(bool is_held);
/* A message is being written. */
void interrupt_say(bool is_saying);
/* The message for this execution was read. */
void interrupt_tell(void);
