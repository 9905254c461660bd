/* tests/pod/door_fixture.h - a pod process without a module: memory, a root, and the door. */
#ifndef DOOR_FIXTURE_H
#define DOOR_FIXTURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/pod/runtime/door.h"
#include "inside/pod/runtime/image.h"
#include "inside/pod/runtime/instance.h"
#include "inside/pod/runtime/program.h"
#include "inside/pod/runtime/signals.h"

#define FIXTURE_PAGES 16
#define FIXTURE_ABOVE 100 /* no guest may name a descriptor from here on */
#define FIXTURE_BYTES (FIXTURE_PAGES * 65536ull)

extern struct w2c_sys fixture;
extern wasm_rt_memory_t fixture_memory;

/* A root in a new temporary directory with one command, "true"; paths are beneath it. */
void fixture_open(void);
/* Its files as they were when it was opened. */
void fixture_new_root(void);
/* As it was when it was opened, but for what the last 2,048 have done to the files. */
void fixture_again(void);
/* Standard streams become a private file: hostile calls must never meet a device of the host. */
void fixture_private_stdio(void);
/* And back again, for what the test itself has to say. */
void fixture_public_stdio(void);
/* Puts a string into the guest's memory at an address. */
uint64_t fixture_string(uint64_t at, const char *text);
int64_t fixture_call(uint64_t n, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		     uint64_t f);

#endif
