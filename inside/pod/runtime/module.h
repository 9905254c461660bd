/* inside/pod/runtime/module.h - commands added to the image: native objects made of WASI programs,
 * in files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "inside/pod/runtime/program.h"

/* Changes with everything below, with wasi_list.h and with wasm-rt.h; inside/pod/image/module has
 * its copy. An object of another one is not loaded. */
#define MODULE_ABI 1
#define MODULE_MAGIC "cordon\1m"
#define MODULE_NAME 32
#define MODULE_MAX 64
#define MODULE_SPAN (256ull << 20) /* of addresses */
#define WASI_ARGS 9

/* The only functions that an object can call. */
struct module_host {
	uint32_t (*wasi)(struct w2c_sys *p, uint32_t call, const uint64_t a[WASI_ARGS]);
	void (*trap)(wasm_rt_trap_t trap);
	void (*allocate_memory)(wasm_rt_memory_t *memory, uint64_t pages, uint64_t max_pages,
				bool is64, uint32_t page_size);
	uint64_t (*grow_memory)(wasm_rt_memory_t *memory, uint64_t delta);
	void (*free_memory)(wasm_rt_memory_t *memory);
	void (*allocate_table)(wasm_rt_funcref_table_t *table, uint32_t n, uint32_t max);
	void (*free_table)(wasm_rt_funcref_table_t *table);
	void (*seal)(void);
	void *(*memcpy)(void *to, const void *from, size_t n);
	void *(*memmove)(void *to, const void *from, size_t n);
	void *(*memset)(void *to, int value, size_t n);
	int (*memcmp)(const void *a, const void *b, size_t n);
	double (*math[5])(double x); /* ceil, floor, trunc, nearbyint, sqrt */
	float (*mathf[5])(float x);
};

/* The object's ELF entry is the address of one. */
struct module_head {
	char magic[8];
	uint32_t abi;
	uint32_t bytes; /* of this structure */
	void (*enter)(struct w2c_sys *p, wasm_rt_memory_t **ret_memory,
		      const struct module_host *host);
};

struct module { /* one command */
	struct command command;
	struct program program;
	char name[MODULE_NAME + 1];
	uint64_t dev, ino;
	bool is_allowed; /* by --commands */
	const struct module_head *head;
};

struct module_object { /* as mapped */
	const struct module_head *head;
	uint8_t *base;
	size_t span;
};

/* Checks and maps the object open at fd, relocated and read-only where it can be; none of its
 * code runs. 0, or a negative errno with the reason in ret_why. */
int module_map(int fd, struct module_object *ret, const char **ret_why);
/* Every object of a directory of the pod's root becomes a command. Those that cannot are left
 * out, named on standard error. 0 or a negative errno; no directory is none. */
int module_open(struct w2c_sys *p, const char *dir);
struct module *module_by_name(const struct w2c_sys *p, const char *name);
struct module *module_by_file(const struct w2c_sys *p, const struct stat *st);
/* The module of a command, or NULL for the image's own. */
const struct module *module_of(const struct w2c_sys *p, const struct command *command);
