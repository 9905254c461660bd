/* inside/pod/runtime/instance.h - memory, tables, traps and exceptions of the one instance in this
 * process. */
#pragma once

#include "inside/pod/runtime/wasm-rt.h"
#include <stddef.h>
#include <stdint.h>

#define INSTANCE_PAGE 65536ull
/* Large enough that any index plus offset plus access width stays inside. */
#define INSTANCE_RESERVE ((8ull << 30) + INSTANCE_PAGE)
#define INSTANCE_STACK (128ull << 20)
#define INSTANCE_STACK_GUARD (1ull << 20)
#define INSTANCE_TABLES (8ull << 20)

/* Addresses of this process. They are the same in every process forked from it, so that a
 * checkpoint taken in one can be resumed in another. */
struct instance {
	uint8_t *memory; /* INSTANCE_RESERVE */
	uint8_t *tables; /* INSTANCE_TABLES */
	uint8_t *stack;  /* guard, then INSTANCE_STACK */
	size_t memory_used, tables_used;
	uint64_t max_pages; /* the policy's limit */
	const char *name;   /* of the running program, for the message of a trap */
};

extern struct instance instance;

/* Reserves the address space and installs the fault handlers; -1 with errno. */
int instance_open(uint64_t max_bytes);
/* Drops the instance's memory and tables; the reservation stays. */
void instance_reset(void);
/* Makes the complete tables read-only. */
void instance_seal(void);
/* Calls fn(arg) on the guest's stack. */
void instance_call(void (*fn)(void *), void *arg);
const char *instance_trap_name(wasm_rt_trap_t trap);
