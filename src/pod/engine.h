/* pod/engine.h - memory, tables, traps and exceptions of the one instance in this process. */
#ifndef POD_ENGINE_H
#define POD_ENGINE_H

#include "wasm-rt.h"
#include <stddef.h>
#include <stdint.h>

#define ENGINE_PAGE 65536ull
/* Index, offset and widest access of an instruction all stay inside. */
#define ENGINE_RESERVE ((8ull << 30) + ENGINE_PAGE)
#define ENGINE_STACK (128ull << 20)
#define ENGINE_STACK_GUARD (1ull << 20)
#define ENGINE_TABLES (8ull << 20)

/* Addresses of this process; the same in every process forked from it, so that a checkpoint
 * taken in one can be resumed in another. */
struct engine {
	uint8_t *memory; /* ENGINE_RESERVE */
	uint8_t *tables; /* ENGINE_TABLES */
	uint8_t *stack;  /* guard, then ENGINE_STACK */
	size_t memory_used, tables_used;
	uint64_t max_pages; /* the policy's limit */
	const char *name;   /* of the running program, for the message of a trap */
};

extern struct engine engine;

/* Reserves the addresses and takes the fault signals; -1 with errno. */
int engine_open(uint64_t max_bytes);
/* Forgets the instance: its memory and tables are gone, the reservation stays. */
void engine_reset(void);
/* Tables are complete: nothing writes to them any more. */
void engine_seal(void);
/* Calls fn(arg) on the guest's stack. */
void engine_call(void (*fn)(void *), void *arg);
const char *engine_trap_name(wasm_rt_trap_t trap);

#endif
