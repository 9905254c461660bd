/* inside/pod/runtime/run.h - runs a program, then what it execs, until one exits. */
#pragma once

#include "inside/pod/runtime/process.h"

/* Begins with p->next, with p->argv and p->envp. */
__attribute__((noreturn)) void run_programs(struct w2c_sys *p);
