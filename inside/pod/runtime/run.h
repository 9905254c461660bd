/* inside/pod/runtime/run.h - runs a program, then each program that it execs, until one exits. */
#pragma once

#include "inside/pod/runtime/process.h"

/* Starts with p->next, p->argv and p->envp. */
__attribute__((noreturn)) void run_programs(struct w2c_sys *p);
