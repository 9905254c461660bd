/* inside/pod/runtime/instance.c - see instance.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/instance.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "inside/pod/runtime/signals.h"
#include "inside/pod/runtime/wasm-rt-exceptions.h"

enum { MAX_PAGES = 65536 }; /* 4 GiB */

/* Global, because a process runs one instance and fault handlers have no argument. */
struct instance instance;
jmp_buf *wasm_rt_unwind_top;

static struct {
	wasm_rt_tag_t tag;
	uint32_t size;
	_Alignas(16) uint8_t data[WASM_RT_EXCEPTION_MAX];
} thrown;

const char *instance_trap_name(wasm_rt_trap_t trap)
{
	static const char *const names[] = {
		"none",
		"memory access out of bounds",
		"integer overflow",
		"division by zero",
		"invalid conversion",
		"unreachable code",
		"indirect call of the wrong type",
		"uncaught exception",
		"unaligned access",
		"stack exhausted",
		"null reference",
	};

	return (unsigned)trap < sizeof names / sizeof *names ? names[trap] : "unknown";
}

/* The signal that a native program would have died of. */
static int trap_signal(wasm_rt_trap_t trap)
{
	switch (trap) {
	case WASM_RT_TRAP_OOB:
	case WASM_RT_TRAP_EXHAUSTION:
	case WASM_RT_TRAP_NULL_REF:
		return SIGSEGV;
	case WASM_RT_TRAP_INT_OVERFLOW:
	case WASM_RT_TRAP_DIV_BY_ZERO:
	case WASM_RT_TRAP_INVALID_CONVERSION:
		return SIGFPE;
	case WASM_RT_TRAP_UNREACHABLE:
	case WASM_RT_TRAP_CALL_INDIRECT:
		return SIGILL;
	default:
		return SIGABRT;
	}
}

void wasm_rt_trap(wasm_rt_trap_t trap)
{
	char text[160];
	int sig = trap_signal(trap);
	int n = snprintf(text, sizeof text, "cordon-pod: %s: trap: %s\n",
			 instance.name ? instance.name : "?", instance_trap_name(trap));

	if (n > 0 && write(2, text, (size_t)n) < 0)
		n = 0;
	signals_die(sig);
}

bool wasm_rt_is_initialized(void)
{
	return instance.memory != NULL;
}

/* SA_NODEFER: a trap ends the process, so there is no mask to restore. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
	const uint8_t *at = info->si_addr;
	const ucontext_t *uc = context;
	const uint8_t *sp = (const uint8_t *)uc->uc_mcontext.gregs[REG_RSP];

	if (info->si_code <= 0) { /* sent by kill, not by a fault */
		signals_sent_fault(sig, info);
		return;
	}
	if (sig == SIGFPE)
		wasm_rt_trap(WASM_RT_TRAP_DIV_BY_ZERO);
	if (at >= instance.memory && at < instance.memory + INSTANCE_RESERVE)
		wasm_rt_trap(WASM_RT_TRAP_OOB);
	if ((at >= instance.stack && at < instance.stack + INSTANCE_STACK_GUARD) ||
	    (sp >= instance.stack && sp < instance.stack + INSTANCE_STACK_GUARD))
		wasm_rt_trap(WASM_RT_TRAP_EXHAUSTION);
	signals_die(sig);
}

static uint8_t *reserve(size_t bytes, int prot)
{
	void *p = mmap(NULL, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int instance_open(uint64_t max_bytes)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	struct sigaction sa = { .sa_sigaction = on_fault,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	const size_t alt = 65536;
	stack_t ss = { .ss_sp = reserve(alt, PROT_READ | PROT_WRITE), .ss_size = alt };

	instance.memory = reserve(INSTANCE_RESERVE, PROT_NONE);
	instance.tables = reserve(INSTANCE_TABLES, PROT_NONE);
	/* A stack mapping does not count against RLIMIT_DATA, which is for the guest's memory. */
	instance.stack = mmap(
		NULL, INSTANCE_STACK_GUARD + INSTANCE_STACK, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_GROWSDOWN, -1, 0);
	if (instance.stack == MAP_FAILED)
		return -1;
	if (!ss.ss_sp || !instance.memory || !instance.tables || !instance.stack)
		return -1;
	if (mprotect(instance.stack, INSTANCE_STACK_GUARD, PROT_NONE) || sigaltstack(&ss, NULL))
		return -1;
	/* There are many short-lived processes: clearing a huge page in each would cost more than
	 * it saves. */
	madvise(instance.memory, INSTANCE_RESERVE, MADV_NOHUGEPAGE);
	madvise(instance.stack, INSTANCE_STACK_GUARD + INSTANCE_STACK, MADV_NOHUGEPAGE);
	instance.max_pages = max_bytes / INSTANCE_PAGE;
	if (!max_bytes || instance.max_pages > MAX_PAGES)
		instance.max_pages = MAX_PAGES;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		if (sigaction(faults[i], &sa, NULL))
			return -1;
	return 0;
}

static void wipe(uint8_t *at, size_t bytes)
{
	if (bytes &&
	    mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		signals_die(SIGKILL);
}

void instance_reset(void)
{
	wipe(instance.memory, instance.memory_used);
	wipe(instance.tables, instance.tables_used);
	madvise(instance.memory, instance.memory_used, MADV_NOHUGEPAGE);
	instance.memory_used = instance.tables_used = 0;
	wasm_rt_unwind_top = NULL;
}

void instance_seal(void)
{
	if (instance.tables_used && mprotect(instance.tables, instance.tables_used, PROT_READ))
		signals_die(SIGKILL);
}

/* The module's memory is always the single reservation. The limit applies to what it requests
 * beyond its start size, most of which is stack that it never touches. */
void wasm_rt_allocate_memory(wasm_rt_memory_t *memory, uint64_t pages, uint64_t max_pages,
			     bool is64, uint32_t page_size)
{
	uint64_t limit = pages + instance.max_pages;

	if (is64 || page_size != INSTANCE_PAGE || pages > MAX_PAGES ||
	    mprotect(instance.memory, pages * INSTANCE_PAGE, PROT_READ | PROT_WRITE)) {
		static const char text[] = "cordon-pod: memory limit exceeded\n";

		if (write(2, text, sizeof text - 1) < 0)
			_exit(126);
		_exit(126);
	}
	memory->data = instance.memory;
	memory->pages = pages;
	limit = limit < MAX_PAGES ? limit : MAX_PAGES;
	memory->max_pages = max_pages < limit ? max_pages : limit;
	memory->size = pages * INSTANCE_PAGE;
	instance.memory_used = memory->size;
}

uint64_t wasm_rt_grow_memory(wasm_rt_memory_t *memory, uint64_t delta)
{
	uint64_t old = memory->pages;

	if (!delta)
		return old;
	if (delta > memory->max_pages || old > memory->max_pages - delta)
		return 0xffffffff;
	if (mprotect(memory->data + memory->size, delta * INSTANCE_PAGE, PROT_READ | PROT_WRITE))
		return 0xffffffff;
	memory->pages += delta;
	memory->size += delta * INSTANCE_PAGE;
	instance.memory_used = memory->size;
	return old;
}

void wasm_rt_free_memory(wasm_rt_memory_t *memory)
{
	memset(memory, 0, sizeof *memory);
}

void wasm_rt_allocate_funcref_table(wasm_rt_funcref_table_t *table, uint32_t n, uint32_t max)
{
	size_t bytes = (size_t)n * sizeof *table->data, page = 4096;
	uint8_t *at = instance.tables + instance.tables_used;

	bytes = (bytes + page - 1) & ~(page - 1);
	if (bytes > INSTANCE_TABLES - instance.tables_used ||
	    mprotect(at, bytes, PROT_READ | PROT_WRITE))
		wasm_rt_trap(WASM_RT_TRAP_NULL_REF);
	instance.tables_used += bytes;
	table->data = (wasm_rt_funcref_t *)at;
	table->size = n;
	table->max_size = max;
}

void wasm_rt_free_funcref_table(wasm_rt_funcref_table_t *table)
{
	memset(table, 0, sizeof *table);
}

void wasm_rt_load_exception(wasm_rt_tag_t tag, uint32_t size, const void *values)
{
	if (size > sizeof thrown.data)
		wasm_rt_trap(WASM_RT_TRAP_UNCAUGHT_EXCEPTION);
	thrown.tag = tag;
	thrown.size = size;
	if (size)
		memcpy(thrown.data, values, size);
}

void wasm_rt_throw(void)
{
	if (!wasm_rt_unwind_top)
		wasm_rt_trap(WASM_RT_TRAP_UNCAUGHT_EXCEPTION);
	_longjmp(*wasm_rt_unwind_top, 1);
}

wasm_rt_tag_t wasm_rt_exception_tag(void)
{
	return thrown.tag;
}

uint32_t wasm_rt_exception_size(void)
{
	return thrown.size;
}

void *wasm_rt_exception(void)
{
	return thrown.data;
}

void instance_call(void (*fn)(void *), void *arg)
{
	uint8_t *top = instance.stack + INSTANCE_STACK_GUARD + INSTANCE_STACK;

	__asm__ volatile("movq %%rsp, %%rbx\n\t"
			 "movq %%rbp, %%r12\n\t"
			 "movq %%rsi, %%rsp\n\t"
			 "xorl %%ebp, %%ebp\n\t"
			 "callq *%%rdx\n\t"
			 "movq %%r12, %%rbp\n\t"
			 "movq %%rbx, %%rsp"
			 : "+D"(arg), "+S"(top), "+d"(fn)
			 :
			 : "rbx", "r12", "r13", "r14", "r15", "rax", "rcx", "r8", "r9", "r10",
			   "r11", "memory", "cc");
}
