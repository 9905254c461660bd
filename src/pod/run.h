/* pod/run.h - runs a program, then what it execs, until one exits. */
#ifndef POD_RUN_H
#define POD_RUN_H

#include "process.h"

/* Begins with p->next, with p->argv and p->envp. */
__attribute__((noreturn)) void run_programs(struct w2c_sys *p);

#endif
